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

// creation says whether a request is to make a code.
func creation(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes")
}

// A vendor that says that its lock is offline has not put the code there: it is not looked for, nor waited for.
func TestCodeThatALockWasOfflineForIsNotThereWhereNobodyCanLook(t *testing.T) {
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
			b.until("it is refused", refused.Load)
			leave(b, c)
			away.Store(false)
			_, a := b.create("2591")
			b.must(b.access.Hint(t.Context(), b.account, b.lock)) // it is back
			b.succeeded(a)
			if b.onLock("2580") {
				t.Error("the other is there")
			}
		})
	}
}

// loses has a cloud make a code, and its answer be lost.
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

// A vendor that answers a repeated creation with the code as it was made first has told where that is: where it cannot be changed it is
// taken off, and made as it is to be.
func TestCreationThatIsAnsweredWithAnotherPINIsMadeAnewWhereNobodyCanLook(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	s.unchanging.Store(true)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("codes are put anew", func() bool {
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		return err == nil && d.Capabilities.PutAnew
	})
	var made atomic.Int32
	s.loses(&made, true)
	c, _ := b.create("2580")
	b.until("it is made, and that is not told", func() bool { return made.Load() > 0 })
	a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(err)
	b.succeeded(a)
	b.until("it is there as it is to be", func() bool { return b.onLock("2591") })
	b.until("it is not as it was", func() bool { return !b.onLock("2580") })
}

// A vendor that knows a creation again says where the code is that it was to make: what is to leave is taken off, and not taken for gone.
func TestCreationInDoubtThatIsToLeaveIsFoundWhereNobodyCanLook(t *testing.T) {
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
			b.until("it is there, and that is not told", func() bool { return made.Load() > 0 && b.onLock("2580") })
			a := leave(b, c)
			s.meets(func(*http.Request) (*http.Response, error) { return nil, nil })
			b.succeeded(a)
			b.until("it is not there any more", func() bool { return !b.onLock("2580") })
			_, a = b.create("2591")
			b.succeeded(a)
		})
	}
}

// One that does not know it again, or goes on failing, is asked for some minutes, and keeps other codes waiting no longer.
func TestCreationInDoubtThatIsNotFoundIsGivenUpWhereNobodyCanLook(t *testing.T) {
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
				b.begin(b.work(c)) // and no answer comes
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
								t.Fatal("it is not to leave any more", err)
							}
							b.must(
								b.access.RecordFound(t.Context(), holder{}, b.id(), one,
									access.PutOutcome{Failure: &access.Failure{Class: class, Message: "no"}}),
							)
						}
					}
					if asked == 0 {
						t.Fatal("it is not asked for")
					}
					if waits = waits || b.mayBeThere(c); waits {
						clock.pass(5 * time.Second)
					}
					if clock.now().
						Sub(began) >
						map[string]time.Duration{"refused": 3 * time.Minute, "failing": 20 * time.Minute}[name] {
						t.Fatalf("after %d questions it is still waited for: %v", asked, w.Codes)
					}
				}
				if want := map[string]int{"refused": 1, "failing": 8}[name]; asked != want {
					t.Errorf("it is asked for %d times", asked)
				}
				if w := b.work(other); w.Action != access.Put {
					t.Errorf("there is %q to do about the other", w.Action)
				}
			})
		}
	}
}

// mayBeThere says whether a code is still to leave, or in doubt.
func (b byHand) mayBeThere(c access.Code) (is bool) {
	b.Helper()
	err := b.db.Pool.QueryRow(b.Context(), "select count(*) > 0 from access_codes where access_code_id = $1 and (write_gen > 0 or vendor_ref is not null)", c.ID).
		Scan(&is)
	b.must(err)
	return is
}
