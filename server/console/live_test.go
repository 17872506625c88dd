package console_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// revocable are operators whose sessions can be revoked.
type revocable struct {
	console.Operators
	revoked atomic.Bool
}

func (o *revocable) FindSession(ctx context.Context, token string) (operator.Session, error) {
	if o.revoked.Load() {
		return operator.Session{}, &domain.Error{Kind: domain.Unauthorized, Type: "session_not_found"}
	}
	return o.Operators.FindSession(ctx, token)
}

// newLiveBed is newBed with a console with short intervals.
func newLiveBed(
	t *testing.T,
	live console.LiveOptions,
	opts ...apptest.Option,
) (*bed, *revocable, *httptest.Server) {
	t.Helper()
	b := newBed(t, append(opts, apptest.WithProfiles("august"))...)
	operators := &revocable{Operators: b.App.Access.Operators}
	c := httptest.NewServer(console.New(console.Options{
		Access:    b.App.Access,
		ACS:       b.App.ACS,
		Operators: operators,
		Live:      live,
	}))
	t.Cleanup(c.Close)
	b.console = c.URL
	return b, operators, c
}

// stream opens a stream of the workspace. The stream ends with the test.
func stream(t *testing.T, b *bed, query string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(time.Minute))
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.page("/live"+query), nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := b.session(t, domain.RoleViewer)
	r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: token})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// next returns the lines of a stream until one begins with a text, or until its end.
func next(t *testing.T, lines *bufio.Scanner, begin string) (seen []string, found bool) {
	t.Helper()
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if strings.HasPrefix(lines.Text(), begin) {
			return seen, true
		}
	}
	if errors.Is(lines.Err(), context.DeadlineExceeded) {
		t.Fatalf("the stream did not end; it sent %q", seen)
	}
	return seen, false
}

func TestLive_SendsChanges(t *testing.T) {
	t.Parallel()
	b, _, _ := newLiveBed(t, console.LiveOptions{Poll: 20 * time.Millisecond, Heartbeat: 50 * time.Millisecond})
	resp := stream(t, b, "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream begins with %s %v", resp.Status, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	if _, ok := next(t, lines, ": live"); !ok {
		t.Fatal("the stream does not begin")
	}
	seen, _ := next(t, lines, ": ")
	for _, line := range seen {
		if strings.HasPrefix(line, "event:") {
			t.Errorf("an event before any change: %q", seen)
		}
	}
	createCode(t, b, b.Device(t, "august"), "New")
	seen, ok := next(t, lines, "event: changed")
	if !ok {
		t.Fatalf("no event after a change: %q", seen)
	}
	id, _ := strings.CutPrefix(seen[len(seen)-2], "id: ")
	if id == "" {
		t.Fatalf("the event has no identifier: %q", seen)
	}
	if seen, ok := next(t, lines, "data: "); !ok || len(seen) != 1 {
		t.Errorf("the event has no data, so browsers ignore it: %q", seen)
	}
}

func TestLive_ResumesAfterPosition(t *testing.T) {
	t.Parallel()
	b, _, _ := newLiveBed(t, console.LiveOptions{Poll: 20 * time.Millisecond})
	createCode(t, b, b.Device(t, "august"), "New")
	for _, since := range []string{"1000", "1000-1"} {
		if seen, ok := next(t, bufio.NewScanner(stream(t, b, "?since="+since).Body), "event: changed"); !ok {
			t.Errorf("no event about changes after %s: %q", since, seen)
		}
	}
}

func TestLive_EndsWithSession(t *testing.T) {
	t.Parallel()
	b, operators, _ := newLiveBed(t, console.LiveOptions{Recheck: 20 * time.Millisecond})
	lines := bufio.NewScanner(stream(t, b, "").Body)
	next(t, lines, ": live")
	operators.revoked.Store(true)
	next(t, lines, "end")
}

// Requests that a page sends without the operator do not extend the session.
func TestLive_OpenPageEndsWithIdleLimit(t *testing.T) {
	t.Parallel()
	clock := newClock()
	b, _, _ := newLiveBed(t, console.LiveOptions{Recheck: 20 * time.Millisecond}, clock.option())
	b.open(t, domain.RoleViewer, "/people").shows(t, http.StatusOK)
	clock.pass(operator.IdleTimeout - time.Minute)
	lines := bufio.NewScanner(stream(t, b, "").Body)
	next(t, lines, ": live")
	refresh := func() answer {
		return b.send(t, domain.RoleViewer, http.MethodGet, b.page("/people"), nil, func(r *http.Request) {
			r.Header.Set("Deviceaccess-Refresh", "1")
		})
	}
	refresh().shows(t, http.StatusOK)
	clock.pass(time.Minute)
	if seen, _ := next(t, lines, "event: "); len(seen) > 0 && strings.HasPrefix(seen[len(seen)-1], "event: ") {
		t.Errorf("the stream goes on: %q", seen)
	}
	got := refresh()
	if to := got.Header.Get("Location"); got.StatusCode != http.StatusSeeOther || !strings.Contains(to, "/sign-in") {
		t.Errorf("after the idle limit, a refresh has status %s and leads to %q", got.Status, to)
	}
}

// An open page does not keep its session, and leads to the sign-in when it has ended.
func TestLive_IdlePageLeadsToSignIn(t *testing.T) {
	t.Parallel()
	clock := newClock()
	b, _, _ := newLiveBed(t, console.LiveOptions{
		Poll:    50 * time.Millisecond,
		Recheck: 50 * time.Millisecond,
	}, clock.option())
	w := browser.Open(t)
	w.Do(b.signIn(t, domain.RoleOperator), chromedp.Navigate(b.page("/people")),
		browser.Shows("button[@aria-pressed='true']", "Live"), browser.Shows("p", "No people here"))
	clock.pass(operator.IdleTimeout - time.Minute)
	b.Post(t, "/user_identities/create", map[string]any{"full_name": "Ada Adams"}, nil)
	w.Do(browser.Shows("a", "Ada Adams"))
	clock.pass(time.Minute)
	w.Do(browser.Shows("h1", "Sign in"))
	if at := browser.Ask(w, chromedp.Location()); !strings.Contains(at, "next=") {
		t.Errorf("the sign-in does not lead back: %s", at)
	}
}

func TestLive_LimitsStreams(t *testing.T) {
	t.Parallel()
	b, _, _ := newLiveBed(t, console.LiveOptions{})
	var first *http.Response
	for range 5 {
		resp := stream(t, b, "")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("a stream within the limit: %s", resp.Status)
		}
		first = resp
	}
	if resp := stream(t, b, ""); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one stream too many: %s", resp.Status)
	}
	_ = first.Body.Close()
	apptest.Until(t, "another stream opens", func() bool { return stream(t, b, "").StatusCode == http.StatusOK })
}

