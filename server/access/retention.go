package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// RetentionLane is the kind of key for which a workspace is looked through for what was kept long enough: secrets
// that were rotated out, and old events with their deliveries.
const RetentionLane = "retention"

const (
	oldEventBatch    = 500  // events looked at in one transaction
	oldDeliveryBatch = 1000 // deliveries removed in one transaction
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

// DropOldSecrets forgets the secrets that were rotated out and whose overlap has ended.
func (s *Service) DropOldSecrets(ctx context.Context, workspace uuid.UUID) error {
	if _, err := s.db.DropOldSecrets(ctx, workspace); err != nil {
		return fmt.Errorf("forget old secrets of workspace %s: %w", workspace, err)
	}
	return nil
}

// ScheduleRetention has the workspace looked through after a pause, or when the overlap of a rotated secret ends.
func (s *Service) ScheduleRetention(ctx context.Context, workspace uuid.UUID, pause time.Duration) error {
	if err := s.db.ScheduleRetention(ctx, store.ScheduleRetentionParams{WorkspaceID: workspace, Pause: pause}); err != nil {
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
