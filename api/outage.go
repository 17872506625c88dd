package api

import (
	"sync"
	"time"
)

const (
	// maxRestartTime is the longest failure to connect that counts as a restart.
	maxRestartTime = 45 * time.Second
	// outageTTL is how long an outage is remembered after the last failed connection.
	outageTTL = 30 * time.Second
)

// outage shares between the requests of a client that the server is unreachable. Otherwise each request would find
// out for itself, which takes a minute if packets are dropped, and a run with many resources sends hundreds of
// requests.
type outage struct {
	mu           sync.Mutex
	since, until time.Time
}

// recordFailure records a failed connection, and reports whether connections have failed for longer than a restart
// takes.
func (o *outage) recordFailure(tried time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.After(o.until) {
		o.since = tried
	}
	o.until = now.Add(outageTTL)
	return now.Sub(o.since) > maxRestartTime
}

// recordSuccess records a successful connection.
func (o *outage) recordSuccess() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Time{}
}
