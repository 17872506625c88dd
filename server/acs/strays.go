package acs

import (
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// strays are those whose deletion was tried, so that a vendor that goes on showing one is not asked without an end. They are known to
// this server only: another one that looks after the system tries each once more.
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

// strayMemory is for how long after its pause a stray is remembered that is not tried again.
const strayMemory = time.Hour

// wait is in how long a stray may be tried again (0: now).
func (s *strays) wait(k strayKey, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.tried[k].next.Sub(now), 0)
}

// try notes that a stray was tried, and says in how long it may be again: not before atLeast.
func (s *strays) try(k strayKey, now time.Time, atLeast time.Duration) time.Duration {
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
