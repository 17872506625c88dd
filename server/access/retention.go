package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RetentionLane is the lane of the retention of a workspace. It deletes rotated secrets, old events with their
// deliveries, ended client sessions, and expired attempts on the workspace.
const RetentionLane = "retention"

const (
	oldEventBatch    = 500  // events read in one transaction
	oldDeliveryBatch = 1000 // deliveries deleted in one transaction
)

// Dropped is the result of one batch.
type Dropped struct {
	Events, Deliveries int64    // deleted
	Last               Position // the next batch starts after it
	More               bool     // another batch follows
}

// DropOld deletes one batch of the events after a position that are older than the retention and do not go with
// their partition. It also deletes deliveries that ended longer ago than the retention, with their attempts. It
// keeps pending deliveries, and events that still have a delivery.
func (s *Service) DropOld(
	ctx context.Context,
	h Fence,
	workspace uuid.UUID,
	retention time.Duration,
	after Position,
) (d Dropped, err error) {
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
		old, err := tx.OldEvents(ctx, dbsqlc.OldEventsParams{
			WorkspaceID: workspace,
			Retention:   retention,
			Before:      before,
			AfterAt:     after.At,
			AfterID:     after.ID,
			MaxRows:     oldEventBatch,
		})
		if err != nil || len(old) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(old))
		for i, e := range old {
			ids[i] = e.EventID
		}
		if d.Deliveries, err = tx.DropDeliveries(
			ctx,
			dbsqlc.DropDeliveriesParams{EventIds: ids, Retention: retention, MaxRows: oldDeliveryBatch},
		); err != nil {
			return err
		}
		if d.Deliveries == oldDeliveryBatch { // these events may have more
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

// Kept is the result of KeepPartitions.
type Kept struct {
	Made, Dropped []string
	// Left are old partitions with events that have pending deliveries. The other events in them are deleted
	// one by one.
	Left []string
}

// analyzePartitions is the interval between two ANALYZE runs on the partitioned table.
const analyzePartitions = 24 * time.Hour

// KeepPartitions creates the event partitions that are needed soon, and drops those older than the retention. A
// retention of 0 keeps all.
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

// PartitionWidth returns the time span of one partition. About four to six exist at a time, because each one
// costs every query and plan a part. Without a retention one is added each quarter.
func PartitionWidth(retention time.Duration) time.Duration {
	const quarter = 91 * store.Day
	if retention == 0 {
		return quarter
	}
	return min(max((retention/4).Truncate(store.Day), store.Day), quarter)
}

// oldSessionBatch is how many client sessions are deleted in one transaction.
const oldSessionBatch = 1000

// DropOldSessions deletes one batch of the client sessions that ended longer ago than the retention. more
// reports whether others may follow.
func (s *Service) DropOldSessions(
	ctx context.Context,
	h Fence,
	workspace uuid.UUID,
	retention time.Duration,
) (n int64, more bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err = tx.DropClientSessions(
			ctx,
			dbsqlc.DropClientSessionsParams{WorkspaceID: workspace, Retention: retention, MaxRows: oldSessionBatch},
		)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("remove old client sessions of workspace %s: %w", workspace, err)
	}
	return n, n == oldSessionBatch, nil
}

// EndLateAttempts fails the attempts on a workspace itself whose deadline has passed.
func (s *Service) EndLateAttempts(ctx context.Context, workspace uuid.UUID) error {
	message := "The simulated devices did not answer in time. They appear when they answer. If they do not, " +
		"reset the workspace again."
	var ended []uuid.UUID
	err := s.db.InTx(ctx, func(tx store.Tx) (err error) {
		ended, err = tx.FailLateWorkspaceAttempts(
			ctx,
			dbsqlc.FailLateWorkspaceAttemptsParams{
				WorkspaceID:  workspace,
				ErrorType:    new("action_attempt_expired"),
				ErrorMessage: &message,
			},
		)
		return err
	})
	if err != nil {
		return fmt.Errorf("fail late attempts on workspace %s: %w", workspace, err)
	}
	for _, id := range ended {
		s.waiting.notify(id)
	}
	return nil
}

// DropOldSecrets deletes the rotated webhook secrets whose overlap has ended.
func (s *Service) DropOldSecrets(ctx context.Context, workspace uuid.UUID) error {
	if _, err := s.db.DropOldSecrets(ctx, workspace); err != nil {
		return fmt.Errorf("delete old secrets of workspace %s: %w", workspace, err)
	}
	return nil
}

// ScheduleRetention schedules the next retention of a workspace after a pause. A rotated secret whose overlap
// ends, or an attempt whose deadline passes, makes it earlier. It locks the workspace, because a concurrent
// change may need an earlier run.
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

// RetentionDue reports whether the retention of a workspace is due.
func (s *Service) RetentionDue(ctx context.Context, workspace uuid.UUID) (bool, error) {
	due, err := s.db.RetentionDue(ctx, workspace)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueRetentions lists workspaces whose retention is due and not leased.
func (s *Service) DueRetentions(ctx context.Context, limit int32) ([]uuid.UUID, error) {
	return s.db.DueRetentions(ctx, limit)
}
