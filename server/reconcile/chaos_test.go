package reconcile_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// clock is the system clock plus an offset.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func readsCodes(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/locks/") &&
		strings.HasSuffix(r.URL.Path, "/access_codes")
}

// A code expires during a write of another code, which is refused. Nothing else wakes the device.
func TestExpiry_DuringAnotherWrite(t *testing.T) {
	t.Parallel()
	var c clock
	var refuse atomic.Bool
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/access_codes") || !refuse.Load() {
					return false
				}
				c.ahead.Store(int64(2 * time.Hour))
				http.Error(w, `{"error_code":"INVALID_PIN","message":"no"}`, http.StatusUnprocessableEntity)
				return true
			},
		},
	)
	_, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              "2580",
		EvenIfOffline:    true,
		NativeScheduling: true,
		StartsAt:         time.Now().Add(-time.Hour).Format(time.RFC3339),
		EndsAt:           time.Now().Add(time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	refuse.Store(true)
	b.create("2581")
	b.until("the expired code leaves the lock", func() bool { return !b.onLock("2580") })
}

func TestClock_BehindDatabaseCausesNoBusyReads(t *testing.T) {
	t.Parallel()
	var c clock
	c.ahead.Store(int64(-20 * time.Second))
	var reads atomic.Int32
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now},
			vendor: func(_ http.ResponseWriter, r *http.Request) bool {
				if readsCodes(r) {
					reads.Add(1)
				}
				return false
			},
		},
	)
	b.faults(map[string]any{"latency_ms": map[string]int{"min": 1500, "max": 1500}})
	reads.Store(0)
	b.set()
	if n := reads.Load(); n > 20 {
		t.Errorf("the device was read %d times until a write showed", n)
	}
}

func TestLostLease_ReadIsRepeated(t *testing.T) {
	t.Parallel()
	var b *bed
	var steal atomic.Bool
	b = start(t, options{profile: "august", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if readsCodes(r) && steal.CompareAndSwap(true, false) {
			_, err := b.db.Pool.Exec(r.Context(),
				"update leases set fence = fence + 1, held_until = now() where key like 'device:%'")
			if err != nil {
				b.Errorf("steal the lease: %v", err)
			}
		}
		return false
	}})
	steal.Store(true)
	b.set()
	b.onlyOnce("2580")
}

// hurry skips the backoff after repeated failures, which exceeds the test's timeout.
func (b *bed) hurry() {
	b.Helper()
	// The device first, as the server does, so that neither waits for the other.
	tx, err := b.db.Pool.Begin(b.Context())
	b.must(err)
	defer tx.Rollback(b.Context())
	const paused = "next_attempt_at > now() + interval '2 s'"
	_, err = tx.Exec(b.Context(), "update devices set due_at = now() where device_id in "+
		"(select device_id from access_codes where "+paused+")")
	b.must(err)
	_, err = tx.Exec(b.Context(), "update access_codes set next_attempt_at = null where "+paused)
	b.must(err)
	b.must(tx.Commit(b.Context()))
}

