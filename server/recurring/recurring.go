// Package recurring logs a problem that lasts once, and then after growing pauses.
package recurring

import (
	"log/slog"
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

// Warn logs an occurrence of the problem of a key as a warning if a line is due, with the number of occurrences since the
// last line and the time since the first one.
func (p *Problems) Warn(log *slog.Logger, key, message string) { p.WarnAfter(log, key, message, 0) }

// WarnAfter is Warn for a problem that is logged only after a number of occurrences.
func (p *Problems) WarnAfter(log *slog.Logger, key, message string, tolerated int) {
	if o := p.occurred(key, tolerated); o.due {
		log.Warn(message, "omitted", o.omitted, "lasting", o.lasting.Round(time.Second))
	}
}

// End forgets the problem of a key. If a line reported the problem, End logs its end.
func (p *Problems) End(log *slog.Logger, key, message string) {
	if lasted, logged := p.ended(key); logged {
		log.Info(message, "lasted", lasted.Round(time.Second))
	}
}

// occurrence describes what a line about a problem says.
type occurrence struct {
	due     bool          // log it now
	omitted int           // occurrences since the last line
	lasting time.Duration // since the first occurrence
}

// occurred records an occurrence of the problem of a key, and says whether to log it.
func (p *Problems) occurred(key string, tolerated int) occurrence {
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
			return occurrence{}
		}
		one = &problem{since: now, next: now, pause: FirstPause}
		p.of[key] = one
	}
	one.last = now
	if one.unlogged++; now.Before(one.next) || !one.logged && one.unlogged <= tolerated {
		return occurrence{}
	}
	o := occurrence{due: true, omitted: one.unlogged - 1, lasting: now.Sub(one.since)}
	one.logged, one.unlogged = true, 0
	one.next, one.pause = now.Add(one.pause), min(4*one.pause, MaxPause)
	return o
}

// ended forgets the problem of a key. It returns how long the problem lasted, and whether a line reported it.
func (p *Problems) ended(key string) (lasted time.Duration, logged bool) {
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
