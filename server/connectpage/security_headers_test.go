package connectpage_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// TestPagesAreClosedToOtherSites checks the security headers and the rejection of foreign forms.
func TestPagesAreClosedToOtherSites(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(
		t,
		s,
		map[string]any{
			"custom_redirect_url":         "https://app.example/x",
			"custom_redirect_failure_url": "http://other.example:8080",
		},
	)
	send := func(method, path, body string, header map[string]string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			req.Header.Set(name, value)
		}
		res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(
			req,
		)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	res := send(http.MethodGet, w.URL+"/nuki", "", nil)
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self' https://app.example http://other.example:8080; base-uri 'none'; frame-ancestors 'none'",
		"Referrer-Policy":         "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := res.Header.Get(header); got != want {
			t.Errorf("%s is %q", header, got)
		}
	}
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	good := "email=jane%40example.com&password=1234"
	for name, header := range map[string]map[string]string{
		"another site": {"Sec-Fetch-Site": "cross-site", "Origin": s.URL}, "an older browser at another site": {"Origin": "https://evil.example"}, "a neighbour": {"Sec-Fetch-Site": "same-site"},
	} {
		header["Content-Type"] = form["Content-Type"]
		if res := send(http.MethodPost, w.URL+"/nuki", good, header); res.StatusCode != http.StatusForbidden {
			t.Errorf("a form of %s: %s", name, res.Status)
		}
	}
	if res := send(
		http.MethodPost,
		w.URL+"/nuki",
		"email="+strings.Repeat("x", 20<<10),
		form,
	); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a form that is too long: %s", res.Status)
	}
	if res := send(http.MethodPost, w.URL+"/nuki?"+good, "", form); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a password in the URL: %s", res.Status)
	}
	for name, email := range map[string]string{"a control character": "jane%00%40example.com", "no text": "jane%ff%40example.com", "far too much": strings.Repeat("x", 513)} {
		if res := send(
			http.MethodPost,
			w.URL+"/nuki",
			"password=1234&email="+email,
			form,
		); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	if got := now(t, s, w); got.Status != "pending" {
		t.Errorf("the webview is %s: an invalid form was tried", got.Status)
	}
	restored := map[string]string{"Content-Type": form["Content-Type"], "Sec-Fetch-Site": "none"}
	if res := send(http.MethodPost, w.URL+"/nuki", good, restored); res.StatusCode == http.StatusForbidden {
		t.Errorf("a form that a person sends again: %s", res.Status)
	}
}

// HEAD has the status and the headers of GET, without a body.
func TestHeadIsAnsweredLikeGet(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	choice, single, ended := webview(
		t,
		s,
		nil,
	), webview(
		t,
		s,
		map[string]any{"accepted_providers": []string{"nuki"}},
	), webview(
		t,
		s,
		nil,
	)
	res, err := http.Post(
		ended.URL+"/nuki",
		"application/x-www-form-urlencoded",
		strings.NewReader("email=jane%40example.com&password=1234"),
	)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, url string) (*http.Response, string) {
		t.Helper()
		return visit(t, &client, method, url, nil)
	}
	for url, want := range map[string]int{
		choice.URL: http.StatusOK, choice.URL + "/nuki": http.StatusOK, single.URL: http.StatusSeeOther, ended.URL: http.StatusOK, choice.URL + "/look.css": http.StatusOK,
		s.URL + "/connect/assets/page.css": http.StatusOK, s.URL + "/connect/assets/icon.svg": http.StatusOK, s.URL + "/connect/assets/none": http.StatusNotFound,
		choice.URL + "x": http.StatusNotFound, choice.URL + "/none": http.StatusNotFound, choice.URL + "/give_up": http.StatusNotFound,
	} {
		head, body := ask(http.MethodHead, url)
		get, _ := ask(http.MethodGet, url)
		if head.StatusCode != want || get.StatusCode != want || body != "" {
			t.Errorf(
				"%s: HEAD is answered %s with %d bytes, GET %s, want %d",
				url,
				head.Status,
				len(body),
				get.Status,
				want,
			)
		}
		for _, header := range []string{"Content-Type", "Location", "Cache-Control", "Content-Security-Policy", "Referrer-Policy"} {
			if head.Header.Get(header) != get.Header.Get(header) {
				t.Errorf(
					"%s: %s is %q for HEAD and %q for GET",
					url,
					header,
					head.Header.Get(header),
					get.Header.Get(header),
				)
			}
		}
	}
	if got := now(t, s, choice); got.Status != "pending" {
		t.Errorf("HEAD changed the webview to %s", got.Status)
	}
}

// logged is a log that is read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLogHasNoPathsOrPasswords(t *testing.T) {
	t.Parallel()
	var log logged
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w := webview(t, s, nil)
	for _, form := range []string{"email=jane%40example.com&password=mistyped-secret", "email=jane%40example.com&password=%zz-mistyped-secret", "email=jane%40example.com&password=1234"} {
		res, err := http.Post(w.URL+"/nuki", "application/x-www-form-urlencoded", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if now(t, s, w).Status != "authorized" {
		t.Fatal("the login failed")
	}
	token := w.URL[strings.LastIndex(w.URL, "/")+1:]
	for _, secret := range []string{token, "mistyped-secret"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log contains %q", secret)
		}
	}
	if !strings.Contains(log.String(), "connect_webview_id="+w.ConnectWebviewID) {
		t.Error("the log does not say which webview was used")
	}
}

func TestPagesHaveTheLookOfTheirWorkspace(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	read := func(url string) (int, string) {
		t.Helper()
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	if _, page := read(w.URL); strings.Contains(page, "look.css") {
		t.Error("the page has colors without a setting")
	}
	look := map[string]any{
		"primary_button_color":      "#0a7",
		"primary_button_text_color": "white",
		"success_message":           "Welcome to Oak Street",
	}
	if status := s.Post(
		t,
		"/workspaces/update",
		map[string]any{"connect_webview_customization": look, "connect_partner_name": "Oak <Rentals>"},
		nil,
	); status != http.StatusOK {
		t.Fatalf("update the workspace: %d", status)
	}
	token := w.URL[strings.LastIndex(w.URL, "/")+1:]
	for page, link := range map[string]string{w.URL: token + "/look.css", w.URL + "/nuki": "../" + token + "/look.css"} {
		if _, body := read(
			page,
		); !strings.Contains(body, `href="`+link+`"`) ||
			!strings.Contains(body, "<bdi>Oak &lt;Rentals&gt;</bdi>") {
			t.Errorf("the page is %s", body)
		}
	}
	if _, css := read(
		w.URL + "/look.css",
	); !strings.Contains(css, "--button: #00aa77;") ||
		!strings.Contains(css, "--on-button: #000000;") { // white is not readable on it
		t.Errorf("the colors are %q", css)
	}
	if _, err := http.Post(
		w.URL+"/nuki",
		"application/x-www-form-urlencoded",
		strings.NewReader("email=jane%40example.com&password=1234"),
	); err != nil {
		t.Fatal(err)
	}
	if _, body := read(w.URL); !strings.Contains(body, "Welcome to Oak Street") {
		t.Errorf("the end is %s", body)
	}
	if status := s.Post(t, "/workspaces/update", map[string]any{"is_suspended": true}, nil); status != http.StatusOK {
		t.Fatalf("suspend the workspace: %d", status)
	}
	if status, _ := read(w.URL); status != http.StatusNotFound {
		t.Errorf("a page of a suspended workspace: %d", status)
	}
}

// visit asks for a page, or fills in the form on it.
func visit(t *testing.T, client *http.Client, method, at string, form url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}
