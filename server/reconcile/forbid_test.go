package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// allowing returns a code whose modification at its lock is allowed.
func allowing(t *testing.T) (byHand, access.Code) {
	t.Helper()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
	return b, c
}

// A change at the lock is undone once such modifications are forbidden.
func TestForbidModification_UndoesChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found access.Found
		ref   string // where the code is put
	}{
		"deleted":  {found("k0", "1111"), ""},
		"disabled": {disabled("2580"), "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if w := b.work(code); w.Action != access.Nothing || len(b.code(code.ID).Warnings) != 1 {
				t.Fatalf("while allowed: planned action %q", w.Action)
			}
			a := b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != access.Pending || len(got.Warnings)+len(got.Errors) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(c.found)
			w := b.work(code)
			if w.Action != access.Put || w.Ref != c.ref {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", "2580"))
			if got := b.code(code.ID); got.Status != access.StatusSet || len(got.Warnings)+len(got.Errors) > 0 ||
				b.attempt(a).Status != access.Succeeded {
				t.Errorf("status %s, errors %v, warnings %v, attempt %s", got.Status, got.Errors, got.Warnings,
					b.attempt(a).Status)
			}
		})
	}
}

// A visible PIN that was changed at the lock becomes the desired one. A hidden one is unknown.
func TestForbidModification_KeepsVisiblePIN(t *testing.T) {
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
				t.Fatalf("warnings %v", got.Warnings)
			}
			a := b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != access.Succeeded || len(got.Warnings) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(c.found)
			if w := b.work(code); w.Action != c.want {
				t.Errorf("planned action %q", w.Action)
			}
		})
	}
}

// A code that disappeared as allowed and then came back is managed like any other.
func TestAllowedModification_ReturnedCodeIsManaged(t *testing.T) {
	t.Parallel()
	b, code := allowing(t)
	b.read(found("k0", "1111"))
	back := found("k1", "2580")
	back.Key = code.ID.String()
	b.read(back)
	b.update(access.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
	if got := b.code(code.ID); got.Status != access.StatusSet || len(got.Warnings) > 0 {
		t.Fatalf("back: status %s, warnings %v", got.Status, got.Warnings)
	}
	b.read(found("k0", "1111"))
	if w := b.work(code); w.Action != access.Put {
		t.Errorf("deleted again: status %s, errors %v, planned action %q", b.code(code.ID).Status,
			b.code(code.ID).Errors, w.Action)
	}
}
