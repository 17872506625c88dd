package worker

import (
	"context"

	"github.com/google/uuid"
)

// Suspectable is an Owned lane that can name keys which may hang. All suspect keys together use at
// most seven eighths of the workers. Within each owner's share they use less than that owner has, which leaves room for
// its healthy keys.
type Suspectable interface {
	Owned
	// IsSuspect reports whether the key is suspect now. Drain reports changes with MarkSuspect and MarkHealthy.
	IsSuspect(key uuid.UUID) bool
}

// suspectLevels are the levels of suspect keys. Such keys wait long and their state changes, so only few more are in
// hand than are being worked on.
var suspectLevels = [...]int{suspectWorkspaceLevel, suspectCreatorLevel, suspectLevel}

type claimKey struct{}

// MarkSuspect moves the key of the current Drain to the slots of suspect keys. It returns false if there is no free
// slot: Drain must then return soon, and the key waits for a slot.
func MarkSuspect(ctx context.Context) bool {
	c, _ := ctx.Value(claimKey{}).(*claim)
	return c == nil || c.markSuspect()
}

// MarkHealthy releases the slots of suspect keys that the key of the current Drain holds.
func MarkHealthy(ctx context.Context) {
	if c, _ := ctx.Value(claimKey{}).(*claim); c != nil {
		c.markHealthy()
	}
}

// suspect reports whether the claim counts among suspect keys.
func (c *claim) suspect() bool { return c.owners[suspectLevel] != uuid.Nil }

// outdated reports whether the suspect state of the key has changed since the claim.
func (c *claim) outdated(key uuid.UUID) bool {
	return c.shares != nil && c.isSuspect(key) != c.suspect()
}

// markSuspect implements MarkSuspect.
func (c *claim) markSuspect() bool {
	if c.shares == nil || c.suspect() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := newClaimants(Owners{Workspace: c.owners[workspaceLevel], Creator: c.owners[creatorLevel]}, true)
	var places [levels]*share
	for _, level := range suspectLevels {
		if of[level] == uuid.Nil {
			continue
		}
		h := c.share(level, of[level])
		if h.keys >= c.limit(level, c.woken) || !c.tryEnter(level, h) {
			for _, level := range suspectLevels {
				c.freeSlots(level)
			}
			return false
		}
		places[level] = h
	}
	for level, h := range places {
		if h != nil {
			c.owners[level] = of[level]
			c.join(level, h)
		}
	}
	return true
}

// tryEnter is enter for one level without waiting.
func (c *claim) tryEnter(level int, h *share) bool {
	for _, slots := range c.gates(h) {
		select {
		case slots <- struct{}{}:
			c.holds[level] = append(c.holds[level], slots)
		default:
			return false
		}
	}
	return true
}

// markHealthy implements MarkHealthy.
func (c *claim) markHealthy() {
	if c.shares == nil || !c.suspect() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, level := range suspectLevels {
		c.freeSlots(level)
		c.leave(level)
		c.owners[level] = uuid.Nil
	}
}

// repeat makes a waiting claim return from enter, so that its key is claimed again.
func (c *claim) repeat() {
	select {
	case c.repeated <- struct{}{}:
	default:
	}
}
