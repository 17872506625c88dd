package provider

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// shared is the configuration of a shared code on these locks.
func (p *plugin) shared(within string, locks ...string) map[string]tftypes.Value {
	p.t.Helper()
	return map[string]tftypes.Value{
		"device_ids": texts(locks...),
		"name":       text("Nanny"),
		"code":       text("905173846251"),
		"timeouts":   p.timeouts(setType, within),
	}
}

// status is what the state says of the code on a lock.
func (m *managed) status(lock string) (status string) {
	m.t.Helper()
	if err := m.at(m.now(), "access_codes", lock, "status").As(&status); err != nil {
		m.t.Fatal(err)
	}
	return status
}

// finish lets the locks take all codes.
func (f *fake) finish() {
	f.do(func() {
		f.nextAttempt = nil
		for _, code := range f.codes {
			f.settle(code)
		}
	})
}

// Only a refusal by every lock fails the creation: an error taints the shared code, and then the next apply takes
// working PINs off the doors.
func TestSharedAccessCode_CreationThatNoLockHasRefusedIsKept(t *testing.T) {
	t.Parallel()
	never := func(a *fakeAttempt) { a.looks = 1 << 30 }
	refuses := func(a *fakeAttempt) { a.failure = map[string]any{"type": "lock_rejected", "message": "No"} }
	noKey := answerError(http.StatusUnauthorized, "unauthorized", "API Key not found")
	for name, c := range map[string]struct {
		attempts func(n int, a *fakeAttempt)
		after    http.HandlerFunc // answers everything after the creations
		status   string
		says     string
	}{
		"no lock answers in time": {
			attempts: func(_ int, a *fakeAttempt) { never(a) },
			status:   "setting",
			says:     "The server keeps trying",
		},
		"the key is revoked": {
			attempts: func(_ int, a *fakeAttempt) { never(a) },
			after:    noKey,
			status:   "unknown",
			says:     "Check",
		},
		"one lock refuses and one does not answer": {
			attempts: func(n int, a *fakeAttempt) {
				if never(a); n == 0 {
					a.looks = 1
					refuses(a)
				}
			},
			status: "setting",
			says:   "lock_rejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			n := 0
			f.nextAttempt = func(a *fakeAttempt) { c.attempts(n, a); n++ }
			p := f.plugin(t)
			nanny := p.manage(setType)
			if c.after != nil {
				f.answerAfter("/access_codes/create", 2, c.after)
			}
			said := nanny.apply(p.shared("1s", lockA, lockB))
			if hasErrors(said) || nanny.isGone() {
				t.Fatalf("the creation failed: %s", saidIn(said))
			}
			expectSaid(t, "the creation", saidIn(said), "Warning: "+actionPut, lockA, lockB, c.says)
			for _, lock := range []string{lockA, lockB} {
				if status := nanny.status(lock); status != c.status {
					t.Errorf("the status is %q", status)
				}
			}
			f.front.Store(nil)
			f.finish()
			nanny = nanny.in(f.plugin(t))
			nanny.refresh()
			if plan := nanny.plan(p.shared("1s", lockA, lockB)); !nanny.isNoop(plan) {
				t.Error("the next plan is not empty")
			}
			if deleted := f.count("/access_codes/delete"); deleted != 0 {
				t.Errorf("%d codes were deleted", deleted)
			}
		})
	}
}

func TestSharedAccessCode_CreationThatEveryLockHasRefusedFailsAndIsKnown(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.nextAttempt = func(a *fakeAttempt) {
		a.failure = map[string]any{"type": "lock_rejected", "message": "PIN 905173846251 is not for this lock"}
	}
	p := f.plugin(t)
	nanny := p.manage(setType)
	said := nanny.apply(p.shared("5s", lockA, lockB))
	if !nanny.tainted {
		t.Errorf("the creation did not fail, or is not known: %s", saidIn(said))
	}
	expectSaid(t, "the error", saidIn(said), "Error: "+actionPut, "PIN (hidden) is not for this lock")
}

// answerAfter answers everything so that comes after this number of requests for an operation.
func (f *fake) answerAfter(path string, n int, rest http.HandlerFunc) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.count(path) >= n {
			rest(w, r)
			return
		}
		f.ServeHTTP(w, r)
	})
	f.front.Store(&handler)
}
