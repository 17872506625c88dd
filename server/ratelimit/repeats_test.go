package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

func TestRepeatsPerKeyAreLimited(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := NewRepeats()
	c.now = func() time.Time { return now }
	one := KeyRequest{"token", "00000000-0000-4000-8000-000000000001", "/access_codes/create", "k", ""}
	come := func(times int) {
		t.Helper()
		for n := range times {
			if after, _ := c.Admit(one); after != 0 {
				t.Fatalf("request %d waits for %s", n+1, after)
			}
		}
	}
	waits := func(want time.Duration) {
		t.Helper()
		for range 2 { // those that have to wait make it no longer
			if after, _ := c.Admit(one); after != want {
				t.Fatalf("one more waits for %s, want %s", after, want)
			}
		}
	}
	come(MaxRepeats)
	waits(2 * RepeatsWindow)
	for name, other := range map[string]KeyRequest{
		"of another sender":    {"other", one.WorkspaceID, one.Operation, one.Key, ""},
		"in another workspace": {one.Sender, "00000000-0000-4000-8000-000000000002", one.Operation, one.Key, ""},
		"of another operation": {one.Sender, one.WorkspaceID, "/webhooks/create", one.Key, ""},
		"that is another":      {one.Sender, one.WorkspaceID, one.Operation, "k2", ""},
		"for something else":   {one.Sender, one.WorkspaceID, one.Operation, one.Key, "{}"},
	} {
		if after, _ := c.Admit(other); after != 0 {
			t.Errorf("a key %s waits for %s", name, after)
		}
	}
	now = now.Add(RepeatsWindow)
	waits(RepeatsWindow)
	now = now.Add(RepeatsWindow)
	come(MaxRepeats / 2)
	now = now.Add(RepeatsWindow)
	come(MaxRepeats / 2)
	waits(RepeatsWindow)
	now = now.Add(5 * RepeatsWindow)
	come(MaxRepeats - 1)
	_, unanswered := c.Admit(one)
	waits(2 * RepeatsWindow)
	unanswered()
	come(1)
	waits(2 * RepeatsWindow)
	now = now.Add(2*RepeatsWindow - time.Second) // the previous span has ended without requests
	waits(time.Second)
	now = now.Add(time.Second)
	come(MaxRepeats)
}

func TestRepeatedKeysAreBounded(t *testing.T) {
	t.Parallel()
	c := NewRepeats()
	c.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	for n := range 3 * maxRepeatedKeys {
		if after, _ := c.Admit(KeyRequest{Key: fmt.Sprint(n)}); after != 0 {
			t.Fatalf("key %d waits for %s", n, after)
		}
	}
	if n := len(c.current) + len(c.previous); n > 2*maxRepeatedKeys {
		t.Errorf("%d keys are counted", n)
	}
}
