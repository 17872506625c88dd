package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// anew are locks of a vendor who changes no code in place.
func anew(t *testing.T, profile string) (byHand, *testClock) {
	t.Helper()
	b, clock := timeBound(t, profile)
	_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities || '{"put_anew": true}'`)
	b.must(err)
	return b, clock
}

// A lock that is awake every few minutes only: what waits for it in the vendor's line is what is wanted, and goes to its end no more.
func TestACodeThatIsOnItsWayForLongIsNotPutAnew(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	for range 10 {
		clock.pass(2 * time.Minute)
		if w := b.work(c); w.Action == access.Delete || w.Action == access.Put {
			t.Fatalf("there is %q to do", w.Action)
		}
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
		t.Errorf("it is %s with %v", got.Status, got.Errors)
	}
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k2"})
	b.read(found("k9", "9999"), found("k2", "2580")) // another one than was put: that will not become it
	clock.pass(2 * time.Second)
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k2" {
		t.Errorf("there is %q of %q to do", w.Action, w.Ref)
	}
}

// So is one of which its lock hides the PIN: under the reference of that put there is nothing else.
func TestACodeThatHidesItsPINIsSetHoweverLongItTakes(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "august")
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
		t.Errorf("it is %s with %v", got.Status, got.Errors)
	}
}

// Where the device keeps no time frames, another one is nothing that the code would have to leave the door for.
func TestACodeIsNotPutAnewForWhatItsDeviceDoesNotKeep(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	a := b.update(access.CodeChange{ID: c.ID.String(), EndsAt: clock.now().Add(48 * time.Hour).Format(time.RFC3339)})
	if w := b.work(c); w.Action != access.Nothing {
		t.Fatalf("there is %q to do", w.Action)
	}
	a, err := b.access.GetAttempt(t.Context(), b.p, a.ID.String())
	b.must(err)
	if got := b.code(c.ID); a.Status != access.Succeeded || got.Status != access.StatusSet || len(got.Mutations) > 0 {
		t.Errorf("the change is %s, the code %s with %v", a.Status, got.Status, got.Mutations)
	}
	if countOf(b.events(c.ID), "access_code.time_frame_changed") != 1 {
		t.Errorf("told is %v", b.events(c.ID))
	}
	// Twice, back to what it was, and the lock has taken what was in between.
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), b.work(c), true, nil))
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2580"})
	b.end(w, access.PutOutcome{Ref: "k2", Confirmed: true})
	if w := b.work(c); w.Action != access.Delete || w.Ref != "k2" {
		t.Errorf("there is %q of %q to do", w.Action, w.Ref)
	}
}

// Whoever was handed a backup code stands before the door.
func TestABackupCodeThatIsPulledStaysWhereItIs(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if w := b.work(pulled); w.Action != access.Nothing {
		t.Fatalf("there is %q to do", w.Action)
	}
	if got := b.code(pulled.ID); got.Status != access.StatusSet || len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("it is %s with %v and %v", got.Status, got.Errors, got.Warnings)
	}
	clock.pass(time.Hour)
	if w := b.work(pulled); w.Action != access.Delete {
		t.Errorf("its time is over, and there is %q to do", w.Action)
	}
}

// A code whose PIN nobody knows could not be put again.
func TestACodeWithAPINThatNobodyKnowsIsNotPutAnew(t *testing.T) {
	t.Parallel()
	b, _ := anew(t, "august")
	b.read(access.Found{Ref: "k1", Name: "Owner", Confirmed: true})
	code := b.unmanaged()[0]
	_, err := b.access.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
	b.must(err)
	b.read(access.Found{Ref: "k1", Name: "Owner", Confirmed: true})
	name := "Landlady"
	b.update(access.CodeChange{ID: code.ID.String(), Name: &name})
	if w := b.work(code); w.Action != access.Put || w.Ref != "k1" {
		t.Errorf("there is %q of %q to do", w.Action, w.Ref)
	}
}

// What takes hours is not looked at every few seconds all that time.
func TestACodeThatIsOnItsWayForLongIsLookedAtLessAndLess(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	end, looks := clock.now().Add(24*time.Hour), 0
	for ; clock.now().Before(end); looks++ {
		b.read(access.Found{Ref: "k1", Key: c.ID.String(), PIN: "2580"})
		due := b.look().Due
		if due == nil || due.Sub(clock.now()) > 15*time.Minute {
			t.Fatalf("it is looked at again at %v", due)
		}
		clock.to(*due)
	}
	if looks > 400 {
		t.Errorf("it is looked at %d times a day", looks)
	}
}

// A vendor who shows something else than was put does so each time.
func TestACodeThatIsNeverShownAsItWasPutIsPutAnewEverLater(t *testing.T) {
	t.Parallel()
	b, clock := anew(t, "august")
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
				t.Fatal("it is given up")
			}
			clock.to(*due)
		}
		clock.pass(time.Second)
	}
	if puts < 5 || puts > 45 {
		t.Errorf("it was put %d times in six hours", puts)
	}
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_set_on_device" {
		t.Errorf("it says %v", got.Errors)
	}
	if n := countOf(b.events(c.ID), "access_code.failed_to_set_on_device"); n != 1 {
		t.Errorf("that is told %d times", n)
	}
}
