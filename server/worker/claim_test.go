package worker

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

func connections(eighths int) store.Part { return make(store.Part, eighths) }

// Of an owner so many keys are in hand; of those that the sweep has found half, and few where the lane has no more room.
func TestOfAnOwnerSoManyKeysAreInHand(t *testing.T) {
	t.Parallel()
	account, customer, token := uuid.New(), uuid.New(), uuid.New()
	one := func() claimants { return newClaimants(Owners{account, uuid.New(), uuid.Nil}, false) }
	each := func() claimants { return newClaimants(Owners{uuid.New(), customer, uuid.Nil}, false) }
	made := func() claimants { return newClaimants(Owners{uuid.New(), uuid.New(), token}, false) }
	much := func() claimants { return claimants{maker: token} }
	doubtedOf := func(wide, maker uuid.UUID) func() claimants {
		return func() claimants { return newClaimants(Owners{uuid.New(), wide, maker}, true) }
	}
	many := func() claimants { return doubtedOf(uuid.New(), uuid.New())() }
	few := func() func() claimants { // accounts of one customer with twenty keys each
		n, account := 0, uuid.Nil
		return func() claimants {
			if n%20 == 0 {
				account = uuid.New()
			}
			n++
			return newClaimants(Owners{account, customer, uuid.Nil}, false)
		}
	}
	for name, test := range map[string]struct {
		owners         func() claimants
		woken, crowded bool
		keys, want     int
		hungry         int
	}{
		"of one account, woken":         {one, true, false, 300, 250, 1},
		"of one account, found":         {one, false, false, 300, 125, 1},
		"of one account, crowded":       {one, true, true, 300, 16, 0},
		"of nobody":                     {func() claimants { return claimants{} }, false, true, 300, 300, 0},
		"of one customer":               {func() claimants { return claimants{wide: customer} }, true, false, 3000, 1500, 1},
		"of one customer, crowded":      {func() claimants { return claimants{wide: customer} }, true, true, 3000, 16, 0},
		"of accounts of one customer":   {few(), true, false, 3000, 1500 + 75*16, 1}, // all of 75 accounts, and sixteen of each other
		"of accounts with one key each": {each, false, true, 1000, 1000, 0},
		"of customers that one made":    {made, false, true, 4000, 1750, 1},
		"much of what one made, found":  {much, false, false, 4000, 1750, 1},
		"much of it, crowded":           {much, false, true, 4000, 16, 0},
		"doubted, of many, found":       {many, false, false, 4000, 700, 1},
		"doubted, of many, woken":       {many, true, true, 4000, 700, 1},
		"doubted, of what one made":     {doubtedOf(uuid.Nil, token), true, false, 4000, 300, 1},
		"doubted, of one customer":      {func() claimants { return newClaimants(Owners{Wide: customer}, true) }, true, false, 4000, 218, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hungry := 0
			s := newShares(nil, 200, 2000, newParts(connections), func() bool { hungry++; return true })
			var claims []*claim
			var full Crowds
			for range test.keys {
				c, of := s.claim(test.owners(), test.woken, test.crowded)
				if c != nil {
					claims = append(claims, c)
				} else {
					full.add(of)
				}
			}
			if len(claims) != test.want {
				t.Errorf("%d are", len(claims))
			}
			if (full.count() > 0) != (test.want < test.keys) {
				t.Errorf("so many have too many: %d", full.count())
			}
			for _, c := range claims {
				c.leave()
			}
			left := 0
			for _, of := range s.taken {
				left += len(of)
			}
			if hungry != test.hungry || left != 0 {
				t.Errorf("told %d times that there is room, and %d shares are left", hungry, left)
			}
			if len(s.parts.of) != 0 {
				t.Errorf("%d have a part of the connections", len(s.parts.of))
			}
		})
	}
}

// Where it cannot be told that there is room, that is told the next time.
func TestThatThereIsRoomIsToldUntilItIsHeard(t *testing.T) {
	t.Parallel()
	told := 0
	s := newShares(nil, 200, 2000, newParts(connections), func() bool { told++; return told > 2 })
	owner := claimants{narrow: uuid.New()}
	var claims []*claim
	for range 126 {
		if c, _ := s.claim(owner, false, false); c != nil {
			claims = append(claims, c)
		}
	}
	for _, c := range claims {
		c.leave()
	}
	if told != 3 {
		t.Errorf("told %d times", told)
	}
}

type counted struct {
	Lane
	asked int
}

func (c *counted) Owners(_ context.Context, keys []uuid.UUID) (map[uuid.UUID]Owners, error) {
	c.asked += len(keys)
	all := map[uuid.UUID]Owners{}
	for _, key := range keys {
		all[key] = Owners{Wide: key}
	}
	return all, nil
}

func TestWhoseKeysAreIsRememberedOfSoMany(t *testing.T) {
	t.Parallel()
	lane := &counted{}
	s := newShares(lane, 200, 2000, newParts(connections), func() bool { return true })
	for range 12 {
		var keys []uuid.UUID
		for range 1000 {
			keys = append(keys, uuid.New())
		}
		for range 2 {
			before := lane.asked
			all, err := s.of(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if all[key] != (claimants{wide: key}) {
					t.Fatal("it is somebody else's")
				}
			}
			if n := lane.asked - before; n != 0 && n != 1000 {
				t.Errorf("asked for %d", n)
			}
		}
	}
	if len(s.owners) > ownersKept || lane.asked != 12_000 {
		t.Errorf("%d are remembered; asked for %d", len(s.owners), lane.asked)
	}
}

// Looks that take long leave the database alone for most of the time, and come often enough all the same for a server not to be taken for
// one that no longer looks.
func TestSweepsThatTakeLongAreFollowedByARest(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{0: 0, time.Second: 4 * time.Second, answer: mostRest} {
		if got := rest(took); got != want {
			t.Errorf("%s after one of %s, want %s", got, took, want)
		}
	}
}
