package lockstate

import (
	"slices"
	"strings"
	"testing"
)

// A conversion requested during a read is refused if the vendor allows none, like at any other
// time. Otherwise the code would be managed without its PIN if the lock hides it.
func TestConversion_RefusedDuringRead(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "kwikset", "igloohome"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			on := Found{Ref: "k0", Name: "Cleaner", Confirmed: true}
			b.read(on)
			b.look()
			c := b.unmanaged()[0]
			a := b.convert(c, nil)
			b.observed(0, []Found{on}) // the read had started before
			if len(b.unmanaged()) != 1 {
				t.Error("the code is managed")
			}
			b.look()
			if got := b.attempt(a); got.Status != Failed || got.ErrorType != "cannot_be_managed" {
				t.Errorf("attempt %s %s", got.Status, got.ErrorType)
			}
		})
	}
}

// An expired conversion does not continue, and its attempt says so.
func TestConversion_Expired(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	b.unreachable(true, true)
	c := b.unmanaged()[0]
	a := b.convert(c, nil)
	b.pass(b.timeouts.Attempt)
	b.look()
	if a = b.attempt(a); a.ErrorType != "action_attempt_expired" ||
		!strings.Contains(a.Message, "Convert it when the device is back") {
		t.Errorf("attempt %s %s: %s", a.Status, a.ErrorType, a.Message)
	}
	if !slices.ContainsFunc(b.unmanaged(), func(o view) bool { return o.ID == c.ID }) {
		t.Error("the code is managed")
	}
}
