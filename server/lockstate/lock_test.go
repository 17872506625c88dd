package lockstate

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A clock that is set back neither delays pending work by that time nor causes busy looks.
func TestClockStepsBack_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1"})
	b.pass(-6 * time.Hour)
	looks := 0
	for end := b.now().Add(10 * time.Minute); b.now().Before(end); looks++ {
		due := b.look().Due
		if due == nil {
			t.Fatal("the code was given up")
		}
		if b.work(c).Action == Put {
			break
		}
		b.to(*due)
	}
	if b.work(c).Action != Put || looks > 60 {
		t.Errorf("after %d looks: planned action %q", looks, b.work(c).Action)
	}
}

func TestClockStepsBack_CommandIsPolledWithPauses(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.command(domain.UnlockDoor)
	if cmd := b.look().Command; cmd == nil || cmd.Lock || cmd.Started {
		t.Fatalf("planned command %+v", cmd)
	}
	b.attempts[0].StartedAt = new(b.now())
	b.pass(-6 * time.Hour)
	if due := b.look().Due; due == nil || due.Sub(b.now()) < time.Second {
		t.Errorf("next look at %v", due)
	}
}

func TestClockStepsBack_EmptyListCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.pass(time.Hour)
	b.read(found("k1", "2580"))
	b.read()
	b.pass(-6 * time.Hour)
	for range 2 {
		b.read()
		b.pass(time.Minute)
	}
	if w := b.work(c); w.Action != Put {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestUnstorableMessage_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no\x00such PIN"}})
	if got := b.code(c.ID); got.Error.Message != "nosuch PIN" {
		t.Errorf("error %q", got.Error.Message)
	}
}
