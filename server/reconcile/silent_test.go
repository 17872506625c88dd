package reconcile_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A lock that says nothing of what has moved it is heard by each server on its gateway, of which one has commanded it.
func TestMoveOfASilentLockIsToldOnceByAllServers(t *testing.T) {
	t.Parallel()
	confirmed := func(b byHand, w access.BoltWork) { b.must(b.access.RecordBoltMoved(b.Context(), holder{}, b.id(), w)) }
	commander := func(b byHand, _ access.BoltWork) { b.tells(access.Operation{Method: "remote"}) }
	other := func(b byHand, _ access.BoltWork) { b.tells(access.Operation{Method: "unknown"}) }
	for name, heard := range map[string][]func(byHand, access.BoltWork){
		"after it was confirmed":         {confirmed, commander, other},
		"the other one first":            {other, commander},
		"the other one, then confirmed":  {other, confirmed, commander},
		"the commander first":            {commander, other},
		"confirmed, the other one first": {confirmed, other, commander},
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
				t.Errorf("the attempt is %s", got.Status)
			}
			events := b.tales("lock.locked", "lock.unlocked")
			var told []string
			for _, e := range events {
				told = append(told, e.Type)
			}
			if !slices.Equal(told, []string{"lock.locked", "lock.unlocked"}) {
				t.Fatalf("told %v", told)
			}
			if f := b.fields(events[1]); f["method"] != "remote" || f["action_attempt_id"] != a.ID.String() {
				t.Errorf("told with %v", f)
			}
		})
	}
}

// What a vendor names is another operation, whoever has done it.
func TestOperationsOfUnknownMethodThatHaveNamesAreToldEach(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	for _, id := range []string{"e1", "e2"} {
		b.tells(access.Operation{ID: id, Method: "unknown"})
	}
	if got := b.told("lock.unlocked"); len(got) != 2 {
		t.Errorf("told %v", got)
	}
}
