package work

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Owned is a Lane whose keys are somebody's. Of the workers each owner has no more than a share: whose keys take long, or
// are many, keeps nobody else's waiting.
type Owned interface {
	Lane
	// Owners says whose keys are, which never changes. Keys that there are no more may be left out.
	Owners(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]Owners, error)
}

// Owners are whose a key is: of the keys of a narrow one, such as an account, an eighth of the workers look after some at
// once, of those of a wide one, such as a customer, three quarters. Nil: nobody's.
type Owners struct{ Narrow, Wide uuid.UUID }

// Crowds are the owners of whose keys so many are in hand that there is no room for another. Neither list is nil.
type Crowds struct{ Narrow, Wide []uuid.UUID }

// add adds the owner of whom there was one key too many.
func (c *Crowds) add(full Owners) {
	for _, o := range []struct {
		to    *[]uuid.UUID
		owner uuid.UUID
	}{{&c.Narrow, full.Narrow}, {&c.Wide, full.Wide}} {
		if o.owner != uuid.Nil && !slices.Contains(*o.to, o.owner) {
			*o.to = append(*o.to, o.owner)
		}
	}
}

func (c *Crowds) count() int { return len(c.Narrow) + len(c.Wide) }

const (
	leastShare = 8      // workers, however few there are in all
	ownersKept = 10_000 // of keys
	fewKeys    = 16     // of an owner: so many have room in a lane that has too many in hand

	narrow, wide = 0, 1
)

// shares are those of the owners of one lane's keys.
type shares struct {
	lane   Owned
	parts  *parts
	slots  [2]int      // of each narrow, each wide owner
	most   [2]int      // keys of one in hand
	hungry func() bool // one that had too many keys in hand has few by now: the sweep may find more; false: it cannot be told

	mu     sync.Mutex
	owners map[uuid.UUID]Owners // by key, as far as it is remembered
	taken  [2]map[uuid.UUID]*share
}

// share is what an owner has in hand. Three quarters of the slots are for keys that the sweep has found: those that were
// woken, mostly by somebody who waits, do not wait for all of them.
type share struct {
	keys        int // at work, or waiting
	refused     bool
	slots       chan struct{}
	found       chan struct{}
	connections store.Part
}

func newShares(l Owned, workers, inHand int, p *parts, hungry func() bool) *shares {
	of := func(n int) int { return min(workers, max(leastShare, n)) }
	return &shares{lane: l, parts: p, slots: [2]int{of(workers / 8), of(workers * 3 / 4)}, most: [2]int{inHand / 8, inHand * 3 / 4}, hungry: hungry,
		owners: map[uuid.UUID]Owners{}, taken: [2]map[uuid.UUID]*share{{}, {}}}
}

// of finds out whose keys are.
func (s *shares) of(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]Owners, error) {
	if s == nil {
		return nil, nil
	}
	all := make(map[uuid.UUID]Owners, len(keys))
	var unknown []uuid.UUID
	s.mu.Lock()
	for _, key := range keys {
		if o, ok := s.owners[key]; ok {
			all[key] = o
		} else {
			unknown = append(unknown, key)
		}
	}
	s.mu.Unlock()
	if len(unknown) == 0 {
		return all, nil
	}
	owners, err := s.lane.Owners(ctx, unknown)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners)+len(unknown) > ownersKept {
		clear(s.owners)
	}
	for _, key := range unknown {
		all[key] = owners[key]
		if len(s.owners) < ownersKept {
			s.owners[key] = owners[key]
		}
	}
	return all, nil
}

// claim is a key that is in hand.
type claim struct {
	*shares
	owners  [2]uuid.UUID
	woken   bool
	counted [2]*share
	leaves  []chan struct{}
}

// claim takes a key of those owners in hand, unless one of them has too many there, who is full then; crowded: the lane has.
// A narrow owner with few has room, whatever the wide one has.
func (s *shares) claim(of Owners, woken, crowded bool) (c *claim, full Owners) {
	c = &claim{shares: s, woken: woken, owners: [2]uuid.UUID{narrow: of.Narrow, wide: of.Wide}}
	if s == nil {
		return c, full
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	few := false
	for level, owner := range c.owners {
		if owner == uuid.Nil {
			continue
		}
		h := s.taken[level][owner]
		if h == nil {
			h = &share{slots: make(chan struct{}, s.slots[level]), found: make(chan struct{}, max(1, s.slots[level]*3/4))}
		}
		few = few || h.keys < fewKeys
		if most := s.limit(level, woken); !few && (h.keys >= most || crowded) {
			h.refused = h.refused || h.keys >= most
			if level == narrow {
				return nil, Owners{Narrow: owner}
			}
			return nil, Owners{Wide: owner}
		}
		c.counted[level] = h
	}
	for level, h := range c.counted {
		if h == nil {
			continue
		}
		if s.taken[level][c.owners[level]] = h; h.keys == 0 && s.parts != nil {
			h.connections = s.parts.take(c.owners[level], [2]int{narrow: 2, wide: 3}[level])
		}
		h.keys++
	}
	return c, full
}

// limit is how many keys of an owner may be in hand. Half of the room is left to keys that were woken: those that the sweep
// finds have waited, and are found again.
func (s *shares) limit(level int, woken bool) int {
	if woken {
		return s.most[level]
	}
	return s.most[level] / 2
}

// enter waits until it is the key's turn among those of its owners. It is false where ctx has ended.
func (c *claim) enter(ctx context.Context) bool {
	for _, h := range c.counted {
		if h != nil && (!c.woken && !c.wait(ctx, h.found) || !c.wait(ctx, h.slots)) {
			return false
		}
	}
	return true
}

// with is the context for what is done for the key: it holds no more of the database's connections than its owners may.
func (c *claim) with(ctx context.Context) context.Context {
	for level := range c.counted {
		if h := c.counted[len(c.counted)-1-level]; h != nil {
			ctx = h.connections.Of(ctx)
		}
	}
	return ctx
}

func (c *claim) wait(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		c.leaves = append(c.leaves, slots)
		return true
	case <-ctx.Done():
		return false
	}
}

// leave gives all up.
func (c *claim) leave() {
	for _, slots := range c.leaves {
		<-slots
	}
	if c.shares == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for level, h := range c.counted {
		if h == nil {
			continue
		}
		h.keys--
		if h.refused && h.keys < c.limit(level, false)/2 {
			h.refused = !c.hungry()
		}
		if h.keys == 0 {
			delete(c.taken[level], c.owners[level])
			if h.connections != nil {
				c.parts.leave(c.owners[level])
			}
		}
	}
}

// crowds are the owners of whom the sweep need not find any key.
func (s *shares) crowds() Crowds {
	full := [2][]uuid.UUID{{}, {}}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for level := range full {
			for owner, h := range s.taken[level] {
				if h.keys >= s.limit(level, false) {
					full[level] = append(full[level], owner)
				}
			}
		}
	}
	return Crowds{Narrow: full[narrow], Wide: full[wide]}
}
