package connectpage_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

const here, there = "192.0.2.1", "192.0.2.2"

// pathOf returns the path of a page, which is the same on all servers.
func pathOf(t *testing.T, page string) string {
	t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

// seen requests a page from a server.
func seen(t *testing.T, s *apptest.Server, from, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodGet,
		s.App.URL+path,
		nil,
	) // of one server, should there be more
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", from)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// The rate limit of an address applies to all pages together. Shared files do not count.
func TestPagesAreRateLimitedByAddress(t *testing.T) {
	t.Parallel()
	const perSecond = 1
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.Limits, c.TrustProxy = ratelimit.Limits{PagesPerSecond: perSecond}, apptest.LocalNetwork()
	})
	page := pathOf(t, webview(t, s, nil).URL)
	began := time.Now()
	n := 0
	res := seen(t, s, here, page)
	for ; res.StatusCode != http.StatusTooManyRequests; res = seen(t, s, here, []string{page, page + "/august", "/connect/nobodys"}[n%3]) {
		n++
		if most := 10*perSecond + perSecond*time.Since(began).Seconds(); float64(n) > most+1 {
			t.Fatalf("%d pages of one address, and none too many", n)
		}
	}
	if after, refresh := res.Header.Get(
		"Retry-After",
	), res.Header.Get(
		"Refresh",
	); n < 10*perSecond || after != "1" ||
		refresh != "1" {
		t.Errorf("page %d is too many; Retry-After is %q, Refresh %q", n+1, after, refresh)
	}
	for _, other := range []struct{ from, path string }{{there, page + "/august"}, {here, "/connect/assets/page.css"}} {
		if res := seen(t, s, other.from, other.path); res.StatusCode != http.StatusOK {
			t.Errorf("%s from %s: %s", other.path, other.from, res.Status)
		}
	}
}

// crowdedServer takes all browsers for people at one address. While crowded is set, others there ask for pages,
// too, just before each request
// of a script; it counts those that it sends away.
func crowdedServer(t *testing.T) (s *apptest.Server, crowded *atomic.Bool, sentAway *atomic.Int32) {
	t.Helper()
	crowded, sentAway = new(atomic.Bool), new(atomic.Int32)
	s = apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.Limits, c.TrustProxy = ratelimit.Limits{PagesPerSecond: 1}, apptest.LocalNetwork()
		around := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			next = around(next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-Forwarded-For", here)
				script := r.Header.Get("HX-Request") != ""
				for full := false; script && crowded.Load() && !full; {
					another := httptest.NewRequestWithContext(r.Context(), http.MethodGet, "/connect/nobodys", nil)
					another.Header.Set("X-Forwarded-For", here)
					answer := httptest.NewRecorder()
					next.ServeHTTP(answer, another)
					full = answer.Code == http.StatusTooManyRequests
				}
				told := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
				next.ServeHTTP(told, r)
				if script && told.Status() == http.StatusTooManyRequests {
					sentAway.Add(1)
				}
			})
		}
	})
	return s, crowded, sentAway
}

// A page that waits for its devices continues while its address is rate-limited.
func TestWaitingPage_RateLimited(t *testing.T) {
	t.Parallel()
	s, crowded, sentAway := crowdedServer(t)
	w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}, "wait_for_device_creation": true})
	gate := s.Gate(t, "before insert", "devices", "true")
	b := browser.Open(t)
	b.Do(chromedp.Navigate(w.URL), enter("jane@example.com", "1234"), browser.Shows("p", "This takes a moment"))
	crowded.Store(true)
	apptest.Until(t, "the page is sent away twice", func() bool { return sentAway.Load() > 1 })
	if title := browser.Ask(b, chromedp.Title()); title != "Looking for your locks" {
		t.Errorf("the page is called %q", title)
	}
	crowded.Store(false)
	gate.Open()
	b.Do(browser.Shows("h1", "Connected"))
	b.CheckReports()
}

// A login rejected by the rate limit keeps the entered values.
func TestRateLimitedLoginKeepsValues(t *testing.T) {
	t.Parallel()
	s, crowded, _ := crowdedServer(t)
	w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}})
	b := browser.Open(t)
	b.Do(chromedp.Navigate(w.URL), browser.Shows("h1", "Log in to Nuki"))
	crowded.Store(true)
	b.Do(enter("jane@example.com", "1234"), browser.Shows(`*[@role="alert"]`, "Many people are using this page"))
	email, password, title := browser.Ask(
		b,
		chromedp.Value(chromedp.CSS("#email")),
	), browser.Ask(
		b,
		chromedp.Value(chromedp.CSS("#password")),
	), browser.Ask(
		b,
		chromedp.Title(),
	)
	if email != "jane@example.com" || password != "1234" || title != "Log in to Nuki" {
		t.Errorf("the page is called %q, with the values %q, %q", title, email, password)
	}
	b.CheckReports()
}
