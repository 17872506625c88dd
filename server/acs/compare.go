package acs

import (
	"context"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// compare records what was found of a managed user, and says what there is to do for it, or in how long.
func (s *Service) compare(ctx context.Context, tx store.Tx, system dbsqlc.AcsSystem, u dbsqlc.AcsUser, f FoundUser, found bool, groups refs, now time.Time) (*Write, time.Duration, error) {
	if u.DeletingAt != nil && !found {
		if wait := s.onItsWay(u, now); wait > 0 {
			return nil, wait, nil
		}
		if err := s.remember(ctx, tx, u, now, now.Add(refMemory)); err != nil {
			return nil, 0, err
		}
		return nil, 0, s.userGone(ctx, tx, system, u)
	}
	lost, err := leaveLostGroups(ctx, tx, &u, groups)
	if err != nil {
		return nil, 0, err
	}
	if !found {
		return s.missing(ctx, tx, u, now)
	}
	asDesired := u.DeletingAt == nil && desired(u).equal(f.Profile)
	if has := applied(u); lost || has == nil || !has.equal(f.Profile) || !same(u.VendorRef, &f.Ref) || asDesired && (u.WrittenGen != u.DesiredGen || u.ErrorCode != nil) {
		err := tx.AcsUserFound(ctx, dbsqlc.AcsUserFoundParams{AcsUserID: u.AcsUserID, VendorRef: &f.Ref, Applied: mustJSON(f.Profile), AsDesired: asDesired})
		if err != nil {
			return nil, 0, err
		}
	}
	if asDesired {
		return nil, 0, nil
	}
	if has := applied(u); u.DeletingAt == nil && u.WrittenGen == u.DesiredGen && has != nil && !has.equal(f.Profile) {
		if err := dispute(ctx, tx, &u, now); err != nil {
			return nil, 0, err
		}
	}
	w := &Write{UserID: u.AcsUserID, Gen: u.DesiredGen, Ref: f.Ref, Delete: u.DeletingAt != nil, Profile: desired(u), Less: desired(u).less(f.Profile), Tries: u.Attempts}
	return s.inTurn(u, w, now)
}

// missing is compare for a user that should be on the system and is not.
func (s *Service) missing(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, now time.Time) (*Write, time.Duration, error) {
	if u.Applied != nil {
		deleted := u.WrittenGen == u.DesiredGen // nothing was asked for since: somebody does not want it there
		if err := tx.AcsUserMissing(ctx, dbsqlc.AcsUserMissingParams{AcsUserID: u.AcsUserID, DeletedThere: deleted, ErrorMessage: deletedThere}); err != nil {
			return nil, 0, err
		}
		if deleted {
			return nil, 0, nil
		}
	}
	return s.inTurn(u, &Write{UserID: u.AcsUserID, Gen: u.DesiredGen, Profile: desired(u)}, now)
}

const deletedThere = "Somebody has deleted the user at the access system. It stays away until it is changed here; delete it here, too, if it is to stay away for good."

// inTurn leaves out what the system has refused for good, and puts off what has failed just now.
func (s *Service) inTurn(u dbsqlc.AcsUser, w *Write, now time.Time) (*Write, time.Duration, error) {
	switch {
	case u.BlockedGen == u.DesiredGen:
		return nil, 0, nil
	case u.NextAttemptAt != nil && u.NextAttemptAt.After(now):
		return nil, u.NextAttemptAt.Sub(now), nil
	}
	return w, 0, nil
}

// leaveLostGroups takes a user out of groups that its system does not have any more: nobody can be in them. That is
// another state than was asked for, which nobody has refused yet. It says whether there were any.
func leaveLostGroups(ctx context.Context, tx store.Tx, u *dbsqlc.AcsUser, groups refs) (lost bool, err error) {
	gone := func(ref string) bool { return !groups[ref] }
	if !slices.ContainsFunc(u.GroupRefs, gone) {
		return false, nil
	}
	*u, err = tx.AcsUserLeavesGroups(ctx, dbsqlc.AcsUserLeavesGroupsParams{AcsUserID: u.AcsUserID, GroupRefs: slices.DeleteFunc(slices.Clone(u.GroupRefs), gone)})
	return true, err
}

// dispute has a user put right that is found otherwise than it was put: at once, unless that happens again and again.
// Then somebody else changes it too, or its system does not keep what it is given, and pauses grow.
func dispute(ctx context.Context, tx store.Tx, u *dbsqlc.AcsUser, now time.Time) error {
	if u.DriftedAt == nil || u.DriftedAt.Add(disputeMemory).Before(now) {
		u.DriftCount = 0
	}
	u.DriftCount, u.DriftedAt = u.DriftCount+1, &now
	arg := dbsqlc.AcsUserDisputedParams{AcsUserID: u.AcsUserID, DriftCount: u.DriftCount, DriftedAt: &now, NextAttemptAt: u.NextAttemptAt}
	if u.DriftCount >= patience {
		u.NextAttemptAt = new(now.Add(min(30*time.Second<<min(u.DriftCount-patience, 10), longestQuiet)))
		arg.NextAttemptAt = u.NextAttemptAt
		arg.ErrorCode = new("failed_to_update_on_acs_system")
		arg.ErrorMessage = new("The access system keeps the user otherwise than it was written, again and again: does somebody else change it, too? It is put right from time to time.")
	}
	return tx.AcsUserDisputed(ctx, arg)
}
