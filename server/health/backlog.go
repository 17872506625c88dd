package health

import (
	"context"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// BacklogCap is the maximum of each count in a Backlog, which bounds the cost of the queries.
const BacklogCap = 100_000

// Backlog counts pending work in the database, in all workspaces.
type Backlog struct {
	Outbox       int64           // events without deliveries
	OldestOutbox time.Duration   // how long the oldest of them has waited
	Healthy      EndpointBacklog // endpoints whose last attempt succeeded, or without attempts
	Failing      EndpointBacklog // all other endpoints
	// Slow is how long the longest due delivery has waited at an endpoint that receives other deliveries
	// meanwhile.
	Slow     time.Duration
	Disabled int64            // disabled webhooks
	Jobs     map[string]int64 // queued wake-ups by lane
}

// EndpointBacklog counts pending deliveries.
type EndpointBacklog struct {
	Pending int64 // deliveries, due now or later
	// OldestDue is how long the longest due delivery has waited. Healthy endpoints count only while not leased.
	OldestDue time.Duration
}

// Backlog counts pending work.
func (s *Service) Backlog(ctx context.Context) (b Backlog, err error) {
	outbox, err := s.db.CountOutbox(ctx, BacklogCap)
	if err != nil {
		return b, fmt.Errorf("count the events: %w", err)
	}
	waits, err := s.db.OldestEvent(ctx)
	if err != nil {
		return b, fmt.Errorf("find the oldest event: %w", err)
	}
	b.Outbox, b.OldestOutbox = outbox, domain.Seconds(waits)
	pending, err := s.db.CountPending(ctx, BacklogCap)
	if err != nil {
		return b, fmt.Errorf("count the deliveries: %w", err)
	}
	oldest, err := s.db.OldestDue(ctx)
	if err != nil {
		return b, fmt.Errorf("find the oldest deliveries: %w", err)
	}
	b.Failing = EndpointBacklog{Pending: pending.Failing, OldestDue: domain.Seconds(oldest.Failing)}
	b.Healthy = EndpointBacklog{Pending: pending.Healthy, OldestDue: domain.Seconds(oldest.Healthy)}
	b.Slow = domain.Seconds(oldest.Slow)
	if b.Disabled, err = s.db.CountDisabledWebhooks(ctx); err != nil {
		return b, fmt.Errorf("count the disabled webhooks: %w", err)
	}
	b.Jobs, err = s.db.CountJobs(ctx, BacklogCap)
	return b, err
}
