package lockstate

import (
	"testing"
	"time"
)

// After a restore, the server knows a recreated code only under its old reference. The vendor has
// kept the owner.
func TestRestoredBackup_FindsRecreatedCode(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"))
	moved := found("r2", "1357")
	moved.Key = c.ID
	b.read(moved)
	if w := b.work(c); w.Action != Put || w.Ref != "r2" || len(b.unmanaged()) != 0 {
		t.Errorf("planned action %+v, %d unmanaged codes", w.Action, len(b.unmanaged()))
	}
	// While both are listed, the known reference counts.
	b.read(found("r2", "2580"))
	old := found("r1", "9999")
	old.Key = c.ID
	b.read(old, found("r2", "2580"))
	if got := b.code(c.ID); got.Status != StatusSet || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
}

// The vendor answered a repeated create with the first code. The code is recreated and not
// announced as set before.
func TestRepeatedCreate_OtherPINIsRecreated(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.ModifyInPlace = false
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	b.update(c, change{PIN: "1357"})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	first := found("r1", "2580")
	first.Key = c.ID
	b.read(first)
	b.pass(2 * time.Second) // the backoff has passed
	if got, w := b.code(c.ID), b.work(c); got.Status != StatusSetting || w.Action != Delete ||
		w.Ref != "r1" {
		t.Errorf("status %s, planned action %q of %s", got.Status, w.Action, w.Ref)
	}
}

// A code recreated after the backup, which hides its PIN or failed, does not count as the code in
// the backup.
func TestRestoredBackup_UnprovenCodeIsPutAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shown Found
		ref   string
	}{
		"hidden PIN":   {Found{Ref: "r2", Confirmed: true}, "r2"},
		"failed write": {Found{Ref: "r2", Failure: &Failure{Class: FailedForNow, Message: "The lock did not answer."}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			code := b.on("2580", "r1")
			b.read(found("r1", "2580"), found("k9", "9999"))
			c.shown.Key = code.ID
			b.read(c.shown, found("k9", "9999"))
			if got, w := b.code(
				code.ID,
			), b.work(
				code,
			); got.Status != StatusSetting ||
				w.Action != Put ||
				w.Ref != c.ref {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// A code removed in the vendor's app is gone, even if an expired subscription prevents writes to
// its lock.
func TestDeletedAtVendor_WhileWritesAreImpossible(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"), found("k9", "9999"))
	b.device.SubscriptionMissing = true
	b.deleteCode(c)
	b.read(found("k9", "9999"))
	if b.exists(c.ID) {
		t.Errorf("status %s", b.code(c.ID).Status)
	}
}
