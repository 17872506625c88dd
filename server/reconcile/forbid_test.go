package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// allowing is a code of which it is allowed that it is changed at its lock.
func allowing(t *testing.T) (byHand, access.Code) {
	t.Helper()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
	return b, c
}

// What was done to a code at its lock while that was allowed is undone once it is not any more.
func TestCodeIsPutRightOnceModificationIsForbiddenAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found access.Found
		ref   string // where it is put
	}{
		"deleted":  {found("k0", "1111"), ""},
		"disabled": {disabled("2580"), "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if w := b.work(code); w.Action != access.Nothing || len(b.code(code.ID).Warnings) != 1 {
				t.Fatalf("while it is allowed there is %q to do", w.Action)
			}
			a := b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != access.Pending || len(got.Warnings)+len(got.Errors) > 0 {
				t.Errorf("the attempt is %s, and the code shows %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("the lock is not read")
			}
			b.read(c.found)
			w := b.work(code)
			if w.Action != access.Put || w.Ref != c.ref {
				t.Fatalf("there is %q of %q to do", w.Action, w.Ref)
			}
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", "2580"))
			if got := b.code(code.ID); got.Status != access.StatusSet || len(got.Warnings)+len(got.Errors) > 0 ||
				b.attempt(a).Status != access.Succeeded {
				t.Errorf("it is %s with %v and %v, the attempt %s", got.Status, got.Errors, got.Warnings,
					b.attempt(a).Status)
			}
		})
	}
}

// A PIN that was changed at the lock is what is wanted since, unless it is hidden: then nobody knows it.
func TestChangeAtTheLockIsWantedOnceModificationIsForbiddenAgainUnlessItIsHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found access.Found
		want  access.Action
	}{
		"shown":  {found("k1", "9999"), access.Nothing},
		"hidden": {changedAt("k1", time.Now().Add(time.Hour)), access.Put},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if got := b.code(code.ID); len(got.Warnings) != 1 {
				t.Fatalf("it shows %v", got.Warnings)
			}
			a := b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != access.Succeeded || len(got.Warnings) > 0 {
				t.Errorf("the attempt is %s, and the code shows %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("the lock is not read")
			}
			b.read(c.found)
			if w := b.work(code); w.Action != c.want {
				t.Errorf("there is %q to do", w.Action)
			}
		})
	}
}

// A code that was off, which was allowed, and has come back by itself is looked after as any other.
func TestCodeThatHasComeBackIsPutRightWhenItIsDeletedAgain(t *testing.T) {
	t.Parallel()
	b, code := allowing(t)
	b.read(found("k0", "1111"))
	back := found("k1", "2580")
	back.Key = code.ID.String()
	b.read(back)
	b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
	if got := b.code(code.ID); got.Status != access.StatusSet || len(got.Warnings) > 0 {
		t.Fatalf("back it is %s with %v", got.Status, got.Warnings)
	}
	b.read(found("k0", "1111"))
	if w := b.work(code); w.Action != access.Put {
		t.Errorf("deleted once more it is %s with %v, and there is %q to do", b.code(code.ID).Status,
			b.code(code.ID).Errors, w.Action)
	}
}