func TestLive_EndsWithServer(t *testing.T) {
	t.Parallel()
	b, _, server := newLiveBed(t, console.LiveOptions{})
	lines := bufio.NewScanner(stream(t, b, "").Body)
	next(t, lines, ": live")
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(30*time.Second))
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("the shutdown waits for the stream: %v", err)
	}
	next(t, lines, "end")
}

func TestLive_PageRefreshesItself(t *testing.T) {
	t.Parallel()
	b, _, _ := newLiveBed(t, console.LiveOptions{Poll: 50 * time.Millisecond})
	w := browser.Open(t)
	w.Do(b.signIn(t, domain.RoleOperator), chromedp.Navigate(b.page("/people")),
		browser.Shows("button[@aria-pressed='true']", "Live"), browser.Shows("p", "No people here"))
	if status := b.Post(
		t,
		"/user_identities/create",
		map[string]any{"full_name": "Ada Adams"},
		nil,
	); status != http.StatusOK {
		t.Fatalf("create a person: %d", status)
	}
	w.Do(browser.Shows("a", "Ada Adams"), chromedp.Focus(chromedp.CSS("#live a.row-link")))
	b.Post(t, "/user_identities/create", map[string]any{"full_name": "Bo Brown"}, nil)
	w.Do(browser.Shows("a", "Bo Brown"))
	if focus := browser.Ask(w, chromedp.Evaluate[string](`document.activeElement.textContent`)); focus != "Ada Adams" {
		t.Errorf("the focus moved to %q", focus)
	}
	w.Do(chromedp.Click(chromedp.CSS("[data-live-switch]")), browser.Shows("button[@aria-pressed='false']", "Live"))
	w.Do(chromedp.Navigate(b.page("/people")), browser.Shows("button[@aria-pressed='false']", "Live"))
	w.CheckReports()
	w.CheckRequests(b.console)
}
