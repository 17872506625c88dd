package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// The time of an attempt goes by the database's clock. A server whose own is behind, as that of a machine that was suspended, moves no
// bolt for which nobody waits any more; one that is ahead gives up none that was asked for just now.
func TestAttemptsEndByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(
				t,
				options{
					profile: "august",
					access:  access.Options{Now: func() time.Time { return time.Now().Add(off) }},
				},
			)
			a := b.door(false)
			w := b.look()
			if w.Bolt == nil {
				t.Fatalf("asked for just now: %+v", b.attempt(a))
			}
			if until := w.Due.Sub(time.Now().Add(off)); until > time.Minute {
				t.Errorf("the device is looked at again in %s", until)
			}
			_, err := b.db.Pool.Exec(t.Context(),
				"update action_attempts set deadline_at = now() - interval '1 minute' where action_attempt_id = $1",
				a.ID)
			b.must(err)
			still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), *w.Bolt)
			b.must(err)
			if still {
				t.Error("a minute after its time the bolt is to be moved")
			}
			if b.look(); b.attempt(a).Status != access.Failed {
				t.Errorf("then: %+v", b.attempt(a))
			}
		})
	}
}

// A clock that is stepped back has nothing that was written before be waited for that much longer, or be looked at without a pause.
func TestClockThatIsSteppedBackHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1"})
	clock.pass(-6 * time.Hour)
	looks := 0
	for end := clock.now().Add(10 * time.Minute); clock.now().Before(end); looks++ {
		due := b.look().Due
		if due == nil {
			t.Fatal("it is given up")
		}
		if b.work(c).Action == access.Put {
			break
		}
		clock.to(*due)
	}
	if b.work(c).Action != access.Put || looks > 60 {
		t.Errorf("after %d looks there is %q to do", looks, b.work(c).Action)
	}
}

func TestCommandIsLookedForWithPausesAfterTheClockWasSteppedBack(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.door(false)
	still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), *b.look().Bolt)
	b.must(err)
	clock.pass(-6 * time.Hour)
	if due := b.look().Due; !still || due == nil || due.Sub(clock.now()) < time.Second {
		t.Errorf("it is looked for again at %v", due)
	}
}

func TestEmptyListIsBelievedAfterTheClockWasSteppedBack(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "k1")
	clock.pass(time.Hour)
	b.read(found("k1", "2580"))
	b.read()
	clock.pass(-6 * time.Hour)
	for range 2 {
		b.read()
		clock.pass(time.Minute)
	}
	if w := b.work(c); w.Action != access.Put {
		t.Errorf("there is %q to do", w.Action)
	}
}
