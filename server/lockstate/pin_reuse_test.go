package lockstate

import (
	"fmt"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Until a removal is confirmed, the first code may be on the lock.
func TestPINReuse_WaitsForConfirmedRemoval(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"the first is on the lock": true, "the first may be on the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			end := b.now().Add(time.Hour)
			next := end.Add(PINReuseMargin)
			first := b.between("2580", b.now(), end)
			w := b.work(first)
			b.begin(w)
			if answered {
				b.end(w, Outcome{Ref: "k1", Confirmed: true})
			}
			second := b.between("2580", next, next.Add(time.Hour))
			waits := func(when string) {
				t.Helper()
				if w := b.work(second); w.Action != Nothing {
					t.Errorf("%s: planned action %q", when, w.Action)
				}
			}
			waits("during the first stay")
			if due := b.look().Due; due == nil || due.After(end) {
				t.Errorf("due at %v, after the end of the first stay", due)
			}
			b.to(end)
			waits("at the end of the first stay")
			b.read(found("k1", "2580"))
			waits("while the lock has the first code")
			b.removal(b.work(first), false, nil)
			waits("before the removal is confirmed")
			b.pass(15 * time.Second) // a read may lag behind
			b.read()
			if w := b.work(second); w.Action != Put {
				t.Errorf("after the removal: planned action %q", w.Action)
			}
		})
	}
}

// A lock that enforces time frames gets its codes days ahead. The code of the earlier stay comes first on any lock.
func TestPINReuse_LaterStayIsDueFirst(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	day := func(n int) time.Time { return b.now().Add(time.Duration(n) * 24 * time.Hour) }
	second := b.between("2580", day(3), day(4))
	first := b.between("2580", day(1), day(2))
	b.codes[b.index(first.ID)].PreferNativeScheduling = false
	if w := b.work(second); w.Action != Nothing {
		t.Errorf("planned action %q for the second", w.Action)
	}
	b.to(day(1))
	if w := b.work(first); w.Action != Put {
		t.Errorf("planned action %q for the first", w.Action)
	}
	b.deleteCode(first)
	if w := b.work(second); w.Action != Put {
		t.Errorf("without the first: planned action %q for the second", w.Action)
	}
}

// A new code may have the PIN of a pool code, which leaves for it and must not be pulled before.
func TestPINReuse_PulledCodeHasAPINOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.stay(b.now(), b.now().Add(time.Hour))
	for i, w := range b.look().Codes {
		b.begin(w)
		b.end(w, Outcome{Ref: fmt.Sprint("k", i), Confirmed: true})
		if w.Code != guest.ID {
			b.between(w.PIN, b.now().Add(24*time.Hour), b.now().Add(25*time.Hour))
		}
	}
	_, err := b.pull(guest)
	if e, _ := domain.AsError(err); e == nil || e.Type != "backup_access_code_not_found" {
		t.Errorf("pulled a code whose PIN another code has: %v", err)
	}
}

// A request between the plan and the write changes whose turn it is.
func TestPINReuse_EarlierStayBeforeTheWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	w := b.work(b.between("2580", b.now().Add(5*time.Hour), b.now().Add(6*time.Hour)))
	b.between("2580", b.now(), b.now().Add(time.Hour))
	still := b.started(w)
	if w.Action != Put || still {
		t.Errorf("planned action %q is still wanted: %t", w.Action, still)
	}
}
