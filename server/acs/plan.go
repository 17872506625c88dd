package acs

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// compare records the observed state of a managed user. It returns the write that the user needs,
// or the delay until one is due.
func (s *Service) compare(
	ctx context.Context,
	tx store.Tx,
	system dbsqlc.AcsSystem,
	u dbsqlc.AcsUser,
	f FoundUser,
	found bool,
	on accessRefs,
	now time.Time,
) (*Write, time.Duration, error) {
	if u.DeletingAt != nil && !found {
		if wait := s.createGraceLeft(u, now); wait > 0 {
			return nil, wait, nil
		}
		if err := s.writeTombstone(ctx, tx, u, now, now.Add(tombstoneRefTTL)); err != nil {
			return nil, 0, err
		}
		return nil, 0, s.dropUser(ctx, tx, system, u)
	}
	lost, err := dropLostAccess(ctx, tx, &u, on)
	if err != nil {
		return nil, 0, err
	}
	if !found {
		return s.compareMissing(ctx, tx, u, now)
	}
	asDesired := u.DeletingAt == nil && desired(u).equal(f.Profile)
	if has := applied(u); lost || has == nil || !has.equal(f.Profile) || !same(u.VendorRef, &f.Ref) ||
		asDesired && (u.WrittenGen != u.DesiredGen || u.ErrorCode != nil) {
		err := tx.AcsUserFound(ctx, dbsqlc.AcsUserFoundParams{
			AcsUserID: u.AcsUserID,
			VendorRef: &f.Ref,
			Applied:   mustJSON(f.Profile),
			AsDesired: asDesired,
		})
		if err != nil {
			return nil, 0, err
		}
	}
	if asDesired {
		return nil, 0, nil
	}
	if has := applied(u); u.DeletingAt == nil && u.WrittenGen == u.DesiredGen && has != nil && !has.equal(f.Profile) {
		if err := recordDispute(ctx, tx, &u, now); err != nil {
			return nil, 0, err
		}
	}
	w := &Write{
		UserID:    u.AcsUserID,
		Gen:       u.DesiredGen,
		Ref:       f.Ref,
		Delete:    u.DeletingAt != nil,
		Profile:   desired(u),
		Restricts: desired(u).less(f.Profile),
		Failures:  u.Attempts,
	}
	return s.dueWrite(u, w, now)
}

// compareMissing is compare for a user that should be on the system but is not.
func (s *Service) compareMissing(
	ctx context.Context,
	tx store.Tx,
	u dbsqlc.AcsUser,
	now time.Time,
) (*Write, time.Duration, error) {
	if u.Applied != nil {
		// No change was requested meanwhile, so an administrator deleted the user at the system.
		deleted := u.WrittenGen == u.DesiredGen
		err := tx.AcsUserMissing(ctx, dbsqlc.AcsUserMissingParams{
			AcsUserID:    u.AcsUserID,
			DeletedThere: deleted,
			ErrorMessage: deletedThere,
		})
		if err != nil {
			return nil, 0, err
		}
		if deleted {
			return nil, 0, nil
		}
	}
	return s.dueWrite(u, &Write{UserID: u.AcsUserID, Gen: u.DesiredGen, Profile: desired(u)}, now)
}

const deletedThere = "The user was deleted at the access system. " +
	"Change the user here to create it again, or delete it here as well."

// dueWrite drops a write that the system refused permanently, and delays one that failed recently.
func (s *Service) dueWrite(u dbsqlc.AcsUser, w *Write, now time.Time) (*Write, time.Duration, error) {
	switch {
	case u.BlockedGen == u.DesiredGen:
		return nil, 0, nil
	case u.NextAttemptAt != nil && u.NextAttemptAt.After(now):
		return nil, u.NextAttemptAt.Sub(now), nil
	}
	return w, 0, nil
}

// dropLostAccess removes a user from groups that its system has lost, and ends the grants of
// entrances that it has lost. It reports whether there were any. The result is a new desired state,
// which the system has not refused yet.
func dropLostAccess(ctx context.Context, tx store.Tx, u *dbsqlc.AcsUser, on accessRefs) (lost bool, err error) {
	if !on.groups.lack(u.GroupRefs) && !on.entrances.lack(u.EntranceRefs) {
		return false, nil
	}
	*u, err = tx.AcsUserLosesAccess(
		ctx,
		dbsqlc.AcsUserLosesAccessParams{
			AcsUserID:    u.AcsUserID,
			GroupRefs:    on.groups.among(u.GroupRefs),
			EntranceRefs: on.entrances.among(u.EntranceRefs),
		},
	)
	return true, err
}

// recordDispute counts that a user differs from what was last written. The first repairs run
// immediately. If differences recur, another party changes the user or the system does not store
// what it receives, so the delays grow.
func recordDispute(ctx context.Context, tx store.Tx, u *dbsqlc.AcsUser, now time.Time) error {
	if u.DriftedAt == nil || u.DriftedAt.Add(driftWindow).Before(now) {
		u.DriftCount = 0
	}
	u.DriftCount, u.DriftedAt = u.DriftCount+1, &now
	arg := dbsqlc.RecordAcsUserDriftParams{
		AcsUserID:     u.AcsUserID,
		DriftCount:    u.DriftCount,
		DriftedAt:     &now,
		NextAttemptAt: u.NextAttemptAt,
	}
	if u.DriftCount >= reportAfterFailures {
		u.NextAttemptAt = new(now.Add(min(30*time.Second<<min(u.DriftCount-reportAfterFailures, 10), maxDisputePause)))
		arg.NextAttemptAt = u.NextAttemptAt
		arg.ErrorCode = new("failed_to_update_on_acs_system")
		arg.ErrorMessage = new(
			"The user at the access system keeps differing from what the server writes. " +
				"Check whether another administrator or program changes it. " +
				"The server repairs the user from time to time.",
		)
	}
	return tx.RecordAcsUserDrift(ctx, arg)
}
