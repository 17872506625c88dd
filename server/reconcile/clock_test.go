package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// The database's clock decides when an attempt expires. A server whose clock is behind, such as a
// suspended machine, sends no command that has expired. A server whose clock is ahead does not
// expire a new one.
func TestAttempts_ExpireByDatabaseClock(t *testing.T) {
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
				t.Fatalf("a new attempt: %+v", b.attempt(a))
			}
			if until := w.Due.Sub(time.Now().Add(off)); until > time.Minute {
				t.Errorf("next look in %s", until)
			}
			_, err := b.db.Pool.Exec(t.Context(),
				"update action_attempts set deadline_at = now() - interval '1 minute' where action_attempt_id = $1",
				a.ID)
			b.must(err)
			still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), *w.Bolt)
			b.must(err)
			if still {
				t.Error("an expired command is planned")
			}
			if b.look(); b.attempt(a).Status != access.Failed {
				t.Errorf("afterwards: %+v", b.attempt(a))
			}
		})
	}
}

// A clock that is set back neither delays pending work by that time nor causes busy looks.
func TestClockStepsBack_DelaysNothing(t *testing.T) {
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
			t.Fatal("the code was given up")
		}
		if b.work(c).Action == access.Put {
			break
		}
		clock.to(*due)
	}
	if b.work(c).Action != access.Put || looks > 60 {
		t.Errorf("after %d looks: planned action %q", looks, b.work(c).Action)
	}
}

func TestClockStepsBack_CommandIsPolledWithPauses(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.door(false)
	still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), *b.look().Bolt)
	b.must(err)
	clock.pass(-6 * time.Hour)
	if due := b.look().Due; !still || due == nil || due.Sub(clock.now()) < time.Second {
		t.Errorf("next look at %v", due)
	}
}

func TestClockStepsBack_EmptyListCounts(t *testing.T) {
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
		t.Errorf("planned action %q", w.Action)
	}
}
