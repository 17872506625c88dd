package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// fanOutBatch is the number of events that one transaction fans out to webhooks.
const fanOutBatch = 500

// outboxLane fans the events of a workspace out to its webhooks.
type outboxLane struct{ *Deliverer }

var _ worker.Transactional = outboxLane{}

func (outboxLane) Name() string { return domain.OutboxLane }

func (l outboxLane) Due(ctx context.Context, workspace uuid.UUID) (bool, error) {
	due, err := l.access.OutboxDue(ctx, workspace)
	return due && !l.stopping.Load(), err
}

// DueIn implements worker.Transactional. FanOutEvents is one transaction.
func (l outboxLane) DueIn(ctx context.Context, tx store.Tx, workspace uuid.UUID) (bool, error) {
	due, err := tx.OutboxDue(ctx, workspace)
	return due && !l.stopping.Load(), err
}

func (l outboxLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return l.access.DueOutboxes(ctx, limit, but)
}

// Owners implements worker.Owned.
func (l outboxLane) Owners(ctx context.Context, workspaces []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.access.OutboxOwners(ctx, workspaces)
}

// Drain fans out one batch. The rest stays due.
func (l outboxLane) Drain(ctx context.Context, lease *worker.Lease, workspace uuid.UUID) (time.Duration, error) {
	if l.stopping.Load() {
		return 0, nil
	}
	after, _ := l.lastAccount.Load(workspace)
	account, _ := after.(uuid.UUID)
	woken, last, err := l.access.FanOutEvents(ctx, lease, workspace, account, fanOutBatch)
	if err == nil && last == uuid.Nil {
		l.lastAccount.Delete(workspace)
	} else if err == nil {
		l.lastAccount.Store(workspace, last)
	}
	for _, id := range woken {
		if news, ok := l.wakeups.Load(id); ok {
			notify(news.(chan struct{}))
		}
	}
	return 0, err
}

func notify(news chan struct{}) {
	select {
	case news <- struct{}{}:
	default: // already notified
	}
}
