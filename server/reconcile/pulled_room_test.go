package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A code and the backup pulled for it are two codes on their lock. An extended stay needs slots for
// both.
func TestPulledCode_ExtensionNeedsTwoSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tomorrow []string // PINs of the codes at that time
		room     bool
	}{
		"with room for both": {[]string{"4711"}, true},
		"with room for one":  {[]string{"4711", "4712"}, false},
		"on an empty lock":   {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "smartthings")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"max_codes": 3}'`)
			b.must(err)
			ends := clock.now().Add(5 * time.Hour)
			guest := b.filled(clock.now(), ends)
			pulled, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String())
			b.must(err)
			for _, pin := range c.tomorrow {
				b.between(pin, clock.now().Add(24*time.Hour), clock.now().Add(48*time.Hour))
			}
			later := clock.now().Add(30 * time.Hour)
			_, err = b.access.UpdateCode(t.Context(), b.p,
				access.CodeChange{ID: guest.ID.String(), EndsAt: later.Format(time.RFC3339), EvenIfOffline: true})
			want := ends
			if c.room {
				b.must(err)
				want = later
			} else if e, _ := errors.AsType[*access.Error](err); e == nil || e.Type != "no_space_for_access_code_on_device" ||
				!strings.Contains(e.Message, clock.now().Add(23*time.Hour).UTC().Format(time.RFC3339)) {
				t.Errorf("got %v", err)
			}
			for what, one := range map[string]access.Code{"the code": guest, "the one that was pulled": pulled} {
				if got := b.code(one.ID); got.EndsAt == nil || !got.EndsAt.Equal(want) {
					t.Errorf("%s ends at %v, want %v", what, got.EndsAt, want)
				}
			}
		})
	}
}
