package admission

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A long response is sent without a slot, and each part of it is created with one, as a heavy request.
func TestReacquire_SlotForEachPartOfResponse(t *testing.T) {
	t.Parallel()
	c := New(Limits{Slots: 2, ClientAddress: func(*http.Request) string { return "client" }})
	state := func() [2]int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return [2]int{c.freeSlots, c.working[heavy]}
	}
	lost := errors.New("lost")
	h := c.Limit(Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, want := range []error{nil, lost, nil} {
			if _, err := w.Write(make([]byte, 2*largeBytes)); err != nil || state() != [2]int{2, 0} {
				t.Errorf("sent with a slot: %v, %v", state(), err)
			}
			got := Reacquire(r.Context(), func() error {
				if state() != [2]int{1, 1} {
					t.Errorf("created without a slot, or as a light request: %v", state())
				}
				return want
			})
			if !errors.Is(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}), http.NotFoundHandler()))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if state() != [2]int{2, 0} {
		t.Errorf("a slot is lost: %v", state())
	}
	if err := Reacquire(t.Context(), func() error { return nil }); err != nil { // without a request
		t.Error(err)
	}
}
