package work

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
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

// add adds the owner of whom there was one key too many: the narrow one, where there is one.
func (c *Crowds) add(owners [2]uuid.UUID) {
	to, owner := &c.Narrow, owners[narrow]
	if owner == uuid.Nil {
		to, owner = &c.Wide, owners[wide]
	}
	if !slices.Contains(*to, owner) {
		*to = append(*to, owner)
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
	slots  [2]int // of each narrow, each wide owner
	most   [2]int // keys of one in hand
	hungry func() // one that had too many keys in hand has few by now: the sweep may find more

	mu     sync.Mutex
	owners map[uuid.UUID]Owners // by key, as far as it is remembered
	taken  [2]map[uuid.UUID]*share
}

// share is what an owner has in hand. Three quarters of the slots are for keys that the sweep has found: those that were
// woken, mostly by somebody who waits, do not wait for all of them.
type share struct {
	keys    int // at work, or waiting
	refused bool
	slots   chan struct{}
	found   chan struct{}
}

func newShares(l Owned, workers, inHand int, hungry func()) *shares {
	part := func(n int) int { return min(workers, max(leastShare, n)) }
	return &shares{lane: l, slots: [2]int{part(workers / 8), part(workers * 3 / 4)}, most: [2]int{inHand / 8, inHand * 3 / 4}, hungry: hungry,
		owners: map[uuid.UUID]Owners{}, taken: [2]map[uuid.UUID]*share{{}, {}}}
}

// learn finds out whose keys are.
func (s *shares) learn(ctx context.Context, keys []uuid.UUID) error {
	if s == nil {
		return nil
	}
	var unknown []uuid.UUID
	s.mu.Lock()
	for _, key := range keys {
		if _, ok := s.owners[key]; !ok {
			unknown = append(unknown, key)
		}
	}
	s.mu.Unlock()
	if len(unknown) == 0 {
		return nil
	}
	owners, err := s.lane.Owners(ctx, unknown)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range unknown {
		s.owners[key] = owners[key]
	}
	for other := range s.owners {
		if len(s.owners) <= ownersKept {
			break
		}
		if !slices.Contains(keys, other) {
			delete(s.owners, other)
		}
	}
	return nil
}

// claim is a key that is in hand.
type claim struct {
	*shares
	owners  [2]uuid.UUID
	woken   bool
	counted [2]*share
	leaves  []chan struct{}
}

// claim takes a key in hand, unless its owner has too many there; crowded: the lane has. A key of which it is not known
// whose it is is nobody's.
func (s *shares) claim(key uuid.UUID, woken, crowded bool) (c *claim, ok bool) {
	c = &claim{shares: s, woken: woken}
	if s == nil {
		return c, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[key]
	c.owners = [2]uuid.UUID{narrow: o.Narrow, wide: o.Wide}
	if o.Narrow != uuid.Nil {
		return c, c.count(narrow, crowded)
	}
	return c, c.count(wide, crowded)
}

// count counts the key to an owner, unless that has too many; with the lock held. Half of the room is left to keys that were
// woken: those that the sweep finds have waited, and are found again.
func (c *claim) count(level int, crowded bool) bool {
	owner := c.owners[level]
	if owner == uuid.Nil || c.counted[level] != nil {
		return true
	}
	h := c.taken[level][owner]
	if h == nil {
		h = &share{slots: make(chan struct{}, c.slots[level]), found: make(chan struct{}, max(1, c.slots[level]*3/4))}
	}
	most := c.limit(level, c.woken)
	if crowded {
		most = min(most, fewKeys)
	}
	if h.keys >= most {
		h.refused = true
		return false
	}
	c.taken[level][owner] = h
	h.keys++
	c.counted[level] = h
	return true
}

func (s *shares) limit(level int, woken bool) int {
	if woken {
		return s.most[level]
	}
	return s.most[level] / 2
}

// enter waits until it is the key's turn among those of its owners. It is false where the wide one has too many in hand, or
// ctx has ended.
func (c *claim) enter(ctx context.Context) bool {
	if c.shares == nil {
		return true
	}
	for level := range c.owners {
		c.mu.Lock()
		ok := c.count(level, false)
		h := c.counted[level]
		c.mu.Unlock()
		if !ok {
			return false
		}
		if h == nil {
			continue
		}
		if !c.woken && !c.wait(ctx, h.found) || !c.wait(ctx, h.slots) {
			return false
		}
	}
	return true
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
			h.refused = false
			c.hungry()
		}
		if h.keys == 0 {
			delete(c.taken[level], c.owners[level])
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
