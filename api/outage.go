package api

import (
	"sync"
	"time"
)

const (
	restartsWithin = 45 * time.Second // what cannot be connected to for longer is not being restarted
	outageLasts    = 30 * time.Second // since a connection could last not be made
)

// outage is what the requests of one client tell each other of a server that no connection can be made to. Each would find out for itself
// otherwise, which takes a minute where packets are dropped, and a run of many resources asks hundreds of times.
type outage struct {
	mu           sync.Mutex
	since, until time.Time
}

// goesOn notes that a connection could not be made, and says whether that has been so for longer than a restart takes.
func (o *outage) goesOn(tried time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.After(o.until) {
		o.since = tried
	}
	o.until = now.Add(outageLasts)
	return now.Sub(o.since) > restartsWithin
}

// isOver notes that a connection was made.
func (o *outage) isOver() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Time{}
}
