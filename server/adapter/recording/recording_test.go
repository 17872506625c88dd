package recording_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/recording"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// startCloud starts a vendor's cloud with three locks and some codes. It returns what a recording must not contain.
func startCloud(t *testing.T) (c devicecloud.Connection, secrets []string) {
	t.Helper()
	box := sandbox.New(sandbox.Options{Seed: 3, Speed: 1000})
	t.Cleanup(box.Close)
	made, err := box.EnsureAccount(sandbox.AccountSpec{Key: "home", Profiles: []string{"august", "nuki", "ttlock"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(box.Handler())
	t.Cleanup(server.Close)
	c = devicecloud.Connection{BaseURL: server.URL, Token: made.Token}
	secrets = []string{made.Token, "Zdravko", "739151", "84620073"}
	a, err := c.Open(t.Context(), adapter.Env{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for i, l := range made.Locks {
		secrets = append(secrets, l.ID)
		for _, pin := range []string{"739151", "84620073"}[:i%2+1] {
			_, err := a.(adapter.Simulator).AddCode(t.Context(), adapter.DeviceRef(l.ID), "Zdravko "+pin[:1], pin, "")
			if err != nil && adapter.ClassOf(err) != adapter.Invalid {
				t.Fatal(err)
			}
		}
	}
	return c, secrets
}

// counts reads all devices and codes of an account.
func counts(t *testing.T, c devicecloud.Connection, wrap adapter.WrapTransport) (devices, online, codes int) {
	t.Helper()
	a, err := c.Open(t.Context(), adapter.Env{Transport: wrap})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	all, err := a.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Online {
			online++
		}
		found, err := a.Codes(t.Context(), d.Ref, false)
		if err != nil {
			t.Fatal(err)
		}
		codes += len(found.Codes)
	}
	return len(all), online, codes
}

// What a recording of an account replays has the same devices and codes. The recording contains no secret.
func TestRecorder_ReplaysAnAccount(t *testing.T) {
	t.Parallel()
	c, secrets := startCloud(t)
	dir := filepath.Join(t.TempDir(), "new", "recording")
	r, err := recording.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	devices, online, codes := counts(t, c, r.Wrap)
	if devices != 3 || online != 3 || codes < 3 {
		t.Fatalf("the account has %d devices, %d online, and %d codes", devices, online, codes)
	}
	if files, err := r.Finish(); files != 4 || err != nil { // the list of locks, and the codes of each
		t.Errorf("%d files, %v", files, err)
	}
	expectNone(t, dir, secrets)

	handler, err := recording.Replay(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	d, o, n := counts(t, devicecloud.Connection{BaseURL: server.URL, Token: "another"}, nil)
	if d != devices || o != online || n != codes {
		t.Errorf("replayed: %d devices, %d online, and %d codes, want %d, %d, and %d", d, o, n, devices, online, codes)
	}

	if _, err := recording.New(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("the same directory again: %v", err)
	}
}

// expectNone fails if a file of a recording contains a secret, or can be read by others.
func expectNone(t *testing.T, dir string, secrets []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", f.Name(), info.Mode(), err)
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name())) //nolint:gosec // a file of this test
		if err != nil {
			t.Fatal(err)
		}
		for i, secret := range secrets {
			if strings.Contains(strings.ToLower(string(data)), strings.ToLower(secret)) {
				t.Errorf("%s contains secret %d", f.Name(), i)
			}
		}
	}
}

// record sends a request to a server that answers with a body, and returns the only file of the recording.
func record(t *testing.T, req *http.Request, header http.Header, answer string) (recording.Exchange, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Scheme, req.URL.Host = at.Scheme, at.Host
	dir := filepath.Join(t.TempDir(), "recording")
	r, err := recording.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: r.Wrap(http.DefaultTransport)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); string(got) != answer || err != nil {
		t.Errorf("the client reads %q, %v", got, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "0001.json")) //nolint:gosec // a file of this test
	if err != nil {
		t.Fatal(err)
	}
	var e recording.Exchange
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e, string(data)
}

// Planted names, PINs, tokens, and addresses appear nowhere, whatever the place.
func TestRecorder_RedactsSecrets(t *testing.T) {
	t.Parallel()
	const answer = `{
		"Jane": 4821, "4821": "x", "jane@home.example": {"lockId": 739151842, "pin": "4821", "code": 4821},
		"access_token": "eyJhbGciOi.locked", "webhook": {"secret": "whsec_c2VjcmV0", "url": "https://home.example/Jane"},
		"name": "locked", "status": "locked", "userName": "jane", "note": "Jane's code is 4821", "ok": true, "none": null,
		"address": {"street": "Elm St", "number": 1428, "lat": 52.5219, "zip": "10117"}, "phone": 4930901820,
		"battery": 87, "voltage": 5.91, "big": 1.5e22, "starts_at": "2026-11-28T15:04:05.25+01:00", "startDate": 1780000000000,
		"list": ["front", {"device_id": "front"}, {"ref": "739151842"}], "emoji": "Jané 🔑!",
		"featureValue": "F44354CD5F3", "errcode": 30007, "errorCode": "LOCK_OFFLINE", "error": "Jane is away", "errorMessage": "Jane"
	}`
	form := url.Values{
		"grant_type":    {"refresh_token"},
		"client_secret": {"our-Secret-4821"},
		"password":      {"password"},
		"username":      {"jane"},
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		"http://x/oauth/token/jane/v1.2/eyJhbGciOi?key=whsec_c2VjcmV0&jane=1", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer eyJhbGciOi")
	header := http.Header{
		"Content-Type": {"application/json; owner=jane"},
		"Retry-After":  {"4821"},
		"Set-Cookie":   {"session=eyJhbGciOi"},
	}
	e, text := record(t, req, header, answer)
	for i, secret := range []string{
		"4821", "jane\"", "jane@", "jané", "739151842", "eyJ", "whsec", "c2Vj", "home", "Elm", "1428", "52.52", "10117",
		"4930901820", "2026-11-28", "1780000000000", "front", "secret-", "🔑",
	} {
		// The name of the parameter "jane" stays: it looks like a field.
		text := strings.ReplaceAll(text, `"jane": [`, "")
		if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
			t.Errorf("the recording contains secret %d", i)
		}
	}
	if e.Path != "/oauth/token/aaaa/v1.2/aaAaaAaaAa" {
		t.Errorf("the path is %s", e.Path)
	}
	if e.Form.Get("grant_type") != "refresh_token" || e.Form.Get("password") != "aaaaaaaa" {
		t.Errorf("the form is %v", e.Form)
	}
	if e.Headers["Content-Type"] != "application/json" || e.Headers["Retry-After"] != "1000" ||
		e.Headers["Set-Cookie"] != "" {
		t.Errorf("the headers are %v", e.Headers)
	}
	var got map[string]any
	if err := json.Unmarshal(e.Response, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"Aaaa": 1000.0, "0000": "a", "access_token": "aaAaaAaaAa.aaaaaa", "name": "aaaaaa", "status": "locked",
		"ok": true, "none": nil, "battery": 87.0, "voltage": 1.0, "phone": 1e9,
		"featureValue": "F44354CD5F3", "errcode": 30007.0, "errorCode": "LOCK_OFFLINE", "error": "Aaaa aa aaaa", "errorMessage": "Aaaa",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if at, _ := got["starts_at"].(string); len(at) != len("2026-11-28T15:04:05.25+01:00") || at[19:] != ".10+01:00" {
		t.Errorf("starts_at has the shape %q", at)
	}
	list, _ := got["list"].([]any)
	byID, _ := list[1].(map[string]any)
	if len(list) != 3 || byID["device_id"] == "" {
		t.Errorf("the list is %v", list)
	}
}

// A response that is no JSON is recorded as its shape, and a failed call without one.
func TestRecorder_OtherResponses(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://x/locks", nil)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := record(t, req, nil, "<h1>Hello Jane</h1>")
	if e.Text != "<a0>Aaaaa Aaaa</a0>" || e.Response != nil {
		t.Errorf("a page is recorded as %q, %s", e.Text, e.Response)
	}
	dir := t.TempDir()
	r, err := recording.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	none := roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	if _, err := r.Wrap(none).RoundTrip(req); err == nil {
		t.Error("a call without a response succeeds")
	}
	if files, err := r.Finish(); files != 1 || err != nil {
		t.Errorf("%d files, %v", files, err)
	}
	if _, err := recording.Replay(filepath.Join(dir, "none")); err == nil {
		t.Error("an absent recording is replayed")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests that differ in their body are told apart, in JSON and in forms, by the placeholders of the recording.
func TestReplay_MatchesBodies(t *testing.T) {
	t.Parallel()
	home := http.NewServeMux()
	home.HandleFunc("/devices/list", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{
			"devices": [{"device_id": "front-7f"}, {"device_id": "back-9c"}],
			"lockIds": [4821001, 4821002]
		}`)
	})
	home.HandleFunc("/codes/list", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID string `json:"device_id"`
		}
		if r.Header.Get("Content-Type") != "application/json" {
			_, _ = io.WriteString(
				w,
				`{"lock": `+map[string]string{"4821001": "1", "4821002": "2"}[r.FormValue("lockId")]+`}`,
			)
		} else if err := json.NewDecoder(r.Body).Decode(&asked); err == nil {
			_, _ = io.WriteString(w, `{"codes": `+map[string]string{"front-7f": "1", "back-9c": "2"}[asked.ID]+`}`)
		}
	})
	server := httptest.NewServer(home)
	t.Cleanup(server.Close)
	dir := filepath.Join(t.TempDir(), "recording")
	r, err := recording.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := readHome(t, &http.Client{Transport: r.Wrap(http.DefaultTransport)}, server.URL)
	handler, err := recording.Replay(dir)
	if err != nil {
		t.Fatal(err)
	}
	replayed := httptest.NewServer(handler)
	t.Cleanup(replayed.Close)
	for range 2 {
		if again := readHome(t, http.DefaultClient, replayed.URL); again != first || again != "1 2 1 2" {
			t.Errorf("replayed: %q, recorded: %q", again, first)
		}
	}
	expectNone(t, dir, []string{"front", "back", "7f", "9c", "4821"})
	res, err := http.Get(replayed.URL + "/others")
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusNotFound {
		t.Errorf("another request: %s", res.Status)
	}
}

// readHome reads the devices, and then what each has, by JSON and by form.
func readHome(t *testing.T, client *http.Client, at string) string {
	t.Helper()
	read := func(path, kind, body string, out any) {
		t.Helper()
		res, err := client.Post(at+path, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	var home struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
		LockIDs []json.Number `json:"lockIds"`
	}
	read("/devices/list", "application/json", `{"since": "2026-11-28T15:04:05Z", "limit": 500}`, &home)
	var found []string
	for _, d := range home.Devices {
		var got struct{ Codes json.Number }
		read("/codes/list", "application/json", `{"device_id": "`+d.ID+`"}`, &got)
		found = append(found, got.Codes.String())
	}
	for _, id := range home.LockIDs {
		var got struct{ Lock json.Number }
		form := url.Values{"lockId": {id.String()}, "date": {"1780000000000"}}
		read("/codes/list", "application/x-www-form-urlencoded", form.Encode(), &got)
		found = append(found, got.Lock.String())
	}
	return strings.Join(found, " ")
}
