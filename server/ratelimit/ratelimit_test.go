package ratelimit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// clocked is a counter whose time is ours.
func clocked(l Limits) (*Limiter, *time.Time) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(l)
	c.now = func() time.Time { return now }
	return c, &now
}

func TestGuessesOfOneAddressAreLimited(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{FailuresPerMinute: 6})
	const here, there = "192.0.2.1", "192.0.2.2"
	c.RecordVerdict(here, "good", Valid)
	for i := range 12 { // twice as many at once
		if after := c.Admit(here, "guess"); after != 0 {
			t.Fatalf("guess %d waits for %s", i, after)
		}
		c.RecordVerdict(here, "guess", Invalid)
	}
	if after := c.Admit(here, "another"); after <= 9*time.Second || after > 10*time.Second {
		t.Errorf("one more waits for %s, want a minute's sixth", after)
	}
	if after := c.Admit(here, "good"); after != 0 {
		t.Errorf("what was good from there waits for %s", after)
	}
	if after := c.Admit(there, "guess"); after != 0 {
		t.Errorf("another address waits for %s", after)
	}
	*now = now.Add(10 * time.Second)
	if after := c.Admit(here, "another"); after != 0 {
		t.Errorf("after that long one waits for %s", after)
	}
	c.RecordVerdict(here, "good", Invalid) // revoked
	if after := c.Admit(here, "good"); after == 0 {
		t.Error("what is good no more is looked into without end")
	}
}

func TestConcurrentGuessesAreLimited(t *testing.T) {
	t.Parallel()
	c, _ := clocked(Limits{FailuresPerMinute: 6})
	const here = "192.0.2.1"
	admitted := 0
	for i := range 1000 { // all have come before the first is looked into
		if c.Admit(here, strconv.Itoa(i)) == 0 {
			admitted++
		}
		if after := c.Admit(here, "0"); after != 0 {
			t.Fatalf("the same once more waits for %s", after)
		}
	}
	if admitted != 12 {
		t.Errorf("%d guesses are looked into at once, want 12", admitted)
	}
	for i := range 12 {
		c.RecordVerdict(here, strconv.Itoa(i), Valid)
	}
	for range 1000 {
		c.RecordVerdict(here, "0", Undecided)
	}
	if after := c.Admit(here, "another"); after != 0 {
		t.Errorf("after credentials that were good one waits for %s", after)
	}
}

func TestValidCredentialsAreRemembered(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{FailuresPerMinute: 6})
	const here = "192.0.2.1"
	for i := range 2 * maxValidCredentials {
		*now = now.Add(time.Second)
		c.RecordVerdict(here, strconv.Itoa(i), Valid)
	}
	for range 12 {
		c.RecordVerdict(here, "guess", Invalid)
	}
	if after := c.Admit(here, strconv.Itoa(2*maxValidCredentials-1)); after != 0 {
		t.Errorf("the last one waits for %s", after)
	}
	if after := c.Admit(here, "0"); after == 0 {
		t.Error("more than are kept are known")
	}
	if n := len(c.known["address/"+here].valid); n != maxValidCredentials {
		t.Errorf("%d are kept", n)
	}
}

func TestRequestsOfOneCredentialAreLimited(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{RequestsPerSecond: 5})
	for i := range 10 {
		if after := c.Request("a"); after != 0 {
			t.Fatalf("request %d waits for %s", i, after)
		}
	}
	if after := c.Request("a"); after != 200*time.Millisecond {
		t.Errorf("one more waits for %s", after)
	}
	if after := c.Request("b"); after != 0 {
		t.Errorf("another's waits for %s", after)
	}
	*now = now.Add(time.Second)
	for i := range 5 {
		if after := c.Request("a"); after != 0 {
			t.Errorf("a second later request %d waits for %s", i, after)
		}
	}
}

func TestCallersAreForgotten(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{FailuresPerMinute: 1})
	for i := range 2 * maxCallers {
		c.RecordVerdict(strconv.Itoa(i), "guess", Invalid)
	}
	if len(c.known) > maxCallers {
		t.Errorf("%d are remembered", len(c.known))
	}
	*now = now.Add(idleAfter + time.Second)
	c.RecordVerdict("last", "guess", Invalid)
	if len(c.known) != 1 {
		t.Errorf("%d are remembered when all but one are quiet", len(c.known))
	}
}

