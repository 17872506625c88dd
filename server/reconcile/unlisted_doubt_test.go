package reconcile_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// creation reports whether a request creates a code.
func creation(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes")
}

// If a vendor reports its lock as offline, the code was not written. The server neither looks nor
// waits for it.
func TestNoCodeList_OfflineWriteDidNotArrive(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c access.Code){
		"its time is far ahead": func(b *bed, c access.Code) {
			_, err := b.access.UpdateCode(b.Context(), b.p, access.CodeChange{
				ID:            c.ID.String(),
				EvenIfOffline: true,
				StartsAt:      time.Now().Add(720 * time.Hour).Format(time.RFC3339),
				EndsAt:        time.Now().Add(721 * time.Hour).Format(time.RFC3339),
			})
			b.must(err)
		},
		"deleted": func(b *bed, c access.Code) {
			a, err := b.access.DeleteCode(b.Context(), b.p, c.ID.String(), "")
			b.must(err)
			b.succeeded(a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := startShut(t, options{profile: "smartthings"})
			var away, refused atomic.Bool
			away.Store(true)
			s.meets(func(r *http.Request) (*http.Response, error) {
				if !creation(r) || !away.Load() {
					return nil, nil
				}
				refused.Store(true)
				return says(r, http.StatusConflict, `{"error_code":"DEVICE_OFFLINE","message":"it is away"}`), nil
			})
			c, _ := b.create("2580")
			b.until("the write is refused", refused.Load)
			leave(b, c)
			away.Store(false)
			_, a := b.create("2591")
			b.must(b.access.Hint(t.Context(), b.account, b.lock)) // the lock is back
			b.succeeded(a)
			if b.onLock("2580") {
				t.Error("the other code exists")
			}
		})
	}
}

// loses makes a cloud create a code and lose its response.
func (s *shut) loses(made *atomic.Int32, once bool) {
	s.meets(func(r *http.Request) (*http.Response, error) {
		if !creation(r) || once && made.Load() > 0 {
			return nil, nil
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		made.Add(1)
		return nil, errors.New("the connection was reset")
	})
}

// A vendor answers a repeated create with the first code and thereby reveals its reference. If the
// code cannot be changed in place, it is recreated.
func TestNoCodeList_OtherPINIsRecreated(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	s.unchanging.Store(true)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("codes are recreated", func() bool {
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		return err == nil && d.Capabilities.PutAnew
	})
	var made atomic.Int32
	s.loses(&made, true)
	c, _ := b.create("2580")
	b.until("the code exists but the response is lost", func() bool { return made.Load() > 0 })
	a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(err)
	b.succeeded(a)
	b.until("the desired code is on the lock", func() bool { return b.onLock("2591") })
	b.until("the old code is not on the lock", func() bool { return !b.onLock("2580") })
}

// A vendor with idempotent creates reveals where the uncertain code is, so that it can be removed.
func TestNoCodeList_UncertainCodeIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c access.Code) access.Attempt{
		"its time is far ahead": func(b *bed, c access.Code) access.Attempt {
			a, err := b.access.UpdateCode(b.Context(), b.p, access.CodeChange{ID: c.ID.String(),
				StartsAt: time.Now().Add(720 * time.Hour).Format(time.RFC3339), EndsAt: time.Now().Add(721 * time.Hour).Format(time.RFC3339)})
			b.must(err)
			return a
		},
		"deleted": func(b *bed, c access.Code) access.Attempt {
			a, err := b.access.DeleteCode(b.Context(), b.p, c.ID.String(), "")
			b.must(err)
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := startShut(t,
				options{profile: "smartthings", access: access.Options{ConfirmTimeout: 3 * time.Second}})
			var made atomic.Int32
			s.loses(&made, false)
			c, _ := b.create("2580")
			b.until("the code exists but the response is lost", func() bool { return made.Load() > 0 && b.onLock("2580") })
			a := leave(b, c)
			s.meets(func(*http.Request) (*http.Response, error) { return nil, nil })
			b.succeeded(a)
			b.until("the code has left the lock", func() bool { return !b.onLock("2580") })
			_, a = b.create("2591")
			b.succeeded(a)
		})
	}
}

// A vendor without idempotent creates, or one that keeps failing, is asked for some minutes. Other
// codes wait no longer than that.
func TestNoCodeList_UncertainCodeIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]access.FailureClass{"refused": access.FailedDuplicate, "failing": access.FailedForNow} {
		for how, leave := range map[string]func(b byHand, c access.Code, clock *testClock){
			"deleted": func(b byHand, c access.Code, _ *testClock) { b.deleteCode(c) },
			"moved": func(b byHand, c access.Code, clock *testClock) {
				b.update(access.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Add(720 * time.Hour).Format(time.RFC3339),
					EndsAt: clock.now().Add(721 * time.Hour).Format(time.RFC3339)})
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities - 'list_codes'`)
				b.must(err)
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				leave(b, c, clock)
				other, _ := b.create("2591")
				began, asked := clock.now(), 0
				for waits := true; waits; {
					waits = false
					w := b.look()
					for _, one := range w.Codes {
						waits = waits || one.Leaving
						if one.Action == access.Find {
							asked++
							if still, err := b.access.RecordFindStarted(t.Context(), holder{}, b.id(), one); err != nil ||
								!still {
								t.Fatal("the deletion is not wanted", err)
							}
							b.must(
								b.access.RecordFound(t.Context(), holder{}, b.id(), one,
									access.PutOutcome{Failure: &access.Failure{Class: class, Message: "no"}}),
							)
						}
					}
					if asked == 0 {
						t.Fatal("the code is not searched")
					}
					if waits = waits || b.mayBeThere(c); waits {
						clock.pass(5 * time.Second)
					}
					if clock.now().
						Sub(began) >
						map[string]time.Duration{"refused": 3 * time.Minute, "failing": 20 * time.Minute}[name] {
						t.Fatalf("after %d tries the server still waits: %v", asked, w.Codes)
					}
				}
				if want := map[string]int{"refused": 1, "failing": 8}[name]; asked != want {
					t.Errorf("%d tries", asked)
				}
				if w := b.work(other); w.Action != access.Put {
					t.Errorf("planned action %q for the other code", w.Action)
				}
			})
		}
	}
}

// mayBeThere reports whether a code is being removed or is uncertain.
func (b byHand) mayBeThere(c access.Code) (is bool) {
	b.Helper()
	err := b.db.Pool.QueryRow(b.Context(), "select count(*) > 0 from access_codes where access_code_id = $1 and (write_gen > 0 or vendor_ref is not null)", c.ID).
		Scan(&is)
	b.must(err)
	return is
}
