package reconcile_test

import (
	"testing"
	"time"
)

// deletedInDoubt returns the code that a vendor may still deliver for a code deleted while its
// create was uncertain.
func deletedInDoubt(b byHand, clock *testClock) shown {
	b.Helper()
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.deleteCode(c)
	for len(b.managed()) > 0 {
		b.read(found("k9", "9999"))
		clock.pass(10 * time.Second)
	}
	late := found("k1", "2580")
	late.Key = c.ID.String()
	return late
}

// Tombstones last for a month.
func TestTombstone_Expires(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	late := deletedInDoubt(b, clock)
	clock.pass(31 * 24 * time.Hour)
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
	}
}

// taken runs the deletion of a code like the engine.
func (b byHand) taken(w work) {
	b.Helper()
	if still, err := b.started(w); err != nil || !still {
		b.Fatal("the deletion is not wanted", err)
	}
	b.must(b.removal(w, true, nil))
}
