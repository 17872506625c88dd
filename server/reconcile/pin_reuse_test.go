package reconcile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// The lock refuses the second code while it has the first, so any early write would be an error of the second.
func TestPINReuse_SecondFollowsFirst(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"august", "smartthings", "kwikset"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			var c clock
			var creations atomic.Int32
			b := start(t, options{
				profile: profile,
				access:  access.Options{Now: c.now},
				vendor: func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes") {
						creations.Add(1)
					}
					return false
				},
			})
			stay := func(from, until time.Time) (device.Code, device.Attempt) {
				made, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
					DeviceID:         b.device,
					PIN:              "2580",
					NativeScheduling: true,
					EvenIfOffline:    true,
					StartsAt:         from.Format(time.RFC3339),
					EndsAt:           until.Format(time.RFC3339),
				})
				b.must(err)
				return made, a
			}
			begin := c.now().Add(-time.Hour)
			end := c.now().Add(time.Hour)
			next := end.Add(lockstate.PINReuseMargin)
			first, a := stay(begin, end)
			b.succeeded(a)
			second, a := stay(next, next.Add(24*time.Hour))
			if second.Status != device.StatusUnset {
				t.Errorf("status %s of a code that waits for its turn", second.Status)
			}
			b.succeeded(a)
			b.create("4711") // a write after which the second had its chance
			b.until("a later code is on the lock", func() bool { return b.onLock("4711") })
			if n := creations.Load(); n != 2 {
				t.Errorf("%d codes were sent", n)
			}
			if got := b.code(second.ID); got.Status != device.StatusUnset || got.OnDevice || len(got.Errors) > 0 {
				t.Errorf("during the first stay: status %s, errors %v", got.Status, got.Errors)
			}

			c.ahead.Store(int64(end.Sub(c.now()) + time.Second))
			b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
			b.until("the second code is on the lock", func() bool { return b.code(second.ID).OnDevice })
			if got := b.events(first.ID); !slices.Contains(got, "access_code.deleted") {
				t.Errorf("events of the first: %v", got)
			}
			for _, event := range b.events(second.ID) {
				if strings.Contains(event, "failed") || strings.Contains(event, "delay") {
					t.Errorf("events of the second: %v", b.events(second.ID))
				}
			}
			b.onlyOnce("2580")
		})
	}
}

func TestPINReuse_GetByPINFollowsTheClock(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	begin := clock.now()
	at := func(hours int) time.Time { return begin.Add(time.Duration(hours) * time.Hour) }
	second, first := b.between("2580", at(5), at(6)), b.between("2580", at(2), at(3))
	for _, c := range []struct {
		hour int
		want device.Code
	}{{0, first}, {2, first}, {3, second}, {5, second}, {6, second}} {
		clock.to(at(c.hour))
		got, err := b.access.Devices.GetCode(t.Context(), b.p, true, "", b.device, "2580")
		b.must(err)
		if got.ID != c.want.ID {
			t.Errorf("after %d hours: the code from %s", c.hour, got.StartsAt)
		}
	}
}
