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

// Doubting is an Owned lane of whose keys some may hang, whoever's they are. All that are doubted have seven eighths of the
// workers, and of each owner's share some less than that is for them: what is not doubted has room.
type Doubting interface {
	Owned
	// Doubts says whether a key is, by what is known now. A Drain of one that is and has its turn as one that is not (Doubted) ends
	// soon; then it waits for its turn anew.
	Doubts(key uuid.UUID) bool
}

// Owners are whose a key is: of the keys of a narrow one, such as an account, an eighth of the workers look after some at
// once, of those of a wide one, such as a workspace, three quarters, and of those of whoever has made it, which may be
// very many wide ones with little each, seven eighths. Nil: nobody's.
type Owners struct{ Narrow, Wide, Maker uuid.UUID }

// Crowds are the owners of whose keys so many are in hand that there is no room for another. No list is nil.
type Crowds struct {
	Narrow, Wide, Makers       []uuid.UUID
	DoubtedWide, DoubtedMakers []uuid.UUID // nor is there for another of theirs that is doubted
	Doubted                    bool        // nor for any that is
}

// add adds the owner of whom there was one key too many.
func (c *Crowds) add(full crowd) {
	if full.level == doubted {
		c.Doubted = true
		return
	}
	to := [...]*[]uuid.UUID{narrow: &c.Narrow, wide: &c.Wide, maker: &c.Makers, doubtedWide: &c.DoubtedWide, doubtedMaker: &c.DoubtedMakers}[full.level]
	if !slices.Contains(*to, full.owner) {
		*to = append(*to, full.owner)
	}
}

func (c *Crowds) count() int {
	n := len(c.Narrow) + len(c.Wide) + len(c.Makers) + len(c.DoubtedWide) + len(c.DoubtedMakers)
	if c.Doubted {
		n++
	}
	return n
}

const (
	leastShare = 8      // workers, however few there are in all
	ownersKept = 10_000 // of keys
	fewKeys    = 16     // of an owner: so many have room in a lane that has too many in hand
)

// levels of shares, in the order in which a key waits for its turn: what it holds then keeps none waiting but those it has that in common with.
const (
	narrow = iota
	doubtedWide
	wide
	doubtedMaker
	maker
	doubted
	levels
)

// eighths that an owner has: of the workers and the keys in hand, and of the database's connections.
var (
	ofWorkers     = [levels]int{narrow: 1, doubtedWide: 5, wide: 6, doubtedMaker: 6, maker: 7, doubted: 7}
	ofConnections = [levels]int{narrow: 4, wide: 6, maker: 7}
)

// claimants are the owners of a key, by level: of one that is doubted those of before once more, and everybody. Nil: there is none.
type claimants [levels]uuid.UUID

var everybody = uuid.Max

// crowd is an owner of whose keys there is one too many.
type crowd struct {
	level int
	owner uuid.UUID
}

// shares are those of the owners of one lane's keys.
type shares struct {
	lane   Owned
	parts  *parts
	slots  [levels]int // of each owner
	most   [levels]int // keys of one in hand
	hungry func() bool // one that had too many keys in hand has few by now: the sweep may find more; false: it cannot be told

	mu     sync.Mutex
	owners map[uuid.UUID]Owners // by key, as far as it is remembered
	taken  [levels]map[uuid.UUID]*share
}

// share is what an owner has in hand. Three quarters of the slots are for keys that the sweep has found: those that were
// woken, mostly by somebody who waits, do not wait for all of them. A maker has all of them for either: what was made keeps to that.
type share struct {
	keys        int // at work, or waiting
	refused     bool
	slots       chan struct{}
	found       chan struct{}
	connections store.Part
}

func newShares(l Owned, workers, inHand int, p *parts, hungry func() bool) *shares {
	s := &shares{lane: l, parts: p, hungry: hungry, owners: map[uuid.UUID]Owners{}}
	for level, eighths := range ofWorkers {
		s.slots[level] = min(workers, max(leastShare, workers*eighths/8))
		s.most[level] = inHand * eighths / 8
		if level == doubtedWide || level == doubtedMaker || level == doubted { // they wait for long, and what is known of them changes
			s.most[level] = min(s.most[level], 2*s.slots[level])
		}
		s.taken[level] = map[uuid.UUID]*share{}
	}
	return s
}

