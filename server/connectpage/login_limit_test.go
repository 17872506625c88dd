package connectpage_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

// A webview allows ten logins, but clients can create any number of webviews. So failures also count per address,
// together with invalid credentials. Each server counts separately.
func TestGuessesAreCountedByAddress(t *testing.T) {
	t.Parallel()
	const perMinute = 2
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.Limits, c.TrustProxy = ratelimit.Limits{FailuresPerMinute: perMinute}, true
	})
	logIn := func(page, from, password string) (*http.Response, string) {
		t.Helper()
		form := url.Values{"email": {"jane@example.com"}, "password": {password}}
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			strings.Replace(page, s.URL, s.App.URL, 1)+"/nuki",
			strings.NewReader(form.Encode()),
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Forwarded-For", from)
		res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(
			req,
		)
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
	const here, there = "192.0.2.1", "192.0.2.2"
	began := time.Now()
	w := webview(t, s, nil)
	res, body := logIn(w.URL, here, "guess")
	for n := 1; res.StatusCode == http.StatusUnprocessableEntity; n++ {
		if most := 2*perMinute + perMinute*time.Since(began).Minutes(); float64(n) > most+1 {
			t.Fatalf("%d wrong passwords from one address, each on a page of its own, and none too many", n)
		}
		w = webview(t, s, nil)
		res, body = logIn(w.URL, here, "guess")
	}
	if after, err := strconv.Atoi(
		res.Header.Get("Retry-After"),
	); res.StatusCode != http.StatusTooManyRequests || err != nil || after < 1 ||
		after > 30 {
		t.Fatalf("too many: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, "too many failed logins from your network") ||
		!strings.Contains(body, "jane@example.com") ||
		strings.Contains(body, "guess") {
		t.Errorf("the page is %s", body)
	}
	if got := now(t, s, w); got.Status != "pending" {
		t.Errorf("the webview is %s: a login that was not tried counts", got.Status)
	}
	if res, _ := logIn(w.URL, there, "1234"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("from elsewhere: %s", res.Status)
	}
	// Failed logins and invalid credentials share a limit.
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		s.App.URL+"/devices/list",
		strings.NewReader("{}"),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer seam_guess_1")
	req.Header.Set("X-Forwarded-For", here)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a bad credential from there: %s", answer.Status)
	}
}

// Successful logins are not guesses.
func TestGoodLoginsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		func(c *app.Config) { c.Limits = ratelimit.Limits{FailuresPerMinute: 1} },
	)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for n := range 5 {
		res, err := client.PostForm(
			webview(t, s, nil).URL+"/nuki",
			url.Values{"email": {"jane@example.com"}, "password": {"1234"}},
		)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusSeeOther {
			t.Fatalf("login %d: %s", n, res.Status)
		}
	}
}
