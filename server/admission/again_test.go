package admission

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Whoever is sent a long answer has no turn while it is read, and one for each part that is made of it: as what costs much.
func TestMoreOfAnAnswerHasATurnOfItsOwn(t *testing.T) {
	t.Parallel()
	c := New(Limits{Turns: 2, Address: func(*http.Request) string { return "somebody" }})
	state := func() [2]int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return [2]int{c.free, c.working[heavy]}
	}
	lost := errors.New("lost")
	h := c.Limit(InTurn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, want := range []error{nil, lost, nil} {
			if _, err := w.Write(make([]byte, 2*large)); err != nil || state() != [2]int{2, 0} {
				t.Errorf("it is sent in a turn: %v, %v", state(), err)
			}
			got := Again(r.Context(), func() error {
				if state() != [2]int{1, 1} {
					t.Errorf("more is made without a turn, or as if it cost little: %v", state())
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
		t.Errorf("a turn is lost: %v", state())
	}
	if err := Again(t.Context(), func() error { return nil }); err != nil { // a request of nobody's
		t.Error(err)
	}
}
