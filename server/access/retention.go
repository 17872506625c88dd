package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// RetentionLane is the kind of key for which a workspace is looked through for what was kept long enough: secrets
// that were rotated out, old events with their deliveries, client sessions that have ended, and attempts on the
// workspace itself that have come to nothing.
const RetentionLane = "retention"

const (
	oldEventBatch    = 500  // events looked at in one transaction
	oldDeliveryBatch = 1000 // deliveries removed in one transaction
	oldSessionBatch  = 1000 // client sessions removed in one transaction
)

// Dropped is what one batch has come to.
type Dropped struct {
	Events, Deliveries int64    // removed
	Last               Position // the next batch begins after it
	More               bool     // there is a next batch
}

// DropOld removes events older than the retention, and deliveries that came to rest longer ago than that, with their
// attempts: one batch, of the events after a position. Never a delivery that is pending, nor an event that a delivery
// is left of.
func (s *Service) DropOld(ctx context.Context, h Holder, workspace uuid.UUID, retention time.Duration, after Position) (d Dropped, err error) {
	d.Last = after
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		old, err := tx.OldEvents(ctx, store.OldEventsParams{WorkspaceID: workspace, Retention: retention, AfterAt: after.At, AfterID: after.ID, MaxRows: oldEventBatch})
		if err != nil || len(old) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(old))
		for i, e := range old {
			ids[i] = e.EventID
		}
		if d.Deliveries, err = tx.DropDeliveries(ctx, store.DropDeliveriesParams{EventIds: ids, Retention: retention, MaxRows: oldDeliveryBatch}); err != nil {
			return err
		}
		if d.Deliveries == oldDeliveryBatch { // there may be more of these events
			d.More = true
			return nil
		}
		last := old[len(old)-1]
		d.Last, d.More = Position{At: last.CreatedAt, ID: last.EventID}, len(old) == oldEventBatch
		d.Events, err = tx.DropEvents(ctx, ids)
		return err
	})
	if err != nil {
		return Dropped{}, fmt.Errorf("remove old events of workspace %s: %w", workspace, err)
	}
	return d, nil
}

// DropOldSessions removes client sessions that ended longer ago than the retention: one batch. More is true when there
// may be others.
func (s *Service) DropOldSessions(ctx context.Context, h Holder, workspace uuid.UUID, retention time.Duration) (n int64, more bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err = tx.DropClientSessions(ctx, store.DropClientSessionsParams{WorkspaceID: workspace, Retention: retention, MaxRows: oldSessionBatch})
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("remove old client sessions of workspace %s: %w", workspace, err)
	}
	return n, n == oldSessionBatch, nil
}

// EndLateAttempts gives up the attempts on a workspace itself that were to have ended by now.
func (s *Service) EndLateAttempts(ctx context.Context, workspace uuid.UUID) error {
	message := "The simulated devices have not answered in time. They appear when they do; reset the workspace again if they do not."
	ended, err := s.db.FailLateWorkspaceAttempts(ctx, store.FailLateWorkspaceAttemptsParams{WorkspaceID: workspace, ErrorType: new("action_attempt_expired"), ErrorMessage: &message})
	if err != nil {
		return fmt.Errorf("give up late attempts on workspace %s: %w", workspace, err)
	}
	for _, id := range ended {
		s.waiting.wake(id)
	}
	return nil
}

// DropOldSecrets forgets the secrets that were rotated out and whose overlap has ended.
func (s *Service) DropOldSecrets(ctx context.Context, workspace uuid.UUID) error {
	if _, err := s.db.DropOldSecrets(ctx, workspace); err != nil {
		return fmt.Errorf("forget old secrets of workspace %s: %w", workspace, err)
	}
	return nil
}

// ScheduleRetention has the workspace looked through after a pause, or when the overlap of a rotated secret or the time of
// an attempt on the workspace ends. It waits for changes of the workspace first: they may ask for an earlier look.
func (s *Service) ScheduleRetention(ctx context.Context, workspace uuid.UUID, pause time.Duration) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockWorkspace(ctx, workspace); err != nil {
			if store.IsNoRows(err) {
				return nil // it was deleted
			}
			return err
		}
		return tx.ScheduleRetention(ctx, store.ScheduleRetentionParams{WorkspaceID: workspace, Pause: pause})
	})
	if err != nil {
		return fmt.Errorf("schedule the retention of workspace %s: %w", workspace, err)
	}
	return nil
}

// RetentionDue says whether it is time to look through a workspace.
func (s *Service) RetentionDue(ctx context.Context, workspace uuid.UUID) (bool, error) {
	due, err := s.db.RetentionDue(ctx, workspace)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueRetentions lists workspaces that it is time to look through and nobody looks through.
func (s *Service) DueRetentions(ctx context.Context, limit int32) ([]uuid.UUID, error) {
	return s.db.DueRetentions(ctx, limit)
}
