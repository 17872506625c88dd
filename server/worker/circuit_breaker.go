package worker

import (
	"context"

	"github.com/google/uuid"
)

// Doubting is an Owned lane of whose keys some may hang, whoever's they are. All that are doubted have seven eighths of the
// workers, and of each owner's share some less than that is for them: what is not doubted has room.
type Doubting interface {
	Owned
	// Doubts says whether a key is, by what is known now. Drain tells of what it finds out (Doubt, Trust).
	Doubts(key uuid.UUID) bool
}

// doubtedLevels are those of keys that are doubted. They wait for long, and what is known of them changes: few more are in hand than are at work.
var doubtedLevels = [...]int{doubtedWide, doubtedMaker, doubted}

type claimed struct{}

// Doubt has the key that a Drain is for have its turn with those that are doubted. It is false where there is no room among those:
// Drain is to end soon, and the key waits for it.
func Doubt(ctx context.Context) bool {
	c, _ := ctx.Value(claimed{}).(*claim)
	return c == nil || c.doubt()
}

// Trust has the key that a Drain is for leave its place among those that are doubted to others.
func Trust(ctx context.Context) {
	if c, _ := ctx.Value(claimed{}).(*claim); c != nil {
		c.trust()
	}
}

// doubted says whether the key has its turn with those that are.
func (c *claim) doubted() bool { return c.owners[doubted] != uuid.Nil }

// stale says whether what is known of a key has changed since it was claimed, so that its turn is another one now.
func (c *claim) stale(key uuid.UUID) bool { return c.shares != nil && c.doubts(key) != c.doubted() }

// doubt is Doubt.
func (c *claim) doubt() bool {
	if c.shares == nil || c.doubted() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := newClaimants(Owners{Wide: c.owners[wide], Maker: c.owners[maker]}, true)
	var places [levels]*share
	for _, level := range doubtedLevels {
		if of[level] == uuid.Nil {
			continue
		}
		h := c.share(level, of[level])
		if h.keys >= c.limit(level, c.woken) || !c.try(level, h) {
			for _, level := range doubtedLevels {
				c.free(level)
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

// try is enter where that takes no time.
func (c *claim) try(level int, h *share) bool {
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

// trust is Trust.
func (c *claim) trust() {
	if c.shares == nil || !c.doubted() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, level := range doubtedLevels {
		c.free(level)
		c.part(level)
		c.owners[level] = uuid.Nil
	}
}

// judge has a claim that waits be made anew.
func (c *claim) judge() {
	select {
	case c.anew <- struct{}{}:
	default:
	}
}
