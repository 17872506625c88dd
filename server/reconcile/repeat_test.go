package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A client that missed the end of a change requests it again and gets the same result.
func TestRepeatedChange_EndsLikeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		becomes access.PutOutcome
		want    access.AttemptStatus
	}{
		"taken":   {access.PutOutcome{Ref: "k1", Confirmed: true}, access.Succeeded},
		"refused": {access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such name"}}, access.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code := b.on("2580", "k1")
			change := access.CodeChange{ID: code.ID.String(), Name: new("Friend")}
			first, again := b.update(change), b.update(change)
			if again.Status != access.Pending {
				t.Errorf("before the lock has it: second attempt %s", again.Status)
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, c.becomes)
			for _, a := range []access.Attempt{first, again} {
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
	for name, code := range map[string]func(byHand) (access.Code, access.CodeChange){
		"a new one": func(b byHand) (access.Code, access.CodeChange) {
			c, _ := b.create("2580")
			return c, access.CodeChange{ID: c.ID.String(), PIN: "2580"}
		},
		"a change": func(b byHand) (access.Code, access.CodeChange) {
			c := b.on("1470", "k1")
			change := access.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			return c, change
		},
		"one that was deleted at the lock": func(b byHand) (access.Code, access.CodeChange) {
			c := b.on("1470", "k1")
			b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			b.read(found("k0", "1111"))
			change := access.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			if got := b.code(c.ID); got.Status != access.StatusSetting || len(got.Warnings) > 0 {
				b.Errorf("requested again: status %s, warnings %v", got.Status, got.Warnings)
			}
			return c, change
		},
		"one that was disabled at the lock, refused to change, and deleted there": func(b byHand) (access.Code, access.CodeChange) {
			c := b.on("1470", "k1")
			b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			b.read(disabled("1470"))
			change := access.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such PIN"}})
			b.read(found("k0", "1111"))
			b.update(change)
			return c, change
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &testClock{at: time.Now()}
			b := hand(t, options{profile: "august", access: access.Options{Now: clock.now, ListLag: time.Nanosecond}})
			c, change := code(b)
			refuse := func() {
				t.Helper()
				w := b.work(c)
				if w.Action != access.Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w,
					access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such PIN"}})
				clock.pass(time.Minute)
			}
			refuse()
			b.quiet(c, clock, time.Hour)
			told := len(b.told("access_code.changed"))
			a := b.update(change)
			if a.Status != access.Pending {
				t.Fatalf("errors %v, attempt %s", b.code(c.ID).Errors, a.Status)
			}
			refuse()
			if got := b.attempt(a); got.Status != access.Failed || len(b.code(c.ID).Errors) != 1 {
				t.Errorf("refused again: attempt %s, errors %v", got.Status, b.code(c.ID).Errors)
			}
			a = b.update(change)
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
			if got := b.code(c.ID); b.attempt(a).Status != access.Succeeded || got.Status != access.StatusSet ||
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
	for name, code := range map[string]func(byHand, *testClock) (access.Code, access.CodeChange){
		"set": func(b byHand, _ *testClock) (access.Code, access.CodeChange) {
			return b.on("2580", "k1"), access.CodeChange{PIN: "2580"}
		},
		"before its time": func(b byHand, clock *testClock) (access.Code, access.CodeChange) {
			return b.between("2580", clock.now().Add(100*time.Hour), clock.now().Add(101*time.Hour)), access.CodeChange{PIN: "2580"}
		},
		"off, which is allowed": func(b byHand, clock *testClock) (access.Code, access.CodeChange) {
			c := b.on("2580", "k1")
			b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			clock.pass(time.Hour)
			b.read(found("k0", "1111"))
			return c, access.CodeChange{PIN: "2580"}
		},
		"refused, and only what may be done at the lock is changed": func(b byHand, _ *testClock) (access.Code, access.CodeChange) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such PIN"}})
			return c, access.CodeChange{ExternalModificationAllowed: new(true)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			c, change := code(b, clock)
			change.ID = c.ID.String()
			before := b.code(c.ID)
			if a := b.update(change); a.Status != access.Succeeded {
				t.Errorf("attempt %s", a.Status)
			}
			if w := b.work(c); w.Action != access.Nothing {
				t.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != before.Status ||
				!slices.EqualFunc(got.Errors, before.Errors,
					func(a, b access.Problem) bool { return a.Code == b.Code }) {
				t.Errorf("before: status %s, errors %v; after: status %s, errors %v", before.Status, before.Errors, got.Status, got.Errors)
			}
		})
	}
}
