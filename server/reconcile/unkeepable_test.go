package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// unkeepable are references that no database takes, or that no index does.
var unkeepable = map[string]string{
	"empty":      "",
	"with a NUL": "k\x001",
	"no UTF-8":   "k\xff",
	"of 5 kB":    strings.Repeat("k", 5000),
}

// A code that cannot be kept by its reference can be neither changed nor removed: it is nothing to us, and holds up none
// of the others.
func TestCodesWhoseReferencesCannotBeKeptHoldNothingUp(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	read := []access.Found{found("k1", "2580")}
	for _, ref := range unkeepable {
		read = append(read, found(ref, "2581"))
	}
	b.read(read...)
	if us := b.unmanaged(); len(us) != 1 || *us[0].PIN != "2580" {
		t.Errorf("there are %d", len(us))
	}
}

// A vendor that takes a code and names it in such a way is not believed: nobody could take it back.
func TestWriteThatIsAnsweredWithAReferenceThatCannotBeKeptHasFailed(t *testing.T) {
	t.Parallel()
	for name, ref := range unkeepable {
		if ref == "" { // it does not say
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: ref, Confirmed: true})
			if a = b.attempt(a); a.Status != access.Failed || !strings.Contains(a.Message, "reference") {
				t.Errorf("it is %s: %s", a.Status, a.Message)
			}
			if got := b.code(c.ID); got.Status != access.StatusUnset || len(got.Errors) != 1 {
				t.Errorf("the code is %s with %v", got.Status, got.Errors)
			}
		})
	}
}

func TestMessageThatPostgresCannotStoreHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c, a := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no\x00such PIN"}})
	if a = b.attempt(a); a.Message != "nosuch PIN" {
		t.Errorf("it is %s: %q", a.Status, a.Message)
	}
}

// What somebody did at the lock is told whatever its identifier is, once; and when it was is a time that can be written.
func TestOperationsWhoseIdentifiersCannotBeKeptAreTold(t *testing.T) {
	t.Parallel()
	for name, ref := range unkeepable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			for range 2 {
				known, err := b.access.RecordOperation(t.Context(), b.account, b.lock, access.Operation{
					Kind:    access.BoltMoved,
					ID:      ref,
					CodeRef: ref,
					Method:  "keycode",
					At:      time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
				})
				b.must(err)
				if !known {
					t.Error("the lock is not known")
				}
			}
			if told := b.tales("lock.unlocked"); len(told) != 1 || told[0].OccurredAt.Year() < 1 {
				t.Errorf("told %d times: %v", len(told), told)
			}
		})
	}
}

// A device that no vendor can have has not left: that is over at once.
func TestDeviceThatThereCannotBeHasNotLeft(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	events, _ := b.telling()
	before := b.woken()
	events <- adapter.Event{Kind: adapter.DeviceRemoved, Device: "\x00"}
	events <- adapter.Event{Kind: adapter.DeviceListed}
	b.until("what comes next is taken in", func() bool { return b.woken() > before })
}
