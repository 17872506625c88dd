package connectpage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A page with too many attempts says so to readers and to logins, and never redirects to the success URL.
func TestPageShowsTooManyAttempts(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	browser := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(method, path, password string) (status int, to, page string) {
		t.Helper()
		var form url.Values
		if method == http.MethodPost {
			form = url.Values{"email": {"jane@example.com"}, "password": {password}}
		}
		res, page := visit(t, browser, method, path, form)
		return res.StatusCode, res.Header.Get("Location"), page
	}
	const done, failed = "https://app.example/done", "https://app.example/failed"
	for name, c := range map[string]struct {
		in     map[string]any
		failed bool
	}{
		"with a place for failures": {map[string]any{"accepted_providers": []string{"nuki"}, "custom_redirect_url": done, "custom_redirect_failure_url": failed}, true},
		"with one for success only": {map[string]any{"accepted_providers": []string{"nuki", "yale"}, "custom_redirect_url": done}, false},
		"with none":                 {map[string]any{"accepted_providers": []string{"nuki", "yale"}}, false},
	} {
		w := webview(t, s, c.in)
		for n := range 10 {
			if status, _, _ := send(http.MethodGet, w.URL+"/nuki", ""); status != http.StatusOK {
				t.Fatalf("%s, before try %d: %d", name, n+1, status)
			}
			if status, _, _ := send(
				http.MethodPost,
				w.URL+"/nuki",
				"mistyped",
			); status != http.StatusUnprocessableEntity {
				t.Fatalf("%s, try %d: %d", name, n+1, status)
			}
		}
		says := func(what string, status int, to, page string) {
			t.Helper()
			if status != http.StatusTooManyRequests || to != "" || !strings.Contains(page, "Too many attempts") ||
				strings.Contains(page, "<input") ||
				strings.Contains(page, done) {
				t.Errorf("%s, %s: %d, to %q: %s", name, what, status, to, page)
			}
			if strings.Contains(page, failed+"?connect_webview_id="+w.ConnectWebviewID) != c.failed ||
				strings.Contains(page, "send you a new link") == false {
				t.Errorf("%s, %s, the way on: %s", name, what, page)
			}
		}
		for _, path := range []string{w.URL, w.URL + "/nuki"} {
			status, to, page := send(http.MethodGet, path, "")
			says("who opens "+strings.TrimPrefix(path, w.URL), status, to, page)
		}
		for _, password := range []string{"1234", "mistyped"} {
			status, to, page := send(http.MethodPost, w.URL+"/nuki", password)
			if !c.failed {
				says("who logs in", status, to, page)
			} else if status != http.StatusSeeOther || !strings.HasPrefix(to, failed+"?") {
				t.Errorf("%s, who logs in: %d, to %s", name, status, to)
			}
		}
		if got := now(t, s, w); got.Status != "failed" {
			t.Errorf("%s, it is %s", name, got.Status)
		}
	}
}

// A successful tenth login is valid: its page waits for the devices.
func TestTenthLoginWaitsForDevices(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}, "wait_for_device_creation": true})
	for n := range 10 {
		password := "mistyped"
		if n == 9 {
			password = "1234"
		}
		res, err := http.PostForm(
			w.URL+"/nuki",
			url.Values{"email": {"jane@example.com"}, "password": {password}},
		) // follows to the page that waits
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if want := map[bool]int{true: http.StatusOK, false: http.StatusUnprocessableEntity}[n == 9]; res.StatusCode != want {
			t.Fatalf("try %d: %s", n+1, res.Status)
		}
	}
	res, err := http.Get(w.URL + "/nuki")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the form, once more: %s", res.Status)
	}
	apptest.Until(t, "the login is through", func() bool { return now(t, s, w).Status == "authorized" })
}
