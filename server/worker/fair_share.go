package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Owned is a Lane whose keys have owners. Each owner gets at most a share of the workers, so that an owner with many or
// slow keys does not delay the keys of others.
type Owned interface {
	Lane
	// Owners returns the owners of keys, which never change. It may omit keys that do not exist.
	Owners(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]Owners, error)
}

// Owners are the owners of a key; uuid.Nil means none. The keys of one account use at most an eighth of the workers,
// those of one workspace three quarters, and those of all workspaces with one creator seven eighths. A creator may have
// very many workspaces with few keys each.
type Owners struct {
	// Account is the connected account.
	Narrow uuid.UUID
	// Workspace is the workspace.
	Wide uuid.UUID
	// Creator is the credential that created the workspace.
	Maker uuid.UUID
}

// Saturated lists the owners that have no room for another key in hand. No list is nil.
type Crowds struct {
	// Accounts, Workspaces, and Creators have no room for any key.
	Narrow, Wide, Makers []uuid.UUID
	// SuspectWorkspaces and SuspectCreators have no room for another suspect key.
	DoubtedWide, DoubtedMakers []uuid.UUID
	// Suspect is true if there is no room for any suspect key.
	Doubted bool
}

// add adds an owner that had no room for a key.
func (c *Crowds) add(full crowd) {
	if full.level == doubted {
		c.Doubted = true
		return
	}
	to := [...]*[]uuid.UUID{
		narrow:       &c.Narrow,
		wide:         &c.Wide,
		maker:        &c.Makers,
		doubtedWide:  &c.DoubtedWide,
		doubtedMaker: &c.DoubtedMakers,
	}[full.level]
	if !slices.Contains(*to, full.owner) {
		*to = append(*to, full.owner)
	}
}

// count returns the number of saturated owners.
func (c *Crowds) count() int {
	n := len(c.Narrow) + len(c.Wide) + len(c.Makers) + len(c.DoubtedWide) + len(c.DoubtedMakers)
	if c.Doubted {
		n++
	}
	return n
}

const (
	leastShare = 8      // workers, at least
	ownersKept = 10_000 // of keys, in the cache
	// keys of an owner that have room in a full lane
	fewKeys = 16
)

// Levels of shares, in the order in which a key waits for slots. While a key waits, it holds only slots that it shares
// with the keys of its earlier levels.
const (
	narrow = iota
	doubtedWide
	wide
	doubtedMaker
	maker
	doubted
	levels
)

// Eighths that an owner gets: of the workers and of the keys in hand, and of the database connections.
var (
	ofWorkers     = [levels]int{narrow: 1, doubtedWide: 5, wide: 6, doubtedMaker: 6, maker: 7, doubted: 7}
	ofConnections = [levels]int{narrow: 4, wide: 6, maker: 7}
)

// claimants are the owners of a key, by level. A suspect key has its workspace and creator once more, and allOwners.
// Nil means none.
type claimants [levels]uuid.UUID

var everybody = uuid.Max

// fullOwner is an owner without room for another key.
type crowd struct {
	level int
	owner uuid.UUID
}

// shares are the shares of the owners of one lane's keys.
type shares struct {
	lane  Owned
	parts *parts
	slots [levels]int // slots of each owner
	// keys of each owner in hand
	most [levels]int
	// refill requests an early sweep, because an owner that was full has room again. It returns false if the request
	// was not accepted.
	hungry func() bool

	mu     sync.Mutex
	owners map[uuid.UUID]Owners // by key; a cache
	taken  [levels]map[uuid.UUID]*share
}

// share counts the keys of an owner in hand. Swept keys use at most three quarters of the slots, so that woken keys,
// for which a caller may be waiting, do not wait for all of them. Both kinds may use all slots of a creator, because
// its workspaces have such a limit.
type share struct {
	keys        int // being worked on, or waiting
	refused     bool
	slots       chan struct{}
	found       chan struct{}
	connections store.Part
}

