package access

import (
	"context"
	"fmt"
	"time"
)

// BacklogCap is what a Backlog counts to at most, so that to ask for it costs little however much there is.
const BacklogCap = 100_000

// Backlog is what waits in the database, of all workspaces.
type Backlog struct {
	Outbox       int64            // events that webhooks have not been given yet
	OldestOutbox time.Duration    // for how long the oldest waits
	Healthy      EndpointBacklog  // where the last attempt succeeded, or there was none
	Failing      EndpointBacklog  // elsewhere
	Slow         time.Duration    // for how long the delivery waits that has been due for longest, where others are sent meanwhile
	Disabled     int64            // webhooks
	Jobs         map[string]int64 // wake-ups that wait to be taken, by lane
}

// EndpointBacklog is what is to be delivered.
type EndpointBacklog struct {
	Pending   int64         // deliveries, due now or later
	OldestDue time.Duration // for how long the one waits that has been due for longest; of healthy ones, where nobody is at work
}

// Backlog counts what waits.
func (s *Service) Backlog(ctx context.Context) (b Backlog, err error) {
	outbox, err := s.db.CountOutbox(ctx, BacklogCap)
	if err != nil {
		return b, fmt.Errorf("count the events: %w", err)
	}
	waits, err := s.db.OldestEvent(ctx)
	if err != nil {
		return b, fmt.Errorf("find the oldest event: %w", err)
	}
	b.Outbox, b.OldestOutbox = outbox, Seconds(waits)
	pending, err := s.db.CountPending(ctx, BacklogCap)
	if err != nil {
		return b, fmt.Errorf("count the deliveries: %w", err)
	}
	oldest, err := s.db.OldestDue(ctx)
	if err != nil {
		return b, fmt.Errorf("find the oldest deliveries: %w", err)
	}
	b.Failing = EndpointBacklog{Pending: pending.Failing, OldestDue: Seconds(oldest.Failing)}
	b.Healthy = EndpointBacklog{Pending: pending.Healthy, OldestDue: Seconds(oldest.Healthy)}
	b.Slow = Seconds(oldest.Slow)
	if b.Disabled, err = s.db.CountDisabledWebhooks(ctx); err != nil {
		return b, fmt.Errorf("count the disabled webhooks: %w", err)
	}
	b.Jobs, err = s.db.CountJobs(ctx, BacklogCap)
	return b, err
}

func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
