package reconcile

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// outages are the accounts whose gateways did not answer when this server asked. Others ask, too: that one has answered
// them meanwhile is not heard of here.
type outages struct {
	mu sync.Mutex
	of map[uuid.UUID]outage
}

type outage struct{ since, last time.Time }

// lasts notes that a gateway does not answer, and says for how long that is so. What was seen longer ago than memory is
// another outage: it is asked more often than that as long as one lasts.
func (o *outages) lasts(account uuid.UUID, now time.Time, memory time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, again := o.of[account]
	if !again || now.Sub(was.last) > memory {
		was.since = now
	}
	if o.of == nil {
		o.of = map[uuid.UUID]outage{}
	}
	o.of[account] = outage{was.since, now}
	return now.Sub(was.since)
}

// over notes that a gateway answers.
func (o *outages) over(account uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, account)
}
