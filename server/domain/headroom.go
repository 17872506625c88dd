package domain

import (
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	allowanceFor   = 5 * time.Second // how long a count is trusted
	allowancePart  = 10              // this instance uses one part in ten, because other instances create some too
	allowancesKept = 1000            // workspaces
)

// Headroom caches how many more resources of a kind each workspace may create. It is safe for concurrent use.
type Headroom struct {
	mu   sync.Mutex
	room map[uuid.UUID]headroom
}

// headroom is how many resources one workspace may still create.
type headroom struct {
	remaining int
	until     time.Time
}

// Take uses up one. If known is false, the caller must count and call SetCount.
func (a *Headroom) Take(workspace uuid.UUID, now time.Time) (taken, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, known := a.room[workspace]
	switch {
	case !known || now.After(r.until):
		return false, false
	case r.remaining > 1:
		a.room[workspace] = headroom{r.remaining - 1, r.until}
		return true, true
	case r.remaining == 1: // the next caller counts
		delete(a.room, workspace)
		return true, true
	}
	return false, true
}

// SetCount records how many more there may be. The caller uses up one of these.
func (a *Headroom) SetCount(workspace uuid.UUID, left int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.room == nil {
		a.room = map[uuid.UUID]headroom{}
	}
	if len(a.room) >= allowancesKept {
		maps.DeleteFunc(a.room, func(_ uuid.UUID, r headroom) bool { return now.After(r.until) })
	}
	delete(a.room, workspace)
	if atOnce := left / allowancePart; left == 0 || atOnce > 1 {
		a.room[workspace] = headroom{max(atOnce-1, 0), now.Add(allowanceFor)}
	}
}
