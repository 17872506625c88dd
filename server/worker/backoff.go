package worker

import (
	"math/rand/v2"
	"sync"
	"time"
)

// maxBackoff is the longest delay between two tries of a failing key, without jitter.
const maxBackoff = time.Minute

// backoffs are the keys whose work has failed, with the times until which the sweep skips them. Each instance has its
// own, in memory: after a restart, the sweep finds the keys.
type backoffs struct {
	first time.Duration // delay after the first failure
	now   func() time.Time

	mu   sync.Mutex
	keys map[wakeUp]backoff
}

type backoff struct {
	failures int // consecutive
	until    time.Time
}

func newBackoffs(first time.Duration, now func() time.Time) *backoffs {
	return &backoffs{first: first, now: now, keys: map[wakeUp]backoff{}}
}

// failed starts a backoff of twice the previous one and returns it. Jitter varies it between half and one and a half
// times the mean, so that keys that failed together are not retried together.
func (p *backoffs) failed(w wakeUp) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.keys[w].failures
	mean := min(p.first<<min(n, 20), max(maxBackoff, p.first))
	d := mean/2 + rand.N(mean)
	p.keys[w] = backoff{n + 1, p.now().Add(d)}
	return d
}

// succeeded resets the failures of a key.
func (p *backoffs) succeeded(w wakeUp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, w)
}

// active reports whether the sweep must skip a key.
func (p *backoffs) active(w wakeUp) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[w].until.After(p.now())
}

// resetLane ends the backoffs of a lane's keys.
func (p *backoffs) resetLane(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.keys {
		if w.Lane == lane {
			delete(p.keys, w)
		}
	}
}

// count returns the number of a lane's failing keys.
func (p *backoffs) count(lane string) (n int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.keys {
		if w.Lane == lane {
			n++
		}
	}
	return n
}
