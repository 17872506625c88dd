package acs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeleteGroup starts the deletion of an access group from its system. The group exists until the system no longer shows
// it. Its users stay, and can no longer pass its entrances. It fails with NotFound.
func (s *Service) DeleteGroup(ctx context.Context, p domain.Principal, id string) error {
	found, err := getGroup(ctx, s.db.Queries, p, id)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		system, err := lockSystem(ctx, tx, p.WorkspaceID, found.AcsAccessGroup.AcsSystemID.String())
		if err != nil {
			return err
		}
		// A look at the system may have removed it meanwhile.
		g, err := groupOn(ctx, tx, p, system, id)
		if err != nil {
			return err
		}
		if err := tx.RequestAcsGroupDeletion(ctx, g.AcsAccessGroupID); err != nil {
			return err
		}
		tx.Begins()
		return s.wake(ctx, tx, system.AcsSystemID)
	})
	return domain.Wrap(err, "delete an access group")
}

// GroupDeletion is a requested deletion of an access group.
type GroupDeletion struct {
	ID       uuid.UUID
	Ref      string
	attempts int32
}

// GroupDeletions returns the deletions of groups that a system needs now, and the delay until more are due; 0 means
// that none are planned. Call it after RecordContent, so that it returns existing groups only.
func (s *Service) GroupDeletions(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
) (due []GroupDeletion, later time.Duration, err error) {
	err = s.onSystem(ctx, h, system, "read the deletions of groups", func(tx store.Tx, _ dbsqlc.AcsSystem) error {
		due, later = nil, 0
		rows, err := tx.ListAcsGroupDeletions(ctx, system)
		if err != nil {
			return err
		}
		now := s.devices.Now()
		for _, r := range rows {
			if r.NextAttemptAt != nil && r.NextAttemptAt.After(now) {
				later = minDelay(later, r.NextAttemptAt.Sub(now))
				continue
			}
			due = append(due, GroupDeletion{r.AcsAccessGroupID, r.VendorRef, r.Attempts})
		}
		return nil
	})
	return due, later, err
}

// RecordGroupDeletion records that a deletion was sent to a system, or why it failed. It returns the delay until it is
// sent again, unless the group is gone by then; 0 means never.
func (s *Service) RecordGroupDeletion(
	ctx context.Context,
	h store.Fence,
	system uuid.UUID,
	g GroupDeletion,
	f *Failure,
) (again time.Duration, err error) {
	arg := dbsqlc.AcsGroupDeletionSentParams{AcsAccessGroupID: g.ID}
	again = pauseAfter(g.attempts)
	if f != nil {
		again = max(again, f.RetryAfter)
		arg.ErrorMessage = nonEmpty(domain.Storable(f.Message))
		arg.IsRefused = f.Permanent
	}
	arg.NextAttemptAt = new(s.devices.Now().Add(again))
	if arg.IsRefused {
		again = 0
	}
	err = s.onSystem(ctx, h, system, "record the deletion of a group", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if r.WriteRefused && (f == nil || f.Rejected) {
			if err := s.markReachable(ctx, tx, r); err != nil {
				return err
			}
		}
		return tx.AcsGroupDeletionSent(ctx, arg)
	})
	return again, err
}
