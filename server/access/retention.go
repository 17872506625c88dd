package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
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

// DropOld removes, one by one, events older than the retention that do not go with their partition, and deliveries that came to rest longer ago than that, with their
// attempts: one batch, of the events after a position. Never a delivery that is pending, nor an event that a delivery
// is left of.
func (s *Service) DropOld(ctx context.Context, h Holder, workspace uuid.UUID, retention time.Duration, after Position) (d Dropped, err error) {
	now, err := s.db.Moment(ctx)
	if err != nil {
		return Dropped{}, err
	}
	before, err := s.db.RowsGoBefore(ctx, now.Add(-retention), retention)
	if err != nil {
		return Dropped{}, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d = Dropped{Last: after}
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		old, err := tx.OldEvents(ctx, dbsqlc.OldEventsParams{WorkspaceID: workspace, Retention: retention, Before: before, AfterAt: after.At, AfterID: after.ID, MaxRows: oldEventBatch})
		if err != nil || len(old) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(old))
		for i, e := range old {
			ids[i] = e.EventID
		}
		if d.Deliveries, err = tx.DropDeliveries(ctx, dbsqlc.DropDeliveriesParams{EventIds: ids, Retention: retention, MaxRows: oldDeliveryBatch}); err != nil {
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

// Kept is what has become of the partitions of events.
type Kept struct {
	Made, Dropped []string
	Left          []string // old, and something in them is owed: what is not goes one by one
}

// analyzePartitions is how often the partitions are counted as a whole.
const analyzePartitions = 24 * time.Hour

// KeepPartitions makes the partitions of events that are needed soon, and drops those that were kept for longer than the
// retention; 0: for ever.
func (s *Service) KeepPartitions(ctx context.Context, retention time.Duration) (k Kept, err error) {
	now, err := s.db.Moment(ctx)
	if err != nil {
		return k, err
	}
	made, err := s.db.MakePartitions(ctx, now, PartitionWidth(retention))
	if k.Made = partitionNames(made); err != nil {
		return k, err
	}
	if retention > 0 {
		dropped, left, err := s.db.DropPartitions(ctx, now.Add(-retention))
		if k.Dropped, k.Left = partitionNames(dropped), partitionNames(left); err != nil {
			return k, err
		}
	}
	return k, s.db.AnalyzePartitions(ctx, analyzePartitions)
}

func partitionNames(all []store.Partition) (names []string) {
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// PartitionWidth is how much time one partition is for. There are some four to six at a time, because each costs every list
// a look and every plan of a query its part; for ever there is one more each quarter.
func PartitionWidth(retention time.Duration) time.Duration {
	const quarter = 91 * store.Day
	if retention == 0 {
		return quarter
	}
	return min(max((retention/4).Truncate(store.Day), store.Day), quarter)
}

// DropOldSessions removes client sessions that ended longer ago than the retention: one batch. More is true when there
// may be others.
func (s *Service) DropOldSessions(ctx context.Context, h Holder, workspace uuid.UUID, retention time.Duration) (n int64, more bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err = tx.DropClientSessions(ctx, dbsqlc.DropClientSessionsParams{WorkspaceID: workspace, Retention: retention, MaxRows: oldSessionBatch})
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
	var ended []uuid.UUID
	err := s.db.InTx(ctx, func(tx store.Tx) (err error) {
		ended, err = tx.FailLateWorkspaceAttempts(ctx, dbsqlc.FailLateWorkspaceAttemptsParams{WorkspaceID: workspace, ErrorType: new("action_attempt_expired"), ErrorMessage: &message})
		return err
	})
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
		return tx.ScheduleRetention(ctx, dbsqlc.ScheduleRetentionParams{WorkspaceID: workspace, Pause: pause})
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