// Two instances, a vendor with all faults, and clients that change their minds. Afterwards, the
// lock has the desired codes, and no attempt is pending.
func TestFaults_LockConverges(t *testing.T) {
	t.Parallel()
	for profile, length := range map[string]int{"august": 6, "smartthings": 6, "nuki": 6, "ttlock": 6, "schlage": 4} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := start(
				t,
				options{
					profile: profile,
					access:  access.Options{ConfirmTimeout: 500 * time.Millisecond, ReadLag: 400 * time.Millisecond},
				},
			)
			one := b.stopEngine
			b.startEngine()
			defer one()
			others := b.memory()
			b.faults(
				map[string]any{
					"failure_rate": map[string]float64{
						"transient":   0.05,
						"unconfirmed": 0.1,
						"failed":      0.1,
						"busy":        0.05,
					},
					"lost_webhook":                   0.2,
					"eventual_consistency_window_ms": 50,
				},
			)
			rng := rand.New(rand.NewPCG(1, 2))
			pin := func() string { // accepted by all locks
				digits := []byte{'3' + byte(rng.IntN(4))}
				for len(digits) < length {
					digits = append(digits, '1'+byte(rng.IntN(6)))
				}
				return string(digits)
			}
			var attempts []device.Attempt
			for range 60 {
				cs, _, err := b.access.Devices.ListCodes(t.Context(), b.p,
					device.CodeFilter{DeviceID: b.device, Managed: true}, domain.Page{Limit: 100})
				b.must(err)
				var a device.Attempt
				switch n := rng.IntN(3); {
				case len(cs) < 4 || n == 0 && len(cs) < 12:
					_, a, err = b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
						DeviceID:         b.device,
						PIN:              pin(),
						NativeScheduling: true,
						EvenIfOffline:    true,
					})
				case n == 1:
					a, err = b.access.Devices.UpdateCode(t.Context(), b.p,
						device.CodeChange{ID: cs[rng.IntN(len(cs))].ID.String(), PIN: pin(), EvenIfOffline: true})
				default:
					a, err = b.access.Devices.DeleteCode(t.Context(), b.p, cs[rng.IntN(len(cs))].ID.String(), "")
				}
				var refused *domain.Error
				if errors.As(err, &refused) && (refused.Kind == domain.Conflict || refused.Kind == domain.NotFound) {
					continue // a code being removed or a duplicate PIN
				}
				b.must(err)
				attempts = append(attempts, a)
			}
			if len(attempts) < 20 { // even if no removal succeeds meanwhile
				t.Fatalf("only %d of 60 were accepted", len(attempts))
			}
			b.faults(map[string]any{})
			for _, a := range attempts {
				b.until("attempt "+a.Type+" ends",
					func() bool { b.hurry(); return b.attempt(a).Status != device.Pending })
			}
			b.until("all codes are set", func() bool {
				b.hurry()
				cs, _, err := b.access.Devices.ListCodes(t.Context(), b.p,
					device.CodeFilter{DeviceID: b.device, Managed: true}, domain.Page{Limit: 100})
				b.must(err)
				return !slices.ContainsFunc(cs, func(c device.Code) bool { return c.Status != device.StatusSet })
			})
			// An abandoned write may have arrived after its successor, and the vendor may have lost
			// the event. The next look shows it.
			b.must(b.access.Accounts.Resync(t.Context(), b.account))
			b.until("the lock has the desired codes", func() bool {
				b.hurry()
				cs, _, err := b.access.Devices.ListCodes(t.Context(), b.p,
					device.CodeFilter{DeviceID: b.device, Managed: true}, domain.Page{Limit: 100})
				b.must(err)
				var want, got []string
				for _, c := range cs {
					want = append(want, *c.PIN)
				}
				for _, c := range others {
					want = append(want, c.Code)
				}
				for _, c := range b.memory() {
					got = append(got, c.Code)
				}
				slices.Sort(want)
				slices.Sort(got)
				return slices.Equal(got, want)
			})
			b.until("no managed code counts as unmanaged", func() bool { return len(b.unmanaged()) == len(others) })
		})
	}
}

// A failed read says nothing about the codes on the lock. Nothing is written until a read succeeds
// (a complaint).
func TestRead_PrecedesAnyWrite(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var reads, writes atomic.Int32
	b := start(t, options{profile: "august", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if !broken.Load() {
			return false
		}
		if readsCodes(r) {
			reads.Add(1)
			http.Error(w, `{"error_code":"UNAVAILABLE","message":"try again"}`, http.StatusServiceUnavailable)
			return true
		}
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "access_codes") {
			writes.Add(1)
		}
		return false
	}})
	b.stopEngine() // a look in progress has read the device
	broken.Store(true)
	_, a := b.create("2580")
	b.startEngine()
	b.until("the read is retried", func() bool { return reads.Load() >= 2 })
	if n := writes.Load(); n > 0 || b.onLock("2580") {
		t.Errorf("%d writes", n)
	}
	broken.Store(false)
	b.succeeded(a)
	b.onlyOnce("2580")
}

// looked is a device lane that reports after each drain whether work is due. An instance has no
// other sign of another instance's wake-up.
type looked struct {
	worker.Lane
	tell func(due bool)
}

func (l looked) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	again, err := l.Lane.Drain(ctx, lease, id)
	if due, problem := l.Due(ctx, id); problem == nil {
		l.tell(due)
	}
	return again, err
}

// Another instance wakes a device during a read, which may miss the reason. It relies on the holder
// of the lease.
func TestRead_WokenMeanwhileIsRepeated(t *testing.T) {
	t.Parallel()
	var wake atomic.Pointer[func()] // once, during the read
	woken, looks := make(chan bool, 1), make(chan bool, 1)
	b := start(t, options{profile: "august", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") {
			if f := wake.Swap(nil); f != nil {
				(*f)()
				woken <- true
			}
		}
		return false
	}})
	b.stopEngine()
	b.watch = func(l worker.Lane) worker.Lane {
		if l.Name() != domain.DeviceLane {
			return l
		}
		return looked{l, func(due bool) {
			select {
			case <-woken:
				looks <- due
			default:
			}
		}}
	}
	b.startEngine()
	waker, err := worker.NewWaker(b.db)
	b.must(err)
	other := access.New(b.db, b.keys, waker, access.Options{})
	f := func() {
		if err := other.Accounts.Hint(context.WithoutCancel(t.Context()), b.account, b.lock); err != nil {
			t.Error(err)
		}
	}
	wake.Store(&f)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
	select {
	case due := <-looks:
		if !due {
			t.Error("no work is due")
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("the device was not read")
	}
}
