// Package retention deletes rows whose retention period has passed: events with their deliveries, ended client sessions,
// rotated secrets, stored answers, expired sessions of operators, and entries of the audit log. It must not know HTTP or any device.
package retention

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of a Sweeper. The zero value keeps everything.
type Options struct {
	Events time.Duration // how long events are kept, and deliveries that have ended; 0: forever
	Audit  time.Duration // how long entries of the audit log are kept; 0: forever
	Log    *slog.Logger
}

// Sweeper removes what is too old, on lanes of keyed work.
type Sweeper struct {
	access   *Service
	opt      Options
	stopping atomic.Bool
}

// NewSweeper creates a Sweeper.
func NewSweeper(a *Service, opt Options) *Sweeper {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Sweeper{access: a, opt: opt}
}

// Lanes are the kinds of work of the Sweeper: one key for each workspace, and one key for the partitions of events.
func (s *Sweeper) Lanes() []worker.Lane {
	return []worker.Lane{workspaceLane{s}, &partitionLane{Sweeper: s}}
}

// Quiesce ends the work in hand after its next batch.
func (s *Sweeper) Quiesce() { s.stopping.Store(true) }

// retentionPause is the maximum interval between two runs for a workspace. A short retention
// shortens it.
const retentionPause = time.Hour

// earliestPause and heldPause are the minimum intervals between two runs for a workspace: as long as the retention
// deletes, and while the clock may be wrong. What is due stays until the retention's own clock reaches its end.
const (
	earliestPause = time.Second
	heldPause     = time.Minute
)

// workspaceLane deletes expired data, one workspace at a time.
type workspaceLane struct{ *Sweeper }

func (workspaceLane) Name() string { return domain.RetentionLane }

func (l workspaceLane) Due(ctx context.Context, workspace uuid.UUID) (bool, error) {
	if l.stopping.Load() {
		return false, nil
	}
	return l.access.RetentionDue(ctx, workspace)
}

func (l workspaceLane) Sweep(ctx context.Context, limit int32, _ worker.Saturated) ([]uuid.UUID, error) {
	return l.access.DueRetentions(ctx, limit)
}

func (l workspaceLane) Drain(ctx context.Context, lease *worker.Lease, workspace uuid.UUID) (time.Duration, error) {
	if err := l.access.devices.EndLateAttempts(ctx, workspace); err != nil {
		return 0, err
	}
	at, problem, err := l.access.readClock(ctx)
	if err != nil {
		return 0, err
	}
	if problem != "" {
		return 0, l.access.ScheduleRetention(ctx, workspace, retentionPause, heldPause)
	}
	if err := l.access.webhooks.DropOldSecrets(ctx, workspace, at); err != nil {
		return 0, err
	}
	if err := l.access.idempotency.DropOldAnswers(ctx, workspace, at); err != nil {
		return 0, err
	}
	if err := l.access.DropExpiredLogins(ctx); err != nil {
		return 0, err
	}
	if err := l.access.operators.DropExpired(ctx); err != nil {
		return 0, err
	}
	if err := l.dropAudit(ctx, at); err != nil {
		return 0, err
	}
	pause := retentionPause
	if l.opt.Events > 0 {
		pause = min(pause, l.opt.Events)
		if err := l.dropEvents(ctx, lease, workspace, at); err != nil || l.stopping.Load() {
			return 0, err // if it stops, another instance continues
		}
	}
	return 0, l.access.ScheduleRetention(ctx, workspace, pause, earliestPause)
}

// dropEvents deletes events, deliveries, and client sessions of a workspace that are too old at a time. When the Sweeper
// stops, it ends early.
func (l workspaceLane) dropEvents(ctx context.Context, lease *worker.Lease, workspace uuid.UUID, at time.Time) error {
	var events, deliveries, sessions int64
	for d := (Dropped{More: true}); d.More; {
		if l.stopping.Load() {
			return nil
		}
		var err error
		if d, err = l.access.DropOld(ctx, lease, workspace, at, l.opt.Events, d.Last); err != nil {
			return err
		}
		events, deliveries = events+d.Events, deliveries+d.Deliveries
	}
	for more := true; more && !l.stopping.Load(); {
		n, left, err := l.access.auth.DropOldSessions(ctx, lease, workspace, at.Add(-l.opt.Events))
		if err != nil {
			return err
		}
		sessions, more = sessions+n, left
	}
	if events+deliveries+sessions > 0 {
		l.opt.Log.Info(
			"removed expired data",
			"workspace_id",
			workspace,
			"events",
			events,
			"deliveries",
			deliveries,
			"client_sessions",
			sessions,
		)
	}
	return nil
}

// dropAudit deletes entries of the audit log that are too old at a time, of all workspaces, including deleted ones and
// entries without a workspace.
func (l workspaceLane) dropAudit(ctx context.Context, at time.Time) error {
	if l.opt.Audit <= 0 {
		return nil
	}
	dropped, err := l.access.audit.DropOldAudit(ctx, at.Add(-l.opt.Audit), func() bool { return !l.stopping.Load() })
	if dropped > 0 {
		l.opt.Log.Info("removed old entries of the audit log", "entries", dropped)
	}
	return err
}
