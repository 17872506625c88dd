package worker

import (
	"cmp"
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
		s.taken[level] = map[uuid.UUID]*share{}
	}
	for _, level := range doubtedLevels {
		s.most[level] = min(s.most[level], 2*s.slots[level])
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

// claim is a key that is in hand.
type claim struct {
	*shares
	owners  claimants
	woken   bool
	counted [levels]*share
	holds   [levels][]chan struct{}
	anew    chan struct{}
}

// claim takes a key of those owners in hand, unless one of them has too many there, who is full then; crowded: the lane has.
// A narrow owner with few has room whatever the wide one has, and both as long as their maker, who may have many such, has.
func (s *shares) claim(of claimants, woken, crowded bool) (c *claim, full crowd) {
	c = &claim{shares: s, woken: woken, owners: of, anew: make(chan struct{}, 1)}
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
		h := s.share(level, owner)
		few = few || h.keys < fewKeys
		if has := h.keys >= s.limit(level, woken); has && !c.spared(level, few) || crowded && !few {
			h.refused = h.refused || has
			return nil, crowd{level, owner}
		}
		c.counted[level] = h
	}
	for level, h := range c.counted {
		if h != nil {
			c.join(level, h)
		}
	}
	return c, full
}

// share is an owner's, which is there as long as some key of it is in hand; with s.mu held.
func (s *shares) share(level int, owner uuid.UUID) *share {
	if h := s.taken[level][owner]; h != nil {
		return h
	}
	found := s.slots[level]
	if !strict(level) {
		found = max(1, found*3/4)
	}
	return &share{slots: make(chan struct{}, s.slots[level]), found: make(chan struct{}, found)}
}

// join counts the key as its owner's; with s.mu held.
func (c *claim) join(level int, h *share) {
	c.counted[level] = h
	if c.taken[level][c.owners[level]] = h; h.keys == 0 && c.parts != nil && ofConnections[level] > 0 {
		h.connections = c.parts.take(c.owners[level], ofConnections[level])
	}
	h.keys++
}

// strict levels are those of which there may be very many within, with few keys each: that an owner within has few is no reason for more.
func strict(level int) bool { return level > wide }

// spared says whether a key has room although its owner has none, as an owner within has few. Among all that are doubted, which may be twice
// as many then, that is whoever has made what the key is of.
func (c *claim) spared(level int, few bool) bool {
	if level != doubted {
		return few && !strict(level)
	}
	h := cmp.Or(c.counted[doubtedMaker], c.counted[doubtedWide])
	return h != nil && h.keys < fewKeys && c.share(doubted, everybody).keys < 2*c.most[doubted]
}

// limit is how many keys of an owner may be in hand. Half of the room is left to keys that were woken: those that the sweep
// finds have waited, and are found again. That of a maker is not halved: those of what was made are. What a wide
// owner has that is doubted leaves it room for what is found, however it was woken.
func (s *shares) limit(level int, woken bool) int {
	switch {
	case level == doubtedWide && woken:
		return s.most[level] * 7 / 8
	case woken || strict(level):
		return s.most[level]
	}
	return s.most[level] / 2
}

// low is how few keys of an owner who had too many are in hand when the sweep finds more. Of those that are doubted others may wait for what
// is within, and stay.
func (s *shares) low(level int) int {
	if slices.Contains(doubtedLevels[:], level) {
		return s.limit(level, false) * 7 / 8
	}
	return s.limit(level, false) / 2
}

// enter waits until it is the key's turn among those of its owners. It is false where ctx has ended, or the claim is to be made anew.
func (c *claim) enter(ctx context.Context) (ok, anew bool) {
	for level, h := range c.counted {
		if h == nil {
			continue
		}
		for _, slots := range c.gates(h) {
			select {
			case slots <- struct{}{}:
				c.holds[level] = append(c.holds[level], slots)
			case <-c.anew:
				return false, true
			case <-ctx.Done():
				return false, false
			}
		}
	}
	return true, false
}

// gates are what a key passes to have its turn among those of an owner.
func (c *claim) gates(h *share) []chan struct{} {
	if c.woken {
		return []chan struct{}{h.slots}
	}
	return []chan struct{}{h.found, h.slots}
}

// with is the context for what is done for the key: it holds no more of the database's connections than its owners may.
func (c *claim) with(ctx context.Context) context.Context {
	for level := range c.counted {
		if h := c.counted[len(c.counted)-1-level]; h != nil {
			ctx = h.connections.Of(ctx)
		}
	}
	if c.shares != nil {
		ctx = context.WithValue(ctx, claimed{}, c)
	}
	return ctx
}

// leave gives all up.
func (c *claim) leave() {
	for level := range c.holds {
		c.free(level)
	}
	if c.shares == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for level := range c.counted {
		c.part(level)
	}
}

// free ends the key's turn among those of an owner.
func (c *claim) free(level int) {
	for _, slots := range c.holds[level] {
		<-slots
	}
	c.holds[level] = nil
}

// part no longer counts the key as its owner's; with s.mu held.
func (c *claim) part(level int) {
	h := c.counted[level]
	if h == nil {
		return
	}
	c.counted[level] = nil
	h.keys--
	if h.refused && h.keys < c.low(level) {
		h.refused = !c.hungry()
	}
	if h.keys == 0 {
		delete(c.taken[level], c.owners[level])
		if h.connections != nil {
			c.parts.leave(c.owners[level])
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
