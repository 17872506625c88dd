package admission

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// A request that waits for another one has no slot meanwhile, and has one again afterwards.
func TestWithoutSlot_ReleasesAndReacquires(t *testing.T) {
	t.Parallel()
	c := New(Limits{Slots: 1, ClientAddress: func(*http.Request) string { return "client" }})
	free := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.freeSlots
	}
	h := c.Limit(Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if free() != 0 {
			t.Error("the request runs without a slot")
		}
		if err := WithoutSlot(r.Context(), func() error {
			if free() != 1 {
				t.Error("the request waits with its slot")
			}
			return nil
		}); err != nil || free() != 0 {
			t.Errorf("afterwards %d slots are free, %v", free(), err)
		}
		failed := errors.New("failed")
		if err := WithoutSlot(r.Context(), func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	}), http.NotFoundHandler()))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(nil, r)
	if free() != 1 {
		t.Error("a slot is lost")
	}
	if err := WithoutSlot(context.Background(), func() error { return nil }); err != nil { // without a request
		t.Error(err)
	}
}
