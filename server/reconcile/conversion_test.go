package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A conversion that is asked for while a lock is read, whose vendor allows none, is refused as at any other time. The code would be
// managed without its PIN where the lock hides it.
func TestConversionThatComesDuringAReadIsRefusedToo(t *testing.T) {
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
			b.must(b.access.RecordRead(t.Context(), holder{}, b.id(), 0, []access.Found{on})) // it had begun before
			if len(b.unmanaged()) != 1 {
				t.Error("it is managed")
			}
			b.look()
			if got := b.attempt(a); got.Status != access.Failed || got.ErrorType != "cannot_be_managed" {
				t.Errorf("the attempt: %s %s", got.Status, got.ErrorType)
			}
		})
	}
}

// Nobody goes on with a conversion whose time is over, and nobody is told otherwise.
func TestConversionThatIsGivenUpSaysThatNothingWasConverted(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptPatience: 300 * time.Millisecond}})
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("there is one to be converted", func() bool { return len(b.unmanaged()) > 0 })
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	c := b.unmanaged()[0]
	a, err := b.access.ConvertCode(t.Context(), b.p, c.ID.String(), nil)
	b.must(err)
	if a = b.ended(a); a.ErrorType != "action_attempt_expired" || !strings.Contains(a.Message, "Convert it when the device is back") {
		t.Errorf("it ends as %s %s: %s", a.Status, a.ErrorType, a.Message)
	}
	if !slices.ContainsFunc(b.unmanaged(), func(o access.Code) bool { return o.ID == c.ID }) {
		t.Error("it is managed")
	}
}
