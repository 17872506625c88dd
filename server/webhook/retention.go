package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// retentionInterval is the maximum interval between two runs for a workspace. A short retention
// shortens it.
const retentionPause = time.Hour

// retentionLane deletes expired data, one workspace at a time.
type retentionLane struct{ *Deliverer }

func (retentionLane) Name() string { return access.RetentionLane }

func (l retentionLane) Due(ctx context.Context, workspace uuid.UUID) (bool, error) {
	if l.stopping.Load() {
		return false, nil
	}
	return l.access.RetentionDue(ctx, workspace)
}

func (l retentionLane) Sweep(ctx context.Context, limit int32, _ worker.Crowds) ([]uuid.UUID, error) {
	return l.access.DueRetentions(ctx, limit)
}

func (l retentionLane) Drain(ctx context.Context, lease *worker.Lease, workspace uuid.UUID) (time.Duration, error) {
	if err := l.access.DropOldSecrets(ctx, workspace); err != nil {
		return 0, err
	}
	if err := l.access.DropOldAnswers(ctx, workspace); err != nil {
		return 0, err
	}
	if err := l.access.EndLateAttempts(ctx, workspace); err != nil {
		return 0, err
	}
	if err := l.dropAudit(ctx); err != nil {
		return 0, err
	}
	pause := retentionPause
	if l.opt.Retention > 0 {
		pause = min(pause, l.opt.Retention)
		var events, deliveries int64
		for d := (access.Dropped{More: true}); d.More; {
			if l.stopping.Load() {
				return 0, nil // another instance continues
			}
			var err error
			if d, err = l.access.DropOld(ctx, lease, workspace, l.opt.Retention, d.Last); err != nil {
				return 0, err
			}
			events, deliveries = events+d.Events, deliveries+d.Deliveries
		}
		var sessions int64
		for more := true; more && !l.stopping.Load(); {
			n, left, err := l.access.DropOldSessions(ctx, lease, workspace, l.opt.Retention)
			if err != nil {
				return 0, err
			}
			sessions, more = sessions+n, left
		}
		if events+deliveries+sessions > 0 {
			l.opt.Log.Info("removed expired data", "workspace", workspace, "events", events, "deliveries", deliveries,
				"client_sessions", sessions)
		}
	}
	return 0, l.access.ScheduleRetention(ctx, workspace, pause)
}
