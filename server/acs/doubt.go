package acs

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// unlisted notes that the list of its account does not show a system, and has it be looked at: only what is not found
// there either is gone.
func (s *Service) unlisted(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	if since := s.access.DoubtedSince(r.UnlistedAt, s.access.Now()); since != r.UnlistedAt {
		err := tx.SetAcsSystemUnlisted(ctx, dbsqlc.SetAcsSystemUnlistedParams{AcsSystemID: r.AcsSystemID, UnlistedAt: since})
		if err != nil {
			return err
		}
	}
	return s.wake(ctx, tx, r.AcsSystemID)
}

// RecordAbsent notes that a system is not found where it is looked for. One that the list of its account has not shown
// for a while either is removed, with its users. It says whether the list shows the system, or else in how long to look
// again (0: it was removed).
func (s *Service) RecordAbsent(ctx context.Context, h access.Holder, id uuid.UUID) (listed bool, again time.Duration, err error) {
	err = s.onSystem(ctx, h, id, "record the absence", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if listed = r.UnlistedAt == nil; listed {
			return nil
		}
		now := s.access.Now()
		since := s.access.DoubtedSince(r.UnlistedAt, now)
		if again = since.Add(s.access.EmptyDoubt()).Sub(now); again > 0 {
			if since == r.UnlistedAt {
				return nil
			}
			return tx.SetAcsSystemUnlisted(ctx, dbsqlc.SetAcsSystemUnlistedParams{AcsSystemID: r.AcsSystemID, UnlistedAt: since})
		}
		again = 0
		return s.endSystem(ctx, tx, r)
	})
	return listed, again, err
}

// RecordUnreachable notes that a system does not answer, or with writes that it can be read but not written, and tells
// that the first time.
func (s *Service) RecordUnreachable(ctx context.Context, h access.Holder, id uuid.UUID, message string, writes bool) error {
	return s.onSystem(ctx, h, id, "record the silence", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		if !writes && (r.EmptySince != nil || r.UnlistedAt != nil) { // what comes after it was away is doubted anew
			if err := tx.ForgetAcsSystemDoubts(ctx, id); err != nil {
				return err
			}
		}
		if err := tx.AcsUsersWait(ctx, dbsqlc.AcsUsersWaitParams{AcsSystemID: id, ErrorMessage: &message}); err != nil || r.ErrorMessage != nil {
			return err
		}
		err := tx.SetAcsSystemError(ctx, dbsqlc.SetAcsSystemErrorParams{AcsSystemID: id, ErrorMessage: &message, WriteRefused: writes})
		if err != nil {
			return err
		}
		return s.emitDisconnected(ctx, tx, r, message)
	})
}

// reached tells that a system that did not answer does again.
func (s *Service) reached(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	if r.ErrorMessage == nil {
		return nil
	}
	if err := tx.SetAcsSystemError(ctx, dbsqlc.SetAcsSystemErrorParams{AcsSystemID: r.AcsSystemID}); err != nil {
		return err
	}
	return s.emitSystem(ctx, tx, "acs_system.connected", r)
}

// doubted says for how long what was found on a system is not to be believed (0: it is): all users are gone at once,
// although some are to be there, or a group that somebody is to be in. Systems are empty for a moment after a
// restart, or name things otherwise, and believing them loses what was wanted.
func (s *Service) doubted(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem, rows []dbsqlc.AcsUser, users []FoundUser, groups []FoundGroup) (time.Duration, error) {
	now := s.access.Now()
	there := refs{}
	for _, g := range groups {
		there[g.Ref] = true
	}
	emptied := len(users) == 0 && slices.ContainsFunc(rows, func(u dbsqlc.AcsUser) bool { return u.Applied != nil && u.DeletingAt == nil }) ||
		slices.ContainsFunc(rows, func(u dbsqlc.AcsUser) bool {
			return u.DeletingAt == nil && (u.IsManaged || len(groups) == 0) && slices.ContainsFunc(u.GroupRefs, func(ref string) bool { return !there[ref] })
		})
	if !emptied && r.EmptySince == nil {
		return 0, nil
	}
	arg := dbsqlc.SetAcsSystemEmptiedParams{AcsSystemID: r.AcsSystemID} // believed, or not so any more: the next time is another
	since, wait := s.access.DoubtedSince(r.EmptySince, now), time.Duration(0)
	if emptied {
		wait = max(since.Add(s.access.EmptyDoubt()).Sub(now), 0)
	}
	switch {
	case wait > 0 && since == r.EmptySince:
		return wait, nil
	case wait > 0:
		arg.EmptySince = since
	case emptied && len(groups) == 0: // it may say of users that they are in groups that it does not have, for ever
		arg.EmptySince = new(now.Add(-s.access.EmptyDoubt()))
	}
	return wait, tx.SetAcsSystemEmptied(ctx, arg)
}

// onItsWay is for how long a user that was sent to its system, and has not shown, may still arrive.
func (s *Service) onItsWay(u dbsqlc.AcsUser, now time.Time) time.Duration {
	if u.WriteAt == nil {
		return 0
	}
	return max(u.WriteAt.Add(s.access.ConfirmTimeout()).Sub(now), 0)
}
