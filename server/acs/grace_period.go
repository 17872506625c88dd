package acs

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// markUnlisted notes that the account's list does not show a system, and requests a look at the
// system itself. The system counts as removed only if that look does not find it either.
func (s *Service) markUnlisted(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	if since := s.devices.GracePeriodStart(r.UnlistedAt, s.devices.Now()); since != r.UnlistedAt {
		err := tx.SetAcsSystemUnlisted(ctx,
			dbsqlc.SetAcsSystemUnlistedParams{AcsSystemID: r.AcsSystemID, UnlistedAt: since})
		if err != nil {
			return err
		}
	}
	return s.wake(ctx, tx, r.AcsSystemID)
}

// RecordAbsent notes that a look did not find a system. A system that the account's list has not
// shown for the grace period either is removed with its users. It reports whether the list shows
// the system, and otherwise when to look again; 0 means that the system was removed.
func (s *Service) RecordAbsent(
	ctx context.Context,
	h store.Fence,
	id uuid.UUID,
) (listed bool, again time.Duration, err error) {
	err = s.onSystem(ctx, h, id, "record the absence", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if listed = r.UnlistedAt == nil; listed {
			return nil
		}
		now := s.devices.Now()
		since := s.devices.GracePeriodStart(r.UnlistedAt, now)
		if again = since.Add(s.devices.EmptyListGrace()).Sub(now); again > 0 {
			if since == r.UnlistedAt {
				return nil
			}
			return tx.SetAcsSystemUnlisted(ctx,
				dbsqlc.SetAcsSystemUnlistedParams{AcsSystemID: r.AcsSystemID, UnlistedAt: since})
		}
		again = 0
		return s.endSystem(ctx, tx, r)
	})
	return listed, again, err
}

// RecordUnreachable records that a system does not answer, or with writes that it refuses writes
// only. The first failure emits an event.
func (s *Service) RecordUnreachable(
	ctx context.Context,
	h store.Fence,
	id uuid.UUID,
	message string,
	writes bool,
) error {
	return s.onSystem(ctx, h, id, "record the silence", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		// What the system shows after an outage starts a new grace period.
		if !writes && (r.EmptySince != nil || r.UnlistedAt != nil) {
			if err := tx.ClearAcsSystemGracePeriods(ctx, id); err != nil {
				return err
			}
		}
		if err := tx.MarkAcsUsersUnreachable(
			ctx,
			dbsqlc.MarkAcsUsersUnreachableParams{AcsSystemID: id, ErrorMessage: &message},
		); err != nil ||
			r.ErrorMessage != nil {
			return err
		}
		err := tx.SetAcsSystemError(ctx,
			dbsqlc.SetAcsSystemErrorParams{AcsSystemID: id, ErrorMessage: &message, WriteRefused: writes})
		if err != nil {
			return err
		}
		return s.emitDisconnected(ctx, tx, r, message)
	})
}

// markReachable clears the error of a system that answers again.
func (s *Service) markReachable(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	if r.ErrorMessage == nil {
		return nil
	}
	if err := tx.SetAcsSystemError(ctx, dbsqlc.SetAcsSystemErrorParams{AcsSystemID: r.AcsSystemID}); err != nil {
		return err
	}
	return s.emitSystem(ctx, tx, "acs_system.connected", r)
}

// emptyGraceLeft returns for how long the observed content must be ignored; 0 means that it counts.
// It is suspect if all users, or a group or an entrance in use, disappear together. Systems are empty for a moment
// after a restart or rename things, and acting on that would lose the desired state.
func (s *Service) emptyGraceLeft(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	rows []dbsqlc.AcsUser,
	users []FoundUser,
	on accessRefs,
) (time.Duration, error) {
	now := s.devices.Now()
	emptied := len(users) == 0 &&
		slices.ContainsFunc(rows, func(u dbsqlc.AcsUser) bool { return u.Applied != nil && u.DeletingAt == nil }) ||
		slices.ContainsFunc(rows, func(u dbsqlc.AcsUser) bool {
			return u.DeletingAt == nil &&
				((u.IsManaged || len(on.groups) == 0) && on.groups.lack(u.GroupRefs) ||
					(u.IsManaged || len(on.entrances) == 0) && on.entrances.lack(u.EntranceRefs))
		})
	granted := slices.ContainsFunc(rows, func(u dbsqlc.AcsUser) bool { return len(u.EntranceRefs) > 0 })
	if !emptied && r.EmptySince == nil {
		return 0, nil
	}
	// The zero value ends the grace period. The next one starts afresh.
	arg := dbsqlc.SetAcsSystemEmptySinceParams{AcsSystemID: r.AcsSystemID}
	since, wait := s.devices.GracePeriodStart(r.EmptySince, now), time.Duration(0)
	if emptied {
		wait = max(since.Add(s.devices.EmptyListGrace()).Sub(now), 0)
	}
	switch {
	case wait > 0 && since == r.EmptySince:
		return wait, nil
	case wait > 0:
		arg.EmptySince = since
	// The system may permanently report groups and entrances of users that it does not list.
	case emptied && (len(on.groups) == 0 || len(on.entrances) == 0 && granted):
		arg.EmptySince = new(now.Add(-s.devices.EmptyListGrace()))
	}
	return wait, tx.SetAcsSystemEmptySince(ctx, arg)
}

// createGraceLeft returns for how long a user that was sent to its system may still appear there.
func (s *Service) createGraceLeft(u dbsqlc.AcsUser, now time.Time) time.Duration {
	if u.WriteAt == nil {
		return 0
	}
	return max(u.WriteAt.Add(s.devices.ConfirmTimeout()).Sub(now), 0)
}
