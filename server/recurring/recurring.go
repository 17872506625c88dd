// Package recurring decides when to log a problem that lasts: once, and then after growing pauses.
package recurring

import (
	"sync"
	"time"
)

const (
	// FirstPause is the pause between the first two lines about a problem. Each further pause is four times as long.
	FirstPause = time.Minute
	// MaxPause is the longest pause. A problem that doesn't occur for longer than that has ended.
	MaxPause = 24 * time.Hour
	// MaxProblems is the number of problems that are tracked. Others aren't logged meanwhile.
	MaxProblems = 10_000
)

// Problems tracks the problems of one process by key. The zero value is ready for use.
type Problems struct {
	// Now is the clock. nil means time.Now.
	Now func() time.Time

	mu sync.Mutex
	of map[string]*problem
}

type problem struct {
	since, last time.Time     // first and last occurrence
	next        time.Time     // when it is logged again
	pause       time.Duration // after next
	logged      bool
	unlogged    int // occurrences since the last line
}

// Occurrence describes what a line about a problem may say.
type Occurrence struct {
	Due     bool          // log it now
	Omitted int           // occurrences since the last line
	Lasting time.Duration // since the first occurrence
}

// Occurred records an occurrence of the problem of a key, and says whether to log it.
func (p *Problems) Occurred(key string) Occurrence { return p.OccurredAfter(key, 0) }

// OccurredAfter is Occurred for a problem that is logged only after a number of occurrences.
func (p *Problems) OccurredAfter(key string, tolerated int) Occurrence {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	one, known := p.of[key]
	if known && now.Sub(one.last) > MaxPause {
		known = false
	}
	if !known {
		if p.of == nil {
			p.of = map[string]*problem{}
		}
		if len(p.of) >= MaxProblems && !p.forget(now) {
			return Occurrence{}
		}
		one = &problem{since: now, next: now, pause: FirstPause}
		p.of[key] = one
	}
	one.last = now
	if one.unlogged++; now.Before(one.next) || !one.logged && one.unlogged <= tolerated {
		return Occurrence{}
	}
	o := Occurrence{Due: true, Omitted: one.unlogged - 1, Lasting: now.Sub(one.since)}
	one.logged, one.unlogged = true, 0
	one.next, one.pause = now.Add(one.pause), min(4*one.pause, MaxPause)
	return o
}

// Ended forgets the problem of a key. It reports how long the problem lasted, and whether a line said so.
func (p *Problems) Ended(key string) (lasted time.Duration, logged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.of[key]
	if !known {
		return 0, false
	}
	delete(p.of, key)
	return p.now().Sub(one.since), one.logged
}

// forget drops problems that have ended, and reports whether there were any.
func (p *Problems) forget(now time.Time) (found bool) {
	for key, one := range p.of {
		if now.Sub(one.last) > MaxPause {
			delete(p.of, key)
			found = true
		}
	}
	return found
}

func (p *Problems) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}
