package work

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

type nobodys struct {
	Lane
	owners map[uuid.UUID]Owners
}

func (n nobodys) Owners(context.Context, []uuid.UUID) (map[uuid.UUID]Owners, error) {
	return n.owners, nil
}

// Of an owner so many keys are in hand; of those that the sweep has found half, and few where the lane has no more room.
func TestOfAnOwnerSoManyKeysAreInHand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		woken, crowded bool
		want           int
	}{"woken": {true, false, 250}, "found": {false, false, 125}, "crowded": {true, true, 16}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hungry := 0
			owner, lane := uuid.New(), nobodys{owners: map[uuid.UUID]Owners{}}
			s := newShares(lane, 200, 2000, func() { hungry++ })
			var keys []uuid.UUID
			for range 300 {
				key := uuid.New()
				keys = append(keys, key)
				lane.owners[key] = Owners{Narrow: owner, Wide: uuid.New()}
			}
			if err := s.learn(t.Context(), keys); err != nil {
				t.Fatal(err)
			}
			var claims []*claim
			for _, key := range keys {
				if c, ok := s.claim(key, test.woken, test.crowded); ok {
					claims = append(claims, c)
				}
			}
			if len(claims) != test.want {
				t.Errorf("%d are", len(claims))
			}
			if full := len(s.crowds().Narrow) == 1; full != (test.want >= 125) {
				t.Errorf("the sweep looks past it: %v", full)
			}
			for _, c := range claims {
				c.leave()
			}
			if hungry != 1 || len(s.taken[narrow]) != 0 {
				t.Errorf("told %d times that there is room, and %d shares are left", hungry, len(s.taken[narrow]))
			}
		})
	}
}

func TestWhoseKeysAreIsRememberedOfSoMany(t *testing.T) {
	t.Parallel()
	lane := nobodys{owners: map[uuid.UUID]Owners{}}
	s := newShares(lane, 200, 2000, func() {})
	for range 12 {
		var keys []uuid.UUID
		for range 1000 {
			key := uuid.New()
			keys, lane.owners[key] = append(keys, key), Owners{Wide: uuid.New()}
		}
		if err := s.learn(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if s.owners[key] != lane.owners[key] {
				t.Fatal("it forgets what it has just learnt")
			}
		}
	}
	if len(s.owners) > ownersKept {
		t.Errorf("of %d", len(s.owners))
	}
}
