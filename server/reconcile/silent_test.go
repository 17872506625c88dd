package reconcile_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A lock reports an operation without its cause. Each server on its gateway receives the report,
// and one of them sent the command.
func TestLockOperation_UnknownCauseIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	confirmed := func(b byHand, w access.BoltWork) { b.must(b.access.RecordBoltMoved(b.Context(), holder{}, b.id(), w)) }
	commander := func(b byHand, _ access.BoltWork) { b.tells(access.Operation{Method: "remote"}) }
	other := func(b byHand, _ access.BoltWork) { b.tells(access.Operation{Method: "unknown"}) }
	for name, heard := range map[string][]func(byHand, access.BoltWork){
		"confirmed first":               {confirmed, commander, other},
		"other server first":            {other, commander},
		"other server, then confirmed":  {other, confirmed, commander},
		"commander first":               {commander, other},
		"confirmed, other server first": {confirmed, other, commander},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			b.tells(access.Operation{Locked: true})
			a := b.door(false)
			w := *b.look().Bolt
			still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), w)
			if err != nil || !still {
				t.Fatal(still, err)
			}
			for _, hear := range heard {
				hear(b, w)
			}
			if got := b.attempt(a); got.Status != access.Succeeded {
				t.Errorf("attempt status %s", got.Status)
			}
			events := b.tales("lock.locked", "lock.unlocked")
			var told []string
			for _, e := range events {
				told = append(told, e.Type)
			}
			if !slices.Equal(told, []string{"lock.locked", "lock.unlocked"}) {
				t.Fatalf("events %v", told)
			}
			if f := b.fields(events[1]); f["method"] != "remote" || f["action_attempt_id"] != a.ID.String() {
				t.Errorf("event fields %v", f)
			}
		})
	}
}

// An operation with an identifier is a separate one, whatever its cause.
func TestLockOperation_IdentifiedOnesAreSeparate(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	for _, id := range []string{"e1", "e2"} {
		b.tells(access.Operation{ID: id, Method: "unknown"})
	}
	if got := b.told("lock.unlocked"); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}
