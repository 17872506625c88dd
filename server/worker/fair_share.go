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
	Account uuid.UUID
	// Workspace is the workspace.
	Workspace uuid.UUID
	// Creator is the credential that created the workspace.
	Creator uuid.UUID
}

// Saturated lists the owners that have no room for another key in hand. No list is nil.
type Saturated struct {
	// Accounts, Workspaces, and Creators have no room for any key.
	Accounts, Workspaces, Creators []uuid.UUID
	// SuspectWorkspaces and SuspectCreators have no room for another suspect key.
	SuspectWorkspaces, SuspectCreators []uuid.UUID
	// Suspect is true if there is no room for any suspect key.
	Suspect bool
}

// add adds an owner that had no room for a key.
func (c *Saturated) add(full fullOwner) {
	if full.level == suspectLevel {
		c.Suspect = true
		return
	}
	to := [...]*[]uuid.UUID{
		accountLevel:          &c.Accounts,
		workspaceLevel:        &c.Workspaces,
		creatorLevel:          &c.Creators,
		suspectWorkspaceLevel: &c.SuspectWorkspaces,
		suspectCreatorLevel:   &c.SuspectCreators,
	}[full.level]
	if !slices.Contains(*to, full.owner) {
		*to = append(*to, full.owner)
	}
}

// count returns the number of saturated owners.
func (c *Saturated) count() int {
	n := len(c.Accounts) + len(c.Workspaces) + len(c.Creators) + len(c.SuspectWorkspaces) + len(c.SuspectCreators)
	if c.Suspect {
		n++
	}
	return n
}

const (
	minShare        = 8      // workers, at least
	maxCachedOwners = 10_000 // of keys, in the cache
	// keys of an owner that have room in a full lane.
	reservedKeys = 16
)

// Levels of shares, in the order in which a key waits for slots. While a key waits, it holds only slots that it shares
// with the keys of its earlier levels.
const (
	accountLevel = iota
	suspectWorkspaceLevel
	workspaceLevel
	suspectCreatorLevel
	creatorLevel
	suspectLevel
	levels
)

// Eighths that an owner gets: of the workers and of the keys in hand, and of the database connections.
var (
	workerEighths = [levels]int{
		accountLevel:          1,
		suspectWorkspaceLevel: 5,
		workspaceLevel:        6,
		suspectCreatorLevel:   6,
		creatorLevel:          7,
		suspectLevel:          7,
	}
	connectionEighths = [levels]int{accountLevel: 4, workspaceLevel: 6, creatorLevel: 7}
)

// claimants are the owners of a key, by level. A suspect key has its workspace and creator once more, and allOwners.
// Nil means none.
type claimants [levels]uuid.UUID

var allOwners = uuid.Max

// fullOwner is an owner without room for another key.
type fullOwner struct {
	level int
	owner uuid.UUID
}

// shares are the shares of the owners of one lane's keys.
type shares struct {
	lane  Owned
	parts *connQuotas
	slots [levels]int // slots of each owner
	// keys of each owner in hand
	maxKeys [levels]int
	// refill requests an early sweep, because an owner that was full has room again. It returns false if the request
	// was not accepted.
	refill func() bool

	mu      sync.Mutex
	owners  map[uuid.UUID]Owners // by key; a cache
	byOwner [levels]map[uuid.UUID]*share
}

// share counts the keys of an owner in hand. Swept keys use at most three quarters of the slots, so that woken keys,
// for which a caller may be waiting, do not wait for all of them. Both kinds may use all slots of a creator, because
// its workspaces have such a limit.
type share struct {
	keys        int // being worked on, or waiting
	refused     bool
	slots       chan struct{}
	sweptSlots  chan struct{}
	connections store.Part
}

func newShares(l Owned, workers, inHand int, p *connQuotas, hungry func() bool) *shares {
	s := &shares{
		lane:   l,
		parts:  p,
		refill: hungry,
		owners: map[uuid.UUID]Owners{},
	}
	for level, eighths := range workerEighths {
		s.slots[level] = min(workers, max(minShare, workers*eighths/8))
		s.maxKeys[level] = inHand * eighths / 8
		s.byOwner[level] = map[uuid.UUID]*share{}
	}
	for _, level := range suspectLevels {
		s.maxKeys[level] = min(s.maxKeys[level], 2*s.slots[level])
	}
	return s
}

