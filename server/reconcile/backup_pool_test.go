package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// backed creates a code that asks for the backup pool.
func (b *bed) backed(pin string) access.Code {
	b.Helper()
	c, _, err := b.access.CreateCode(b.Context(), b.p, access.NewCode{DeviceID: b.device, PIN: pin, NativeScheduling: true, EvenIfOffline: true, BackupPool: true,
		StartsAt: time.Now().Format(time.RFC3339), EndsAt: time.Now().Add(5 * time.Hour).Format(time.RFC3339)})
	b.must(err)
	return c
}

// pool is what there is to do about codes of the pool.
func (b byHand) pool(known ...access.Code) (out []access.CodeWork) {
	b.Helper()
	for _, w := range b.look().Codes {
		if !slices.ContainsFunc(known, func(c access.Code) bool { return c.ID == w.ID }) {
			out = append(out, w)
		}
	}
	return out
}

// A holder that crashes while it fills the pool leaves rows, which the next one finds: the pool has never more codes than it should.
func TestPoolThatWasBeingFilledInACrash(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	guest := b.backed("2580")
	first := b.pool(guest)
	if len(first) != 3 || first[0].Action != access.Put || first[0].PIN == "" || first[0].PIN == first[1].PIN {
		t.Fatalf("%d codes are to be put", len(first))
	}
	b.begin(first[0]) // and it crashes: whether the code is on the lock nobody knows
	b.begin(first[1])
	b.read(found("7", first[0].PIN))
	again := b.pool(guest)
	if len(b.unmanaged()) != 0 {
		t.Error("what is on the lock is taken for somebody else's")
	}
	for _, w := range again {
		if !slices.ContainsFunc(first, func(f access.CodeWork) bool { return f.ID == w.ID && f.PIN == w.PIN }) {
			t.Error("another code is added to the pool")
		}
	}
	if got := b.code(guest.ID); !got.BackupAvailable {
		t.Error("the code that has arrived cannot be pulled")
	}
	pulled, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if *pulled.PIN != first[0].PIN || pulled.ID != first[0].ID {
		t.Error("what was pulled is not the code on the lock")
	}
	if n := len(b.pool(guest, pulled)); n != 3 {
		t.Errorf("%d codes are to be put for a full pool", n)
	}
}

// A code of the pool that somebody deletes at the lock is put back, and counts for nothing until then.
func TestPoolCodeThatVanishesIsPutBack(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	guest := b.backed("2580")
	others := []access.Found{}
	for i, w := range b.pool(guest) {
		b.begin(w)
		f := found(string(rune('a'+i)), w.PIN)
		b.end(w, access.PutOutcome{Ref: f.Ref, Confirmed: true})
		others = append(others, f)
	}
	if len(b.pool(guest)) != 0 || !b.code(guest.ID).BackupAvailable {
		t.Fatal("the pool is not full")
	}
	b.read(others[2])
	again := b.pool(guest)
	if len(again) != 2 || again[0].PIN != others[0].PIN {
		t.Fatalf("%d codes are to be put back", len(again))
	}
	if got := b.told("access_code.deleted_external_to_seam"); len(got) != 0 {
		t.Error("that is told, of codes that nobody knows")
	}
	b.read(found("z", "9876"))
	b.look()
	if b.code(guest.ID).BackupAvailable {
		t.Error("a code that is not on the lock can be pulled")
	}
	if _, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String()); err == nil {
		t.Error("it was pulled")
	}
}

// What is pulled on a lock that takes no start in the past gets one that it takes.
func TestPulledCodeOfALockThatWantsItsStartAhead(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "kwikset"})
	guest := b.backed("2580")
	b.until("a backup code can be pulled", func() bool { return b.code(guest.ID).BackupAvailable })
	pulled, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	b.until("the lock has its time frame", func() bool { return len(b.code(pulled.ID).Mutations) == 0 })
	if got := b.code(pulled.ID); got.Status != access.StatusSet || len(got.Errors) > 0 || !got.StartsAt.Equal(*guest.StartsAt) || !got.EndsAt.Equal(*guest.EndsAt) {
		t.Errorf("it is %s with %v", got.Status, got.Errors)
	}
}