// Requests without a known address share a limit, so that guesses stay limited.
func TestGuessesWithoutAddressAreLimited(t *testing.T) {
	t.Parallel()
	c, _ := clocked(Limits{FailuresPerMinute: 6})
	admitted := 0
	for i := range 150 {
		if guess := strconv.Itoa(i); c.Admit("", guess) == 0 {
			admitted++
			c.RecordVerdict("", guess, Invalid)
		}
	}
	if admitted != 12 {
		t.Errorf("%d guesses are looked into, want 12", admitted)
	}
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		remote, forwarded string
		trust             bool
		want              string
	}{
		{"192.0.2.1:1234", "", false, "192.0.2.1"},
		{"192.0.2.1:1234", "203.0.113.1", false, "192.0.2.1"},
		{"192.0.2.1:1234", "203.0.113.1", true, "203.0.113.1"},
		{"192.0.2.1:1234", "203.0.113.1, 203.0.113.2 ", true, "203.0.113.2"},
		{"192.0.2.1:1234", "2001:db8:1:2:3:4:5:6", true, "2001:db8:1:2::/64"},
		{"192.0.2.1:1234", "::ffff:203.0.113.1", true, "203.0.113.1"},
		{"192.0.2.1:1234", "[2001:db8::1]:80", true, "2001:db8::/64"},
		{"[fe80::1%eth0]:1234", "", false, "fe80::/64"},
		{"192.0.2.1:1234", "[2001:db8::1]", true, "2001:db8::/64"},
		{"192.0.2.1:1234", "203.0.113.1:80", true, "203.0.113.1"},
		{"192.0.2.1:1234", "unknown", true, "192.0.2.1"},
		{"192.0.2.1:1234", "203.0.113.1, unknown", true, "192.0.2.1"},
		{"192.0.2.1:1234", "203.0.113.1,", true, "192.0.2.1"},
		{"192.0.2.1:1234", "[2001:db8::1", true, "192.0.2.1"},
		{"[2001:db8::1]:1234", "[unknown]:80", true, "2001:db8::/64"},
		{"@", "", false, ""},
		{"@", "unknown", true, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = test.remote
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := AddressOf(r, test.trust); got != test.want {
			t.Errorf("%s: %q", fmt.Sprint(test), got)
		}
	}
}

// Other guesses count like invalid credentials, also while they are checked.
func TestOtherGuessesAreCountedWithCredentials(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{FailuresPerMinute: 6})
	g := c
	const here, there = "192.0.2.1", "192.0.2.2"
	var told []func(bool)
	for range 12 {
		after, one := g.Guess(here)
		if after != 0 {
			t.Fatalf("%d guesses at once are too many", len(told)+1)
		}
		told = append(told, one)
	}
	if after, _ := g.Guess(here); after == 0 {
		t.Error("any number of guesses is looked into at once")
	}
	for i, one := range told {
		one(i < 11) // the last one was none
	}
	if after, one := g.Guess(here); after != 0 {
		t.Errorf("what was no guess counts: %v", after)
	} else {
		one(true)
	}
	if after := c.Admit(here, "a credential"); after <= 9*time.Second || after > 10*time.Second {
		t.Errorf("a credential after that waits for %v", after)
	}
	if after, _ := g.Guess(there); after != 0 {
		t.Errorf("another address waits for %v", after)
	}
	*now = now.Add(10 * time.Second)
	if after, _ := g.Guess(here); after != 0 {
		t.Errorf("after 10 s: %v", after)
	}
	free := New(Limits{})
	for range 100 {
		after, one := free.Guess(here)
		if after != 0 {
			t.Fatal("requests are limited without a limit")
		}
		one(true)
	}
}

func TestWorkspaceCreationIsRateLimited(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{WorkspacesPerMinute: 20})
	for i := range 20 {
		if after := c.Workspace("a"); after != 0 {
			t.Fatalf("workspace %d waits for %s", i, after)
		}
	}
	for range 100 { // which do not count
		if after := c.Workspace("a"); after != 3*time.Second {
			t.Fatalf("one more waits for %s", after)
		}
	}
	if after := c.Workspace("b"); after != 0 {
		t.Errorf("another's waits for %s", after)
	}
	if after := c.Request("a"); after != 0 {
		t.Errorf("another request waits for %s", after)
	}
	*now = now.Add(3 * time.Second)
	if after := c.Workspace("a"); after != 0 {
		t.Errorf("3 s later one waits for %s", after)
	}
	if after := c.Workspace("a"); after != 3*time.Second {
		t.Errorf("3 s later a second one waits for %s", after)
	}
	free, _ := clocked(Limits{})
	for range 100 {
		if free.Workspace("a") != 0 {
			t.Fatal("workspaces are limited without a limit")
		}
	}
}

func TestRequestsOfSessionsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{SessionRequestsPerSecond: 2})
	for i := range 20 {
		if after := c.Session("a"); after != 0 {
			t.Fatalf("request %d waits for %s", i, after)
		}
	}
	if after := c.Session("a"); after != time.Second/2 {
		t.Errorf("one more waits for %s", after)
	}
	if after := c.Session("b"); after != 0 {
		t.Errorf("that of another address waits for %s", after)
	}
	*now = now.Add(time.Second / 2)
	if after := c.Session("a"); after != 0 {
		t.Errorf("half a second later one waits for %s", after)
	}
	free, _ := clocked(Limits{})
	for range 100 {
		if free.Session("a") != 0 {
			t.Fatal("requests are limited without a limit")
		}
	}
}
