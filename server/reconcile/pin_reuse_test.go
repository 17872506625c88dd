package reconcile_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
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

// Until a removal is confirmed, the first code may be on the lock.
func TestPINReuse_WaitsForConfirmedRemoval(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"the first is on the lock": true, "the first may be on the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			end := clock.now().Add(time.Hour)
			next := end.Add(lockstate.PINReuseMargin)
			first := b.between("2580", clock.now(), end)
			w := b.work(first)
			b.begin(w)
			if answered {
				b.end(w, outcome{Ref: "k1", Confirmed: true})
			}
			second := b.between("2580", next, next.Add(time.Hour))
			waits := func(when string) {
				t.Helper()
				if w := b.work(second); w.Action != lockstate.Nothing {
					t.Errorf("%s: planned action %q", when, w.Action)
				}
			}
			waits("during the first stay")
			if due := b.look().Due; due == nil || due.After(end) {
				t.Errorf("due at %v, after the end of the first stay", due)
			}
			clock.to(end)
			waits("at the end of the first stay")
			b.read(found("k1", "2580"))
			waits("while the lock has the first code")
			b.must(b.removal(b.work(first), false, nil))
			waits("before the removal is confirmed")
			clock.pass(15 * time.Second) // a read may lag behind
			b.read()
			if w := b.work(second); w.Action != lockstate.Put {
				t.Errorf("after the removal: planned action %q", w.Action)
			}
		})
	}
}

// A lock that enforces time frames gets its codes days ahead. The code of the earlier stay comes first on any lock.
func TestPINReuse_LaterStayIsDueFirst(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	day := func(n int) time.Time { return clock.now().Add(time.Duration(n) * 24 * time.Hour) }
	second := b.between("2580", day(3), day(4))
	first, _, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID:      b.device,
		PIN:           "2580",
		EvenIfOffline: true,
		StartsAt:      day(1).Format(time.RFC3339),
		EndsAt:        day(2).Format(time.RFC3339),
	})
	b.must(err)
	if w := b.work(second); w.Action != lockstate.Nothing {
		t.Errorf("planned action %q for the second", w.Action)
	}
	clock.to(day(1))
	if w := b.work(first); w.Action != lockstate.Put {
		t.Errorf("planned action %q for the first", w.Action)
	}
	b.deleteCode(first)
	if w := b.work(second); w.Action != lockstate.Put {
		t.Errorf("without the first: planned action %q for the second", w.Action)
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

// A new code may have the PIN of a pool code, which leaves for it and must not be pulled before.
func TestPINReuse_PulledCodeHasAPINOfItsOwn(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	guest, _, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID:      b.device,
		PIN:           "2580",
		EvenIfOffline: true,
		BackupPool:    true,
		StartsAt:      clock.now().Format(time.RFC3339),
		EndsAt:        clock.now().Add(time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	for i, w := range b.look().Codes {
		b.begin(w)
		b.end(w, outcome{Ref: fmt.Sprint("k", i), Confirmed: true})
		if w.ID != guest.ID {
			b.between(w.PIN, clock.now().Add(24*time.Hour), clock.now().Add(25*time.Hour))
		}
	}
	_, err = b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	if e, _ := domain.AsError(err); e == nil || e.Type != "backup_access_code_not_found" {
		t.Errorf("pulled a code whose PIN another code has: %v", err)
	}
}

// A request between the plan and the write changes whose turn it is.
func TestPINReuse_EarlierStayBeforeTheWrite(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	w := b.work(b.between("2580", clock.now().Add(5*time.Hour), clock.now().Add(6*time.Hour)))
	b.between("2580", clock.now(), clock.now().Add(time.Hour))
	still, err := b.started(w)
	b.must(err)
	if w.Action != lockstate.Put || still {
		t.Errorf("planned action %q is still wanted: %t", w.Action, still)
	}
}
