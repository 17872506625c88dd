package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// rigidByHand returns the capabilities of locks without in-place changes.
func rigidByHand(t *testing.T, profile string) (byHand, *testClock) {
	t.Helper()
	b, clock := timeBound(t, profile)
	_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities || '{"put_anew": true}'`)
	b.must(err)
	return b, clock
}

// A lock may wake up only every few minutes. A pending code in the vendor's queue is the desired
// one and must not be deleted.
func TestRecreation_PendingCodeIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	for range 10 {
		clock.pass(2 * time.Minute)
		if w := b.work(c); w.Action == access.Delete || w.Action == access.Put {
			t.Fatalf("planned action %q", w.Action)
		}
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k2"})
	b.read(found("k9", "9999"), found("k2", "2580")) // not the code that was put, and it will not become it
	clock.pass(2 * time.Second)
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// The same if the lock hides PINs: the reference of that put has no other code.
func TestRecreation_PendingHiddenCodeIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	for range 3 {
		clock.pass(2 * time.Minute)
		b.look()
	}
	b.read(found("k1", ""))
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If the device stores no time frames, a changed one is no reason to recreate the code.
func TestRecreation_NotForUnstoredTimeFrame(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	a := b.update(access.CodeChange{ID: c.ID.String(), EndsAt: clock.now().Add(48 * time.Hour).Format(time.RFC3339)})
	if w := b.work(c); w.Action != access.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	a, err := b.access.GetAttempt(t.Context(), b.p, a.ID.String())
	b.must(err)
	if got := b.code(c.ID); a.Status != access.Succeeded || got.Status != access.StatusSet || len(got.Mutations) > 0 {
		t.Errorf("attempt %s, status %s, mutations %v", a.Status, got.Status, got.Mutations)
	}
	if countOf(b.events(c.ID), "access_code.time_frame_changed") != 1 {
		t.Errorf("events %v", b.events(c.ID))
	}
	// Two changes back to the first state, while the lock accepted the one in between.
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2580"})
	b.end(w, access.PutOutcome{Ref: "k2", Confirmed: true})
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A pulled backup code is in use by a person at the door.
func TestRecreation_PulledBackupIsKept(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if w := b.work(pulled); w.Action != access.Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	if got := b.code(pulled.ID); got.Status != access.StatusSet || len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	clock.pass(time.Hour)
	if w := b.work(pulled); w.Action != access.Delete {
		t.Errorf("after its end: planned action %q", w.Action)
	}
}

// A code with an unknown PIN could not be created again.
func TestRecreation_NotForUnknownPIN(t *testing.T) {
	t.Parallel()
	b, _ := rigidByHand(t, "august")
	b.read(access.Found{Ref: "k1", Name: "Owner", Confirmed: true})
	code := b.unmanaged()[0]
	_, err := b.access.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
	b.must(err)
	b.read(access.Found{Ref: "k1", Name: "Owner", Confirmed: true})
	name := "Landlady"
	b.update(access.CodeChange{ID: code.ID.String(), Name: &name})
	if w := b.work(code); w.Action != access.Put || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// An operation that takes hours is not polled every few seconds.
func TestRecreation_PollsSlowWriteLessAndLess(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	end, looks := clock.now().Add(24*time.Hour), 0
	for ; clock.now().Before(end); looks++ {
		b.read(access.Found{Ref: "k1", Key: c.ID.String(), PIN: "2580"})
		due := b.look().Due
		if due == nil || due.Sub(clock.now()) > 15*time.Minute {
			t.Fatalf("next look at %v", due)
		}
		clock.to(*due)
	}
	if looks > 400 {
		t.Errorf("%d looks a day", looks)
	}
}

// A vendor that always shows another code than the one put does so again.
func TestRecreation_BacksOffIfNeverShownAsPut(t *testing.T) {
	t.Parallel()
	b, clock := rigidByHand(t, "august")
	c := b.between("2580", clock.now(), clock.now().Truncate(time.Minute).Add(48*time.Hour+30*time.Second))
	puts, on := 0, []access.Found{found("k9", "9999")}
	for end := clock.now().Add(6 * time.Hour); clock.now().Before(end); {
		b.read(on...)
		w := b.work(c)
		switch w.Action {
		case access.Put:
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1"})
			rounded := found("k1", "2580")
			rounded.StartsAt, rounded.EndsAt = w.StartsAt, new(w.EndsAt.Truncate(time.Minute))
			puts, on = puts+1, append(on[:1], rounded)
		case access.Delete:
			b.taken(w)
			on = on[:1]
		default:
			due := b.look().Due
			if due == nil {
				t.Fatal("the code was given up")
			}
			clock.to(*due)
		}
		clock.pass(time.Second)
	}
	if puts < 5 || puts > 45 {
		t.Errorf("%d puts in six hours", puts)
	}
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_set_on_device" {
		t.Errorf("errors %v", got.Errors)
	}
	if n := countOf(b.events(c.ID), "access_code.failed_to_set_on_device"); n != 1 {
		t.Errorf("%d events", n)
	}
}