func newShares(l Owned, workers, inHand int, p *parts, hungry func() bool) *shares {
	s := &shares{
		lane:   l,
		parts:  p,
		hungry: hungry,
		owners: map[uuid.UUID]Owners{},
	}
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

// claimantsOf returns the claimants of keys.
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

// claim is a key in hand.
type claim struct {
	*shares
	owners  claimants
	woken   bool
	counted [levels]*share
	holds   [levels][]chan struct{}
	anew    chan struct{}
}

// claim takes a key into hand unless one of its owners is full, which it returns. Crowded means that the lane is full.
// An account with few keys has room even if its workspace is full. Both have room only while their creator has, because
// a creator may have many of them.
func (s *shares) claim(of claimants, woken, crowded bool) (c *claim, full crowd) {
	c = &claim{
		shares: s,
		woken:  woken,
		owners: of,
		anew:   make(chan struct{}, 1),
	}
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

// share returns the share of an owner, which exists while a key of the owner is in hand; with s.mu held.
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

// join counts the key in its owner's share; with s.mu held.
func (c *claim) join(level int, h *share) {
	c.counted[level] = h
	if c.taken[level][c.owners[level]] = h; h.keys == 0 && c.parts != nil && ofConnections[level] > 0 {
		h.connections = c.parts.take(c.owners[level], ofConnections[level])
	}
	h.keys++
}

// strict reports whether a level may contain very many owners with few keys each. An owner with few keys is no
// exception there.
func strict(level int) bool { return level > wide }

// hasReserve reports whether a key has room although its owner is full, because an owner within has few keys. Among all
// suspect keys the owner within is the creator, and there may be twice as many keys.
func (c *claim) spared(level int, few bool) bool {
	if level != doubted {
		return few && !strict(level)
	}
	h := cmp.Or(c.counted[doubtedMaker], c.counted[doubtedWide])
	return h != nil && h.keys < fewKeys && c.share(doubted, everybody).keys < 2*c.most[doubted]
}

// limit is the number of keys that an owner may have in hand. Half of it is reserved for woken keys: swept keys have
// already waited, and are found again. The limit of a creator is not halved, because those of its workspaces are.
// Suspect keys of a workspace leave it room for swept keys, even if they were woken.
func (s *shares) limit(level int, woken bool) int {
	switch {
	case level == doubtedWide && woken:
		return s.most[level] * 7 / 8
	case woken || strict(level):
		return s.most[level]
	}
	return s.most[level] / 2
}

// refillThreshold is the number of keys below which an owner that was full gets an early sweep. Suspect keys stay long,
// so theirs is higher.
func (s *shares) low(level int) int {
	if slices.Contains(doubtedLevels[:], level) {
		return s.limit(level, false) * 7 / 8
	}
	return s.limit(level, false) / 2
}

// enter waits for the slots of the key's owners. It returns ok false if ctx ends, and repeated true if the key must be
// claimed again.
func (c *claim) enter(ctx context.Context) (ok, repeated bool) {
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

// gates returns the semaphores that a key needs for one owner.
func (c *claim) gates(h *share) []chan struct{} {
	if c.woken {
		return []chan struct{}{h.slots}
	}
	return []chan struct{}{h.found, h.slots}
}

// withQuotas returns the context for work on the key, which uses no more database connections than the key's owners
// may.
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

// releaseAll releases all slots and shares.
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

// freeSlots releases the slots of one level.
func (c *claim) free(level int) {
	for _, slots := range c.holds[level] {
		<-slots
	}
	c.holds[level] = nil
}

// leave removes the key from its owner's share; with s.mu held.
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

// saturated returns the owners whose keys the sweep may skip.
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
	return Crowds{
		Narrow:        full[narrow],
		Wide:          full[wide],
		Makers:        full[maker],
		DoubtedWide:   full[doubtedWide],
		DoubtedMakers: full[doubtedMaker],
		Doubted:       len(full[doubted]) > 0,
	}
}
