package worker

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

func connections(eighths int) store.Part { return make(store.Part, eighths) }

// An owner may have a limited number of keys in hand, half of it for swept keys, and few while the lane is full.
func TestKeysInHandAreLimitedPerOwner(t *testing.T) {
	t.Parallel()
	account, customer, token := uuid.New(), uuid.New(), uuid.New()
	one := func() claimants { return newClaimants(Owners{account, uuid.New(), uuid.Nil}, false) }
	each := func() claimants { return newClaimants(Owners{uuid.New(), customer, uuid.Nil}, false) }
	made := func() claimants { return newClaimants(Owners{uuid.New(), uuid.New(), token}, false) }
	much := func() claimants { return claimants{creatorLevel: token} }
	doubtedOf := func(wide, maker uuid.UUID) func() claimants {
		return func() claimants { return newClaimants(Owners{uuid.New(), wide, maker}, true) }
	}
	many := func() claimants { return doubtedOf(uuid.New(), uuid.New())() }
	// accounts of one customer with 20 keys each
	few := func() func() claimants {
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
		"of one account, woken":    {one, true, false, 300, 250, 1},
		"of one account, found":    {one, false, false, 300, 125, 1},
		"of one account, crowded":  {one, true, true, 300, 16, 0},
		"without owner":            {func() claimants { return claimants{} }, false, true, 300, 300, 0},
		"of one customer":          {func() claimants { return claimants{workspaceLevel: customer} }, true, false, 3000, 1500, 1},
		"of one customer, crowded": {func() claimants { return claimants{workspaceLevel: customer} }, true, true, 3000, 16, 0},
		// all keys of 75 accounts, and 16 of every other account
		"of accounts of one customer":   {few(), true, false, 3000, 1500 + 75*16, 1},
		"of accounts with one key each": {each, false, true, 1000, 1000, 0},
		"of customers of one creator":   {made, false, true, 4000, 1750, 1},
		"of one creator, found":         {much, false, false, 4000, 1750, 1},
		"of one creator, crowded":       {much, false, true, 4000, 16, 0},
		"suspect, of many, found":       {many, false, false, 4000, 700, 1},
		"suspect, of many, woken":       {many, true, true, 4000, 700, 1},
		"suspect, of one creator":       {doubtedOf(uuid.Nil, token), true, false, 4000, 300, 1},
		"suspect, of one customer": {
			func() claimants { return newClaimants(Owners{Workspace: customer}, true) },
			true,
			false,
			4000,
			218,
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hungry := 0
			s := newShares(nil, 200, 2000, newConnQuotas(connections), func() bool { hungry++; return true })
			var claims []*claim
			var full Saturated
			for range test.keys {
				c, of := s.claim(test.owners(), test.woken, test.crowded)
				if c != nil {
					claims = append(claims, c)
				} else {
					full.add(of)
				}
			}
			if len(claims) != test.want {
				t.Errorf("%d keys are in hand, want %d", len(claims), test.want)
			}
			if (full.count() > 0) != (test.want < test.keys) {
				t.Errorf("%d owners are full", full.count())
			}
			for _, c := range claims {
				c.releaseAll()
			}
			left := 0
			for _, of := range s.byOwner {
				left += len(of)
			}
			if hungry != test.hungry || left != 0 {
				t.Errorf("%d refill requests, and %d shares remain", hungry, left)
			}
			if len(s.parts.byOwner) != 0 {
				t.Errorf("%d owners still have a connection quota", len(s.parts.byOwner))
			}
		})
	}
}

// A refill request that is not accepted is repeated.
func TestRefillRequest_RepeatedUntilAccepted(t *testing.T) {
	t.Parallel()
	requests := 0
	s := newShares(nil, 200, 2000, newConnQuotas(connections), func() bool { requests++; return requests > 2 })
	owner := claimants{accountLevel: uuid.New()}
	var claims []*claim
	for range 126 {
		if c, _ := s.claim(owner, false, false); c != nil {
			claims = append(claims, c)
		}
	}
	for _, c := range claims {
		c.releaseAll()
	}
	if requests != 3 {
		t.Errorf("%d requests, want 3", requests)
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
		all[key] = Owners{Workspace: key}
	}
	return all, nil
}

func TestOwnersOfKeysAreCached(t *testing.T) {
	t.Parallel()
	lane := &counted{}
	s := newShares(lane, 200, 2000, newConnQuotas(connections), func() bool { return true })
	for range 12 {
		var keys []uuid.UUID
		for range 1000 {
			keys = append(keys, uuid.New())
		}
		for range 2 {
			before := lane.asked
			all, err := s.claimantsOf(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if all[key] != (claimants{workspaceLevel: key}) {
					t.Fatal("the key has another owner")
				}
			}
			if n := lane.asked - before; n != 0 && n != 1000 {
				t.Errorf("queried %d keys, want 0 or 1000", n)
			}
		}
	}
	if len(s.owners) > maxCachedOwners || lane.asked != 12_000 {
		t.Errorf("%d owners are cached; queried %d keys", len(s.owners), lane.asked)
	}
}

// After slow queries the sweep pauses most of the time. It still runs often enough for a health check to pass.
func TestSweepPausesAfterSlowQuery(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{0: 0, time.Second: 4 * time.Second, queryTimeout: maxSweepRest} {
		if got := restAfter(took); got != want {
			t.Errorf("pause of %s after %s, want %s", got, took, want)
		}
	}
}
