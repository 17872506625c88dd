package reconcile

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// outages tracks the accounts whose gateways did not answer this server. It does not know what
// other instances observe.
type outages struct {
	mu sync.Mutex
	of map[uuid.UUID]outage
}

type outage struct{ since, last time.Time }

// markDown notes that a gateway does not answer and returns how long the outage has lasted. A
// failure more than memory ago counts as another outage, because the server asks more often during
// an outage.
func (o *outages) markDown(account uuid.UUID, now time.Time, memory time.Duration) time.Duration {
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

// markUp notes that a gateway answers.
func (o *outages) markUp(account uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, account)
}
