package lockstate

import (
	"strings"
	"testing"
)

// unkeepable lists references that the database or an index cannot store.
var unkeepable = map[string]string{
	"with a NUL": "k\x001",
	"no UTF-8":   "k\xff",
	"of 5 kB":    strings.Repeat("k", 5000),
}

// A write that returns such a reference has failed, because the code could not be removed.
func TestUnstorableReference_WriteFails(t *testing.T) {
	t.Parallel()
	for name, ref := range unkeepable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: ref, Confirmed: true})
			if a = b.attempt(a); a.Status != Failed || !strings.Contains(a.Message, "reference") {
				t.Errorf("attempt %s: %s", a.Status, a.Message)
			}
			if got := b.code(c.ID); got.Status != StatusUnset || len(got.Errors) != 1 {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

func TestUnstorableMessage_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no\x00such PIN"}})
	if got := b.code(c.ID); got.Error.Message != "nosuch PIN" {
		t.Errorf("error %q", got.Error.Message)
	}
}
