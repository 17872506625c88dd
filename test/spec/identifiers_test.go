package spec_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// An object has one id: other spellings of a UUID are rejected, or name the same object for clients with access.
func TestIdentifiers_OneSpelling(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	other := s.Workspace(t, "Other")
	account, device := s.Connect(t, "nuki")
	own := session(t, s, params{"connected_account_ids": []string{account}})
	unrelated := session(t, s, params{})
	hook := fmt.Sprint(
		madeBy(t, s, "/webhooks/create", "webhook", params{"url": "https://hooks.example/x"})["webhook_id"],
	)
	bare := strings.ReplaceAll(device, "-", "")
	for form, want := range map[string]string{
		strings.ToUpper(device): "200 ",
		"{" + device + "}":      "400 invalid_input",
		"urn:uuid:" + device:    "400 invalid_input",
		bare:                    "400 invalid_input",
		device + " ":            "400 invalid_input",
		device + "\x00":         "400 invalid_input",
		device[:35]:             "400 invalid_input",
		device + "," + device:   "400 invalid_input",
	} {
		for who, token := range map[string]string{"the workspace": s.APIKey, "a session": own.Token, "an unrelated " +
			"session": unrelated.Token, "another workspace": other.APIKey} {
			want := want
			if want == "200 " && (who == "an unrelated session" || who == "another workspace") {
				want = "404 device_not_found"
			}
			if got := refused(t, s, token, "/devices/get", params{"device_id": form}); got != want {
				t.Errorf("%s asks for %q: %s, want %s", who, form, got, want)
			}
		}
	}
	for _, form := range []string{
		hook,
		strings.ToUpper(hook),
		"{" + hook + "}",
		"urn:uuid:" + hook,
		strings.ReplaceAll(hook, "-", ""),
	} {
		if got := refused(
			t,
			s,
			other.APIKey,
			"/webhooks/get",
			params{"webhook_id": form},
		); got != "404 webhook_not_found" {
			t.Errorf("another workspace asks for the webhook %q: %s", form, got)
		}
	}
	// In a query, in a list, twice, and next to an own one.
	for _, query := range []string{
		"device_ids=" + device,
		"device_ids[]=" + device,
		"device_ids=" + device + "&device_ids=" + device,
		"device_ids=" + uuid.NewString() + "," + device,
		"connected_account_id=" + account,
	} {
		for who, token := range map[string]string{
			"an unrelated session": unrelated.Token,
			"another workspace":    other.APIKey,
		} {
			var out api.DevicesResponse
			if res := s.Send(
				t,
				http.MethodGet,
				"/devices/list?"+query,
				apptest.Bearer(token),
				"",
				&out,
			); len(
				out.Devices,
			) != 0 {
				t.Errorf("%s is listed %s with %s: %s", who, query, res.Status, out.Devices[0].DeviceID)
			}
		}
	}
}

// A cursor is a position, not a permission: with the cursor of a credential that sees everything, a client session sees
// no more than without.
func TestCursor_OfAnotherCredential(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	other := s.Workspace(t, "Other")
	own := session(t, s, params{})
	for _, workspace := range []*apptest.Server{s, other} {
		for range 3 {
			madeBy(t, workspace, "/connect_webviews/create", "connect_webview", params{})
		}
	}
	mine := page(t, s, own.Token, params{}).ConnectWebviewID
	madeBy(t, s, "/connect_webviews/create", "connect_webview", params{})
	first := func(s *apptest.Server) string {
		var out api.ConnectWebviewsResponse
		s.Post(t, "/connect_webviews/list", params{"limit": 1}, &out)
		return *out.Pagination.NextPageCursor
	}
	ours, theirs := first(s), first(other)
	if got := pagesOf(t, s, own.Token, params{"limit": 1, "page_cursor": ours}); !slices.Equal(got, []string{mine}) {
		t.Errorf("with the workspace's cursor a session sees %v, want %s", got, mine)
	}
	for name, cursor := range map[string]string{"another workspace's": theirs, "one that was changed": flipped(t, ours)} {
		want := "400 mismatched_page_parameters"
		if name == "one that was changed" {
			want = "400 invalid_input"
		}
		for who, token := range map[string]string{"the workspace": s.APIKey, "a session": own.Token} {
			if got := refused(
				t,
				s,
				token,
				"/connect_webviews/list",
				params{"limit": 1, "page_cursor": cursor},
			); got != want {
				t.Errorf("%s sends %s: %s, want %s", who, name, got, want)
			}
		}
	}
}

// flipped decodes unpadded base64, flips one bit in the middle, and encodes it again.
func flipped(t *testing.T, text string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Without the secret in the URL of a connect page or of vendor events, the response does not depend on whether the id
// exists.
func TestURLSecrets_HideExistence(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, _ := s.Connect(t, "nuki")
	w, another := webview(t, s, params{}), webview(t, s, params{})
	path := strings.TrimPrefix(w.URL, s.URL)
	token := path[strings.LastIndex(path, "/")+1:]
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	its, absent := uuid.MustParse(another.ConnectWebviewID), uuid.New()
	encode := base64.RawURLEncoding.EncodeToString
	zero := make([]byte, 24)
	get := func(method, path string) string {
		req, err := http.NewRequestWithContext(
			t.Context(),
			method,
			s.URL+path,
			strings.NewReader("email=jane@example.com&password=1234"),
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.StatusCode, " ", string(body))
	}
	if got := get(http.MethodGet, "/connect/"+token); !strings.HasPrefix(got, "200 ") {
		t.Fatalf("the page itself: %.200s", got)
	}
	for _, way := range []struct{ method, after string }{
		{http.MethodGet, ""},
		{http.MethodGet, "/nuki"},
		{http.MethodPost, "/nuki"},
		{http.MethodPost, "/give_up"},
		{http.MethodGet, "/waiting"},
	} {
		nothing := get(way.method, "/connect/"+encode(append(absent[:], zero...))+way.after)
		if !strings.HasPrefix(nothing, "404 ") {
			t.Errorf("a page that is not there: %.200s", nothing)
		}
		for name, guess := range map[string]string{
			"another's with this secret": encode(append(its[:], raw[16:]...)),
			"its own with none":          encode(append(slices.Clone(raw[:16]), zero...)),
			"a bit is another":           flipped(t, token),
			"too short":                  token[:len(token)-1],
			"only the identifier":        encode(raw[:16]),
			"the id as in the API":       w.ConnectWebviewID,
			"too long":                   token + "A",
		} {
			if got := get(way.method, "/connect/"+guess+way.after); got != nothing {
				t.Errorf("%s %s, %s: %.300s\nwant %.300s", way.method, way.after, name, got, nothing)
			}
		}
	}
	if now := webviewNow(t, s, w.ConnectWebviewID); now.LoginSuccessful || now.Status != "pending" {
		t.Errorf("the page was used: %s", now.Status)
	}
	nothing := get(http.MethodPost, "/vendors/"+uuid.NewString()+"/"+strings.Repeat("0", 32))
	for _, guess := range []string{
		account + "/" + strings.Repeat("0", 32),
		account + "/",
		account,
		strings.ToUpper(account) + "/x",
		"{" + account + "}/" + strings.Repeat("0", 32),
		"x/y",
		"",
	} {
		if got := get(http.MethodPost, "/vendors/"+guess); got != nothing || !strings.HasPrefix(got, "404 ") {
			t.Errorf("/vendors/%s: %s, want %s", guess, got, nothing)
		}
	}
}
