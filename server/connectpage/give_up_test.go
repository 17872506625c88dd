package connectpage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// After a login on one copy of the page, giving up on another copy does not report a failure.
func TestGiveUp_AfterLogin(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	browser := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(path string, form url.Values) (led string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %s", path, res.Status)
		}
		return res.Header.Get("Location")
	}
	for name, to := range map[string]map[string]any{
		"with somewhere to go": {"custom_redirect_url": "https://app.example/done", "custom_redirect_failure_url": "https://app.example/failed"},
		"with nowhere to go":   {"custom_redirect_failure_url": "https://app.example/failed"},
	} {
		w := webview(t, s, to)
		if led := send(w.URL+"/give_up", nil); !strings.HasPrefix(led, "https://app.example/failed?") {
			t.Errorf("%s, who gives up is led to %s", name, led)
		}
		send(w.URL+"/nuki", url.Values{"email": {"jane@example.com"}, "password": {"1234"}})
		apptest.Until(t, "the login is through", func() bool { return now(t, s, w).Status == "authorized" })
		want := "../" + w.URL[strings.LastIndex(w.URL, "/")+1:]
		if to["custom_redirect_url"] != nil {
			want = "https://app.example/done?"
		}
		if led := send(w.URL+"/give_up", nil); !strings.HasPrefix(led, want) {
			t.Errorf("%s, who has logged in and gives up is led to %s, want %s", name, led, want)
		}
	}
}
