package lockstate

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Changes of a code are refused if too many wait for an unreachable lock, because each look
// processes all of them. A removal is still possible.
func TestPendingChanges_AreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.read(found("k1", "2580"), found("k2", "4711"))
	stranger := b.unmanaged()[0]
	b.unreachable(true, true)
	for what, ask := range map[string]func(int) error{
		"changes": func(i int) error {
			_, err := b.tryUpdate(c, change{PIN: PIN(fmt.Sprint(500000 + i))})
			return err
		},
		"conversions": func(int) error {
			_, err := b.request(func(l *Lock) (Requested, error) { return l.Convert(l.Code(stranger.ID), nil) })
			return err
		},
	} {
		for i := range maxWaiting {
			b.must(ask(i))
		}
		before := b.code(c.ID).DesiredGen
		var e *domain.Error
		if err := ask(maxWaiting); !errors.As(err, &e) || e.Kind != domain.TooMany || e.Type != "too_many_requests" {
			t.Errorf("with 20 pending %s: %v", what, err)
		}
		if b.code(c.ID).DesiredGen != before {
			t.Errorf("with 20 pending %s: the refused request has an effect", what)
		}
	}
	removals := map[result]int{}
	for range maxWaiting + 10 {
		removals[b.deleteCode(c)]++
	}
	if len(removals) != maxWaiting {
		t.Errorf("%d removal attempts", len(removals))
	}
	b.read(found("k1", "2580"), found("k2", "4711"))
	b.taken(b.work(c))
	b.read(found("k2", "4711"))
	for a := range removals {
		if got := b.attempt(a); got.Status != Succeeded {
			t.Errorf("removal %s", got.Status)
		}
	}
}

// A client that missed the end of a change requests it again and gets the same result.
func TestRepeatedChange_EndsLikeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		becomes Outcome
		want    AttemptStatus
	}{
		"taken":   {Outcome{Ref: "k1", Confirmed: true}, Succeeded},
		"refused": {Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such name"}}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := b.on("2580", "k1")
			ch := change{Name: new("Friend")}
			first, again := b.update(code, ch), b.update(code, ch)
			if again.Status != Pending {
				t.Errorf("before the lock has it: second attempt %s", again.Status)
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, c.becomes)
			for _, a := range []result{first, again} {
				if got := b.attempt(a); got.Status != c.want {
					t.Errorf("afterwards: attempt %s", got.Status)
				}
			}
			if got := b.told("access_code.changed"); len(got) != 1 {
				t.Errorf("%d events about the request", len(got))
			}
		})
	}
}

// A permanently refused change is tried once more on a new request.
func TestRepeatedChange_RefusedIsRetried(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]func(*bed) (view, change){
		"a new one": func(b *bed) (view, change) {
			c, _ := b.create("2580")
			return c, change{PIN: "2580"}
		},
		"a change": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			ch := change{PIN: "2580"}
			b.update(c, ch)
			return c, ch
		},
		"one that was deleted at the lock": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			b.allow(c, true)
			b.read(found("k0", "1111"))
			ch := change{PIN: "2580"}
			b.update(c, ch)
			if got := b.code(c.ID); got.Status != StatusSetting || len(got.Warnings) > 0 {
				b.Errorf("requested again: status %s, warnings %v", got.Status, got.Warnings)
			}
			return c, ch
		},
		"one that was disabled at the lock, refused to change, and deleted there": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			b.allow(c, true)
			b.read(disabled("1470"))
			ch := change{PIN: "2580"}
			b.update(c, ch)
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
			b.read(found("k0", "1111"))
			b.update(c, ch)
			return c, ch
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			c, ch := code(b)
			refuse := func() {
				t.Helper()
				w := b.work(c)
				if w.Action != Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w,
					Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
				b.pass(time.Minute)
			}
			refuse()
			b.quiet(c, time.Hour)
			told := len(b.told("access_code.changed"))
			a := b.update(c, ch)
			if a.Status != Pending {
				t.Fatalf("errors %v, attempt %s", b.code(c.ID).Errors, a.Status)
			}
			refuse()
			if got := b.attempt(a); got.Status != Failed || len(b.code(c.ID).Errors) != 1 {
				t.Errorf("refused again: attempt %s, errors %v", got.Status, b.code(c.ID).Errors)
			}
			a = b.update(c, ch)
			b.set(c, "k1")
			if got := b.code(c.ID); b.attempt(a).Status != Succeeded || got.Status != StatusSet ||
				len(got.Errors) > 0 {
				t.Errorf("accepted: status %s, errors %v", got.Status, got.Errors)
			}
			if got := len(b.told("access_code.changed")); got != told {
				t.Error("an event announces an empty change")
			}
		})
	}
}

// A change without an effect on the lock succeeds immediately.
func TestEmptyChange_SucceedsImmediately(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]func(*bed) (view, change){
		"set": func(b *bed) (view, change) {
			return b.on("2580", "k1"), change{PIN: "2580"}
		},
		"before its time": func(b *bed) (view, change) {
			return b.between("2580", b.now().Add(100*time.Hour), b.now().Add(101*time.Hour)), change{PIN: "2580"}
		},
		"off, which is allowed": func(b *bed) (view, change) {
			c := b.on("2580", "k1")
			b.allow(c, true)
			b.pass(time.Hour)
			b.read(found("k0", "1111"))
			return c, change{PIN: "2580"}
		},
		"refused, and only what may be done at the lock is changed": func(b *bed) (view, change) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
			return c, change{ExternalModificationAllowed: new(true)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, ch := code(b)
			before := b.code(c.ID)
			if a := b.update(c, ch); a.Status != Succeeded {
				t.Errorf("attempt %s", a.Status)
			}
			if w := b.work(c); w.Action != Nothing {
				t.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != before.Status ||
				!slices.EqualFunc(got.Errors, before.Errors,
					func(a, b Problem) bool { return a.Code == b.Code }) {
				t.Errorf("before: status %s, errors %v; after: status %s, errors %v", before.Status, before.Errors,
					got.Status, got.Errors)
			}
		})
	}
}

// A scheduled code shows no error of an earlier time frame.
func TestScheduledCode_ShowsNoEarlierError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
	from := b.now().Add(100 * time.Hour)
	b.update(c, change{
		StartsAt: new(from),
		EndsAt:   new(from.Add(time.Hour)),
	},
	)
	if got := b.code(c.ID); got.Status != StatusUnset || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A code that became unmanaged opens when its device says so.
func TestUnmanagedCode_IsSetBeforeItsStart(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	c := b.onBetween("2580", from, from.Add(time.Hour), "k1")
	b.unmanage(c)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
	// The state of an older server.
	b.edit(func(c *Code) { c.Status = StatusUnset })
	f := found("k1", "2580")
	f.StartsAt, f.EndsAt = &from, new(from.Add(time.Hour))
	b.read(f)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("read again: status %s", got.Status)
	}
}
