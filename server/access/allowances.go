package access

import (
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	allowanceFor   = 5 * time.Second // how long it is believed how many more there may be
	allowancePart  = 10              // which part of these may be made before they are counted again, as other instances make some, too
	allowancesKept = 1000            // workspaces
)

// allowances are how many more of something may be made in each workspace, as far as this instance knows.
type Headroom struct {
	mu   sync.Mutex
	room map[uuid.UUID]headroom
}

type headroom struct {
	left  int
	until time.Time
}

// take takes one of those that there may be; where known is false they have to be counted.
func (a *Headroom) Take(workspace uuid.UUID, now time.Time) (taken, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, known := a.room[workspace]
	switch {
	case !known || now.After(r.until):
		return false, false
	case r.left > 1:
		a.room[workspace] = headroom{r.left - 1, r.until}
		return true, true
	case r.left == 1: // the next one counts
		delete(a.room, workspace)
		return true, true
	}
	return false, true
}

// counted notes how many more there may be, of which the one who has counted takes one.
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
