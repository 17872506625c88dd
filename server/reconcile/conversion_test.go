package reconcile_test

import (
	"testing"

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
