package acs

import (
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// strays tracks deletions of unwanted users, so that the server does not ask a vendor endlessly for
// a user that it keeps showing. The state is local to this server. Another instance that takes the
// system over tries each one once more.
type strays struct {
	mu    sync.Mutex
	tried map[strayKey]strayTries
}

type strayKey struct {
	system uuid.UUID
	ref    string
}

type strayTries struct {
	n    int32
	next time.Time
}

// strayMemory is how long an entry is kept after its pause ended without another try.
const strayMemory = time.Hour

// wait returns how long to wait for the next try of a stray; 0 means now.
func (s *strays) wait(k strayKey, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.tried[k].next.Sub(now), 0)
}

// recordTry notes a try and returns the pause until the next one, at least atLeast.
func (s *strays) recordTry(k strayKey, now time.Time, atLeast time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tried, func(_ strayKey, t strayTries) bool { return now.Sub(t.next) > strayMemory })
	if s.tried == nil {
		s.tried = map[strayKey]strayTries{}
	}
	t := s.tried[k]
	pause := max(pauseAfter(t.n), atLeast)
	s.tried[k] = strayTries{t.n + 1, now.Add(pause)}
	return pause
}
