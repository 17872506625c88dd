package worker

import (
	"math/rand/v2"
	"sync"
	"time"
)

// maxBackoff is the longest delay between two tries of a failing key, without jitter.
const longestPause = time.Minute

// backoffs are the keys whose work has failed, with the times until which the sweep skips them. Each instance has its
// own, in memory: after a restart, the sweep finds the keys.
type pauses struct {
	first time.Duration // delay after the first failure
	now   func() time.Time

	mu   sync.Mutex
	keys map[wakeUp]pause
}

type pause struct {
	failures int // consecutive
	until    time.Time
}

func newPauses(first time.Duration, now func() time.Time) *pauses {
	return &pauses{first: first, now: now, keys: map[wakeUp]pause{}}
}

// failed starts a backoff of twice the previous one and returns it. Jitter varies it between half and one and a half
// times the mean, so that keys that failed together are not retried together.
func (p *pauses) failed(w wakeUp) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.keys[w].failures
	mean := min(p.first<<min(n, 20), max(longestPause, p.first))
	d := mean/2 + rand.N(mean)
	p.keys[w] = pause{n + 1, p.now().Add(d)}
	return d
}

// succeeded resets the failures of a key.
func (p *pauses) done(w wakeUp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, w)
}

// active reports whether the sweep must skip a key.
func (p *pauses) rests(w wakeUp) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[w].until.After(p.now())
}

// resetLane ends the backoffs of a lane's keys.
func (p *pauses) end(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.keys {
		if w.Lane == lane {
			delete(p.keys, w)
		}
	}
}

// count returns the number of a lane's failing keys.
func (p *pauses) count(lane string) (n int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.keys {
		if w.Lane == lane {
			n++
		}
	}
	return n
}
