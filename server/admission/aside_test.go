package admission

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// Who waits for another request has no turn meanwhile, and has one again afterwards.
func TestWhoWaitsForOthersLeavesTheTurn(t *testing.T) {
	t.Parallel()
	c := New(Limits{Turns: 1, Address: func(*http.Request) string { return "somebody" }})
	free := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.free
	}
	h := c.Limit(InTurn(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if free() != 0 {
			t.Error("it works without a turn")
		}
		if err := Aside(r.Context(), func() error {
			if free() != 1 {
				t.Error("it waits with its turn")
			}
			return nil
		}); err != nil || free() != 0 {
			t.Errorf("afterwards %d turns are free, %v", free(), err)
		}
		vain := errors.New("in vain")
		if err := Aside(r.Context(), func() error { return vain }); !errors.Is(err, vain) {
			t.Errorf("got %v", err)
		}
	}), http.NotFoundHandler()))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(nil, r)
	if free() != 1 {
		t.Error("a turn is lost")
	}
	if err := Aside(context.Background(), func() error { return nil }); err != nil { // a request of nobody's
		t.Error(err)
	}
}
