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
	one := repeated{"token", workspaceA.String(), "/access_codes/create", "k", ""}
	come := func(times int) {
		t.Helper()
		for n := range times {
			if after, _ := c.come(one); after != 0 {
				t.Fatalf("request %d waits for %s", n+1, after)
			}
		}
	}
	waits := func(want time.Duration) {
		t.Helper()
		for range 2 { // those that have to wait make it no longer
			if after, _ := c.come(one); after != want {
				t.Fatalf("one more waits for %s, want %s", after, want)
			}
		}
	}
	come(mostRepeats)
	waits(2 * repeatsSpan)
	for name, other := range map[string]repeated{
		"of another sender": {"other", one.workspaceID, one.operation, one.key, ""}, "in another workspace": {one.sender, workspaceB.String(), one.operation, one.key, ""},
		"of another operation": {one.sender, one.workspaceID, "/webhooks/create", one.key, ""}, "that is another": {one.sender, one.workspaceID, one.operation, "k2", ""},
		"for something else": {one.sender, one.workspaceID, one.operation, one.key, "{}"},
	} {
		if after, _ := c.come(other); after != 0 {
			t.Errorf("a key %s waits for %s", name, after)
		}
	}
	now = now.Add(repeatsSpan)
	waits(repeatsSpan)
	now = now.Add(repeatsSpan)
	come(mostRepeats / 2)
	now = now.Add(repeatsSpan)
	come(mostRepeats / 2)
	waits(repeatsSpan)
	now = now.Add(5 * repeatsSpan)
	come(mostRepeats - 1)
	_, unanswered := c.come(one)
	waits(2 * repeatsSpan)
	unanswered()
	come(1)
	waits(2 * repeatsSpan)
	now = now.Add(2*repeatsSpan - time.Second) // the previous span has ended without requests
	waits(time.Second)
	now = now.Add(time.Second)
	come(mostRepeats)
}

func TestRepeatedKeysAreBounded(t *testing.T) {
	t.Parallel()
	c := newRepeats()
	c.now = func() time.Time { return longAgo }
	for n := range 3 * mostRepeated {
		if after, _ := c.come(repeated{key: fmt.Sprint(n)}); after != 0 {
			t.Fatalf("key %d waits for %s", n, after)
		}
	}
	if n := len(c.current) + len(c.previous); n > 2*mostRepeated {
		t.Errorf("%d keys are counted", n)
	}
}