// of finds out whose keys are.
func (s *shares) of(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]claimants, error) {
	if s == nil {
		return nil, nil
	}
	all := make(map[uuid.UUID]claimants, len(keys))
	var unknown []uuid.UUID
	s.mu.Lock()
	for _, key := range keys {
		if o, ok := s.owners[key]; ok {
			all[key] = newClaimants(o, s.doubts(key))
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
		all[key] = newClaimants(owners[key], s.doubts(key))
		if len(s.owners) < ownersKept {
			s.owners[key] = owners[key]
		}
	}
	return all, nil
}

func newClaimants(o Owners, isDoubted bool) claimants {
	of := claimants{narrow: o.Narrow, wide: o.Wide, maker: o.Maker}
	if isDoubted {
		of[doubtedWide], of[doubtedMaker], of[doubted] = o.Wide, o.Maker, everybody
	}
	return of
}

func (s *shares) doubts(key uuid.UUID) bool {
	l, ok := s.lane.(Doubting)
	return ok && l.Doubts(key)
}

// stale says whether what is known of a key has changed since it was claimed, so that its turn is another one now.
func (c *claim) stale(key uuid.UUID) bool {
	return c.shares != nil && c.doubts(key) != (c.owners[doubted] != uuid.Nil)
}

// claim is a key that is in hand.
type claim struct {
	*shares
	owners  claimants
	woken   bool
	counted [levels]*share
	leaves  []chan struct{}
}

// claim takes a key of those owners in hand, unless one of them has too many there, who is full then; crowded: the lane has.
// A narrow owner with few has room whatever the wide one has, and both as long as their maker, who may have many such, has.
func (s *shares) claim(of claimants, woken, crowded bool) (c *claim, full crowd) {
	c = &claim{shares: s, woken: woken, owners: of}
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
			found := s.slots[level]
			if !strict(level) {
				found = max(1, found*3/4)
			}
			h = &share{slots: make(chan struct{}, s.slots[level]), found: make(chan struct{}, found)}
		}
		few = few || h.keys < fewKeys
		most := s.limit(level, woken)
		if has := h.keys >= most; has && (!few || strict(level)) || crowded && !few {
			h.refused = h.refused || has
			return nil, crowd{level, owner}
		}
		c.counted[level] = h
	}
	for level, h := range c.counted {
		if h == nil {
			continue
		}
		if s.taken[level][c.owners[level]] = h; h.keys == 0 && s.parts != nil && ofConnections[level] > 0 {
			h.connections = s.parts.take(c.owners[level], ofConnections[level])
		}
		h.keys++
	}
	return c, full
}

// strict levels are those of which there may be very many within, with few keys each: that an owner within has few is no reason for more.
func strict(level int) bool { return level > wide }

// limit is how many keys of an owner may be in hand. Half of the room is left to keys that were woken: those that the sweep
// finds have waited, and are found again. That of a maker is not halved: those of what was made are. What a wide
// owner has that is doubted leaves room in either half.
func (s *shares) limit(level int, woken bool) int {
	if woken && level != doubtedWide || strict(level) {
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
	if c.owners[doubted] != uuid.Nil {
		ctx = context.WithValue(ctx, asDoubted{}, true)
	}
	return ctx
}

type asDoubted struct{}

// Doubted says, within a Drain, whether the key has its turn as one that is doubted.
func Doubted(ctx context.Context) bool { return ctx.Value(asDoubted{}) != nil }

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
	full := [levels][]uuid.UUID{}
	for level := range full {
		full[level] = []uuid.UUID{}
	}
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
	return Crowds{Narrow: full[narrow], Wide: full[wide], Makers: full[maker], DoubtedWide: full[doubtedWide], DoubtedMakers: full[doubtedMaker], Doubted: len(full[doubted]) > 0}
}
