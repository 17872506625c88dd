package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	oldEventBatch    = 500  // events read in one transaction
	oldDeliveryBatch = 1000 // deliveries deleted in one transaction
)

// Dropped is the result of one batch.
type Dropped struct {
	Events, Deliveries int64           // deleted
	Last               domain.Position // the next batch starts after it
	More               bool            // another batch follows
}

// DropOld deletes one batch of the events after a position that are older than the retention at a time and do not go
// with their partition. It also deletes deliveries that ended longer ago than the retention, with their attempts. It
// keeps pending deliveries, and events that still have a delivery.
func (s *Service) DropOld(
	ctx context.Context,
	h store.Fence,
	workspace uuid.UUID,
	at time.Time,
	retention time.Duration,
	after domain.Position,
) (d Dropped, err error) {
	ended := at.Add(-retention)
	before, err := s.db.RowsGoBefore(ctx, ended, retention)
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
			EndedBefore: ended,
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
			dbsqlc.DropDeliveriesParams{EventIds: ids, EndedBefore: ended, MaxRows: oldDeliveryBatch},
		); err != nil {
			return err
		}
		if d.Deliveries == oldDeliveryBatch { // these events may have more
			d.More = true
			return nil
		}
		last := old[len(old)-1]
		d.Last, d.More = domain.Position{At: last.CreatedAt, ID: last.EventID}, len(old) == oldEventBatch
		d.Events, err = tx.DropEvents(ctx, ids)
		return err
	})
	if err != nil {
		return Dropped{}, fmt.Errorf("remove old events of workspace %s: %w", workspace, err)
	}
	return d, nil
}

// maxExpiredLogins is the maximum number of pending logins that one call deletes.
const maxExpiredLogins = 1000

// DropExpiredLogins deletes pending logins of connect webviews whose time has passed.
func (s *Service) DropExpiredLogins(ctx context.Context) error {
	if err := s.db.DropExpiredLogins(ctx, maxExpiredLogins); err != nil {
		return fmt.Errorf("remove expired logins of connect webviews: %w", err)
	}
	return nil
}

// Kept is the result of KeepPartitions.
type Kept struct {
	Created, Dropped []string
	// Left are old partitions with events that have pending deliveries. The other events in them are deleted
	// one by one.
	Left []string
}

// analyzePartitions is the interval between two ANALYZE runs on the partitioned table.
const analyzePartitions = 24 * time.Hour

// KeepPartitions creates the event partitions that are needed soon, and drops those older than the retention, unless
// the clock may be wrong. A retention of 0 keeps all.
func (s *Service) KeepPartitions(ctx context.Context, retention time.Duration) (k Kept, err error) {
	now, err := s.db.Now(ctx)
	if err != nil {
		return k, err
	}
	made, err := s.db.MakePartitions(ctx, now, PartitionWidth(retention))
	if k.Created = partitionNames(made); err != nil {
		return k, err
	}
	at, problem, err := s.readClock(ctx)
	if err != nil {
		return k, err
	}
	if retention > 0 && problem == "" {
		dropped, left, err := s.db.DropPartitions(ctx, at.Add(-retention))
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

// ScheduleRetention schedules the next retention of a workspace after a pause. A rotated secret whose overlap
// ends, or an attempt whose deadline passes, makes it earlier, but not earlier than the pause earliest. It locks the
// workspace, because a concurrent change may need an earlier run.
func (s *Service) ScheduleRetention(ctx context.Context, workspace uuid.UUID, pause, earliest time.Duration) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockWorkspace(ctx, workspace); err != nil {
			if store.IsNoRows(err) {
				return nil // it was deleted
			}
			return err
		}
		return tx.ScheduleRetention(ctx, dbsqlc.ScheduleRetentionParams{
			WorkspaceID: workspace,
			Pause:       pause,
			Earliest:    min(earliest, pause),
		})
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