// claimantsOf returns the claimants of keys.
func (s *shares) claimantsOf(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]claimants, error) {
	if s == nil {
		return nil, nil
	}
	all := make(map[uuid.UUID]claimants, len(keys))
	var unknown []uuid.UUID
	s.mu.Lock()
	for _, key := range keys {
		if o, ok := s.owners[key]; ok {
			all[key] = newClaimants(o, s.isSuspect(key))
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
	if len(s.owners)+len(unknown) > maxCachedOwners {
		clear(s.owners)
	}
	for _, key := range unknown {
		all[key] = newClaimants(owners[key], s.isSuspect(key))
		if len(s.owners) < maxCachedOwners {
			s.owners[key] = owners[key]
		}
	}
	return all, nil
}

func newClaimants(o Owners, isDoubted bool) claimants {
	of := claimants{accountLevel: o.Account, workspaceLevel: o.Workspace, creatorLevel: o.Creator}
	if isDoubted {
		of[suspectWorkspaceLevel], of[suspectCreatorLevel], of[suspectLevel] = o.Workspace, o.Creator, allOwners
	}
	return of
}

func (s *shares) isSuspect(key uuid.UUID) bool {
	l, ok := s.lane.(Suspectable)
	return ok && l.IsSuspect(key)
}

// claim is a key in hand.
type claim struct {
	*shares
	owners   claimants
	woken    bool
	counted  [levels]*share
	holds    [levels][]chan struct{}
	repeated chan struct{}
}

// claim takes a key into hand unless one of its owners is full, which it returns. Crowded means that the lane is full.
// An account with few keys has room even if its workspace is full. Both have room only while their creator has, because
// a creator may have many of them.
func (s *shares) claim(of claimants, woken, crowded bool) (c *claim, full fullOwner) {
	c = &claim{
		shares:   s,
		woken:    woken,
		owners:   of,
		repeated: make(chan struct{}, 1),
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
		few = few || h.keys < reservedKeys
		if has := h.keys >= s.limit(level, woken); has && !c.hasReserve(level, few) || crowded && !few {
			h.refused = h.refused || has
			return nil, fullOwner{level, owner}
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
	if h := s.byOwner[level][owner]; h != nil {
		return h
	}
	found := s.slots[level]
	if !strict(level) {
		found = max(1, found*3/4)
	}
	return &share{slots: make(chan struct{}, s.slots[level]), sweptSlots: make(chan struct{}, found)}
}

// join counts the key in its owner's share; with s.mu held.
func (c *claim) join(level int, h *share) {
	c.counted[level] = h
	if c.byOwner[level][c.owners[level]] = h; h.keys == 0 && c.parts != nil && connectionEighths[level] > 0 {
		h.connections = c.parts.acquire(c.owners[level], connectionEighths[level])
	}
	h.keys++
}

// strict reports whether a level may contain very many owners with few keys each. An owner with few keys is no
// exception there.
func strict(level int) bool { return level > workspaceLevel }

// hasReserve reports whether a key has room although its owner is full, because an owner within has few keys. Among all
// suspect keys the owner within is the creator, and there may be twice as many keys.
func (c *claim) hasReserve(level int, few bool) bool {
	if level != suspectLevel {
		return few && !strict(level)
	}
	h := cmp.Or(c.counted[suspectCreatorLevel], c.counted[suspectWorkspaceLevel])
	return h != nil && h.keys < reservedKeys && c.share(suspectLevel, allOwners).keys < 2*c.maxKeys[suspectLevel]
}

// limit is the number of keys that an owner may have in hand. Half of it is reserved for woken keys: swept keys have
// already waited, and are found again. The limit of a creator is not halved, because those of its workspaces are.
// Suspect keys of a workspace leave it room for swept keys, even if they were woken.
func (s *shares) limit(level int, woken bool) int {
	switch {
	case level == suspectWorkspaceLevel && woken:
		return s.maxKeys[level] * 7 / 8
	case woken || strict(level):
		return s.maxKeys[level]
	}
	return s.maxKeys[level] / 2
}

// refillThreshold is the number of keys below which an owner that was full gets an early sweep. Suspect keys stay long,
// so theirs is higher.
func (s *shares) refillThreshold(level int) int {
	if slices.Contains(suspectLevels[:], level) {
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
			case <-c.repeated:
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
	return []chan struct{}{h.sweptSlots, h.slots}
}

// withQuotas returns the context for work on the key, which uses no more database connections than the key's owners
// may.
func (c *claim) withQuotas(ctx context.Context) context.Context {
	for level := range c.counted {
		if h := c.counted[len(c.counted)-1-level]; h != nil {
			ctx = h.connections.Of(ctx)
		}
	}
	if c.shares != nil {
		ctx = context.WithValue(ctx, claimKey{}, c)
	}
	return ctx
}

// releaseAll releases all slots and shares.
func (c *claim) releaseAll() {
	for level := range c.holds {
		c.freeSlots(level)
	}
	if c.shares == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for level := range c.counted {
		c.leave(level)
	}
}

// freeSlots releases the slots of one level.
func (c *claim) freeSlots(level int) {
	for _, slots := range c.holds[level] {
		<-slots
	}
	c.holds[level] = nil
}

// leave removes the key from its owner's share; with s.mu held.
func (c *claim) leave(level int) {
	h := c.counted[level]
	if h == nil {
		return
	}
	c.counted[level] = nil
	h.keys--
	if h.refused && h.keys < c.refillThreshold(level) {
		h.refused = !c.refill()
	}
	if h.keys == 0 {
		delete(c.byOwner[level], c.owners[level])
		if h.connections != nil {
			c.parts.release(c.owners[level])
		}
	}
}

// saturated returns the owners whose keys the sweep may skip.
func (s *shares) saturated() Saturated {
	full := [levels][]uuid.UUID{}
	for level := range full {
		full[level] = []uuid.UUID{}
	}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for level := range full {
			for owner, h := range s.byOwner[level] {
				if h.keys >= s.limit(level, false) {
					full[level] = append(full[level], owner)
				}
			}
		}
	}
	return Saturated{
		Accounts:          full[accountLevel],
		Workspaces:        full[workspaceLevel],
		Creators:          full[creatorLevel],
		SuspectWorkspaces: full[suspectWorkspaceLevel],
		SuspectCreators:   full[suspectCreatorLevel],
		Suspect:           len(full[suspectLevel]) > 0,
	}
}
