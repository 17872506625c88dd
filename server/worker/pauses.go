package worker

import (
	"math/rand/v2"
	"sync"
	"time"
)

// longestPause is the longest between two tries of a key that keeps failing, but for the jitter.
const longestPause = time.Minute

// pauses are the keys whose work has failed, and until when the sweep leaves them alone. Each instance has its own, and
// they end with it: what there is to do stands in the rows, so the next one finds it.
type pauses struct {
	first time.Duration // after the first failure
	now   func() time.Time

	mu   sync.Mutex
	keys map[wakeUp]pause
}

type pause struct {
	failures int // in a row
	until    time.Time
}

func newPauses(first time.Duration, now func() time.Time) *pauses {
	return &pauses{first: first, now: now, keys: map[wakeUp]pause{}}
}

// failed begins a pause, twice as long as the one before, and says how long it is: between half and one and a half
// times that, so that what has failed together is not tried together.
func (p *pauses) failed(w wakeUp) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.keys[w].failures
	mean := min(p.first<<min(n, 20), max(longestPause, p.first))
	d := mean/2 + rand.N(mean)
	p.keys[w] = pause{n + 1, p.now().Add(d)}
	return d
}

// done forgets the failures of a key.
func (p *pauses) done(w wakeUp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, w)
}

// rests says whether the sweep is to leave a key alone.
func (p *pauses) rests(w wakeUp) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[w].until.After(p.now())
}

// end ends the pauses of a lane, and forgets what has failed.
func (p *pauses) end(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.keys {
		if w.Lane == lane {
			delete(p.keys, w)
		}
	}
}

// count says how many keys of a lane have failed.
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
