package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// If changes at the lock are allowed, the time frame on the lock decides whether the code opens.
func TestAllowedChange_TimeFrameDecidesStatus(t *testing.T) {
	t.Parallel()
	type frame struct{ from, to time.Duration } // relative to now; zero: none
	for name, c := range map[string]struct {
		was, is frame
		before  access.Status
		after   access.Status
		told    int // number of set events after the change
	}{
		"made permanent before its start": {frame{50 * time.Hour, 60 * time.Hour}, frame{}, access.StatusUnset, access.StatusSet, 1},
		"begun before its start":          {frame{50 * time.Hour, 60 * time.Hour}, frame{-time.Hour, 60 * time.Hour}, access.StatusUnset, access.StatusSet, 1},
		"with another start ahead":        {frame{50 * time.Hour, 60 * time.Hour}, frame{55 * time.Hour, 60 * time.Hour}, access.StatusUnset, access.StatusUnset, 0},
		"put off once it opens":           {frame{-time.Hour, 60 * time.Hour}, frame{50 * time.Hour, 60 * time.Hour}, access.StatusSet, access.StatusUnset, 0},
		"made longer while it opens":      {frame{-time.Hour, 60 * time.Hour}, frame{-time.Hour, 90 * time.Hour}, access.StatusSet, access.StatusSet, 0},
		"given to an ongoing code":        {frame{}, frame{50 * time.Hour, 60 * time.Hour}, access.StatusSet, access.StatusUnset, 0},
	} {
		for _, disabled := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and disabled until later"}[disabled], func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "august")
				show := func(fr frame) access.Found {
					f := found("k1", "2580")
					if fr != (frame{}) {
						f.StartsAt, f.EndsAt = new(clock.now().Add(fr.from)), new(clock.now().Add(fr.to))
					}
					return f
				}
				was, is := show(c.was), show(c.is)
				var code access.Code
				if was.StartsAt == nil {
					code = b.on("2580", "k1")
				} else {
					code = b.between("2580", *was.StartsAt, *was.EndsAt)
					w := b.work(code)
					b.begin(w)
					b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
				}
				b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(true)})
				if got := b.code(code.ID); got.Status != c.before {
					t.Fatalf("before the change: status %s", got.Status)
				}
				before := countOf(b.events(code.ID), "access_code.set_on_device")
				clock.pass(time.Minute) // the list no longer lags
				if disabled {
					off := is
					off.Disabled = true
					b.read(off)
					if got := b.code(code.ID); got.Status != c.before {
						t.Errorf("disabled: status %s", got.Status)
					}
				}
				for range 2 {
					b.read(is)
				}
				if got := b.code(code.ID); got.Status != c.after || !got.OnDevice {
					t.Errorf("after the change: status %s, want %s", got.Status, c.after)
				}
				if n := countOf(b.events(code.ID), "access_code.set_on_device") - before; n != c.told {
					t.Errorf("%d set events, want %d", n, c.told)
				}
				if is.StartsAt == nil || !is.StartsAt.After(clock.now()) {
					return
				}
				if w := b.look(); w.Due == nil || w.Due.After(*is.StartsAt) {
					t.Errorf("due at %v, want %v", w.Due, is.StartsAt)
				}
				clock.to(*is.StartsAt)
				b.look()
				if got := b.code(code.ID); got.Status != access.StatusSet {
					t.Errorf("after its start: status %s", got.Status)
				}
			})
		}
	}
}
