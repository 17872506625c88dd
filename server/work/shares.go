package work

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// Owned is a Lane whose keys are somebody's. Of the workers each owner has no more than a share: whose keys take long, or
// are many, keeps nobody else's waiting.
type Owned interface {
	Lane
	// Owners says whose a key is, which never changes.
	Owners(ctx context.Context, id uuid.UUID) (Owners, error)
}

// Owners are whose a key is: of the narrow one's, such as an account, an eighth of the workers look after keys at once, of
// the wide one's, such as a customer, half of them. Nil: nobody's.
type Owners struct{ Narrow, Wide uuid.UUID }

// Crowds are the owners of whose keys so many are in hand that there is no room for another. Neither list is nil.
type Crowds struct{ Narrow, Wide []uuid.UUID }

const (
	leastShare   = 8      // workers, however few there are in all
	ownersKept   = 10_000 // of keys
	narrow, wide = 0, 1
)

// shares are those of the owners of one lane's keys.
type shares struct {
	lane  Owned
	slots [2]int // of each narrow, each wide owner
	keys  [2]int // in hand

	mu     sync.Mutex
	owners map[uuid.UUID]Owners // by key, as far as it is remembered
	taken  [2]map[uuid.UUID]*share
}

// share is what an owner has in hand.
type share struct {
	keys  int // at work, or waiting
	slots chan struct{}
}

func newShares(l Owned, workers int) *shares {
	part := func(n int) int { return min(workers, max(leastShare, workers/n)) }
	return &shares{lane: l, slots: [2]int{part(8), part(2)}, keys: [2]int{mostInHand / 8, mostInHand / 2},
		owners: map[uuid.UUID]Owners{}, taken: [2]map[uuid.UUID]*share{{}, {}}}
}

// enter waits until it is the key's turn among those of its owners. It is false where there are too many, or ctx has
// ended. Half of the room is left to keys that were woken: those that the sweep finds have waited, and are found again.
func (s *shares) enter(ctx context.Context, id uuid.UUID, woken bool) (leave func(), ok bool) {
	if s == nil {
		return func() {}, true
	}
	mine, ok := s.count(s.of(ctx, id), woken)
	if !ok {
		return nil, false
	}
	var inside []*share
	leave = func() {
		for _, h := range inside {
			<-h.slots
		}
		s.discount(mine)
	}
	for level, owner := range mine {
		if owner == uuid.Nil {
			continue
		}
		s.mu.Lock()
		h := s.taken[level][owner]
		s.mu.Unlock()
		select {
		case h.slots <- struct{}{}:
			inside = append(inside, h)
		case <-ctx.Done():
			leave()
			return nil, false
		}
	}
	return leave, true
}

// of is whose a key is. Nobody's, where it is gone or the database fails, which whoever looks at it will see.
func (s *shares) of(ctx context.Context, id uuid.UUID) [2]uuid.UUID {
	s.mu.Lock()
	o, known := s.owners[id]
	s.mu.Unlock()
	if !known {
		var err error
		if o, err = s.lane.Owners(ctx, id); err != nil {
			return [2]uuid.UUID{}
		}
		s.mu.Lock()
		if len(s.owners) >= ownersKept {
			clear(s.owners)
		}
		s.owners[id] = o
		s.mu.Unlock()
	}
	return [2]uuid.UUID{narrow: o.Narrow, wide: o.Wide}
}

// count takes a key in hand, where its owners may have another.
func (s *shares) count(owners [2]uuid.UUID, woken bool) (_ [2]uuid.UUID, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for level, owner := range owners {
		if h := s.taken[level][owner]; h != nil && h.keys >= s.most(level, woken) {
			return owners, false
		}
	}
	for level, owner := range owners {
		if owner == uuid.Nil {
			continue
		}
		h := s.taken[level][owner]
		if h == nil {
			h = &share{slots: make(chan struct{}, s.slots[level])}
			s.taken[level][owner] = h
		}
		h.keys++
	}
	return owners, true
}

func (s *shares) most(level int, woken bool) int {
	if woken {
		return s.keys[level]
	}
	return s.keys[level] / 2
}

func (s *shares) discount(owners [2]uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for level, owner := range owners {
		if h := s.taken[level][owner]; h != nil {
			if h.keys--; h.keys == 0 {
				delete(s.taken[level], owner)
			}
		}
	}
}

// crowds are the owners of whom the sweep need not find any key.
func (s *shares) crowds() Crowds {
	var full [2][]uuid.UUID
	for level := range full {
		full[level] = []uuid.UUID{}
		if s == nil {
			continue
		}
		s.mu.Lock()
		for owner, h := range s.taken[level] {
			if h.keys >= s.most(level, false) {
				full[level] = append(full[level], owner)
			}
		}
		s.mu.Unlock()
	}
	return Crowds{Narrow: full[narrow], Wide: full[wide]}
}
