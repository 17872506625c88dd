package rest

import (
	"fmt"
	"testing"
	"time"
)

func TestRepeatsPerKeyAreLimited(t *testing.T) {
	t.Parallel()
	now := longAgo
	c := newRepeats()
	c.now = func() time.Time { return now }
	one := keyRequest{"token", workspaceA.String(), "/access_codes/create", "k", ""}
	come := func(times int) {
		t.Helper()
		for n := range times {
			if after, _ := c.admit(one); after != 0 {
				t.Fatalf("request %d waits for %s", n+1, after)
			}
		}
	}
	waits := func(want time.Duration) {
		t.Helper()
		for range 2 { // those that have to wait make it no longer
			if after, _ := c.admit(one); after != want {
				t.Fatalf("one more waits for %s, want %s", after, want)
			}
		}
	}
	come(maxRepeats)
	waits(2 * repeatsWindow)
	for name, other := range map[string]keyRequest{
		"of another sender": {"other", one.workspaceID, one.operation, one.key, ""}, "in another workspace": {one.sender, workspaceB.String(), one.operation, one.key, ""},
		"of another operation": {one.sender, one.workspaceID, "/webhooks/create", one.key, ""}, "that is another": {one.sender, one.workspaceID, one.operation, "k2", ""},
		"for something else": {one.sender, one.workspaceID, one.operation, one.key, "{}"},
	} {
		if after, _ := c.admit(other); after != 0 {
			t.Errorf("a key %s waits for %s", name, after)
		}
	}
	now = now.Add(repeatsWindow)
	waits(repeatsWindow)
	now = now.Add(repeatsWindow)
	come(maxRepeats / 2)
	now = now.Add(repeatsWindow)
	come(maxRepeats / 2)
	waits(repeatsWindow)
	now = now.Add(5 * repeatsWindow)
	come(maxRepeats - 1)
	_, unanswered := c.admit(one)
	waits(2 * repeatsWindow)
	unanswered()
	come(1)
	waits(2 * repeatsWindow)
	now = now.Add(2*repeatsWindow - time.Second) // the previous span has ended without requests
	waits(time.Second)
	now = now.Add(time.Second)
	come(maxRepeats)
}

func TestRepeatedKeysAreBounded(t *testing.T) {
	t.Parallel()
	c := newRepeats()
	c.now = func() time.Time { return longAgo }
	for n := range 3 * maxRepeatedKeys {
		if after, _ := c.admit(keyRequest{key: fmt.Sprint(n)}); after != 0 {
			t.Fatalf("key %d waits for %s", n, after)
		}
	}
	if n := len(c.current) + len(c.previous); n > 2*maxRepeatedKeys {
		t.Errorf("%d keys are counted", n)
	}
}
