package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A conversion requested during a read is refused if the vendor allows none, like at any other
// time. Otherwise the code would be managed without its PIN if the lock hides it.
func TestConversion_RefusedDuringRead(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "kwikset", "igloohome"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: profile})
			on := access.Found{Ref: "k0", Name: "Cleaner", Confirmed: true}
			b.read(on)
			b.look()
			c := b.unmanaged()[0]
			a, err := b.access.ConvertCode(t.Context(), b.p, c.ID.String(), nil)
			b.must(err)
			b.must(b.access.RecordRead(t.Context(), holder{}, b.id(), 0, []access.Found{on})) // the read had started before
			if len(b.unmanaged()) != 1 {
				t.Error("the code is managed")
			}
			b.look()
			if got := b.attempt(a); got.Status != access.Failed || got.ErrorType != "cannot_be_managed" {
				t.Errorf("attempt %s %s", got.Status, got.ErrorType)
			}
		})
	}
}

// An expired conversion does not continue, and its attempt says so.
func TestConversion_Expired(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptPatience: 300 * time.Millisecond}})
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("there is an unmanaged code", func() bool { return len(b.unmanaged()) > 0 })
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	c := b.unmanaged()[0]
	a, err := b.access.ConvertCode(t.Context(), b.p, c.ID.String(), nil)
	b.must(err)
	if a = b.ended(a); a.ErrorType != "action_attempt_expired" ||
		!strings.Contains(a.Message, "unmanaged; convert it when the device is back") {
		t.Errorf("attempt %s %s: %s", a.Status, a.ErrorType, a.Message)
	}
	if !slices.ContainsFunc(b.unmanaged(), func(o access.Code) bool { return o.ID == c.ID }) {
		t.Error("the code is managed")
	}
}
