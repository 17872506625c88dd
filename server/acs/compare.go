package acs

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// compare records what was found of a user, and says what there is to do for it, or in how long.
func (s *Service) compare(ctx context.Context, tx store.Tx, system store.AcsSystem, u store.AcsUser, f FoundUser, found bool, groups []FoundGroup, now time.Time) (*Write, time.Duration, error) {
	switch {
	case !u.IsManaged && !found:
		return nil, 0, s.userGone(ctx, tx, system, u)
	case !u.IsManaged:
		if has := applied(u); has != nil && has.equal(f.Profile) && same(u.VendorRef, &f.Ref) {
			return nil, 0, nil
		}
		return nil, 0, tx.UnmanagedAcsUserFound(ctx, store.UnmanagedAcsUserFoundParams{AcsUserID: u.AcsUserID, FullName: f.FullName, EmailAddress: nonEmpty(f.Email),
			PhoneNumber: nonEmpty(f.Phone), StartsAt: f.StartsAt, EndsAt: f.EndsAt, IsSuspended: f.Suspended, GroupRefs: append([]string{}, f.Groups...),
			Applied: mustJSON(f.Profile), VendorRef: &f.Ref})
	case u.DeletingAt != nil && !found:
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
		err := tx.AcsUserFound(ctx, store.AcsUserFoundParams{AcsUserID: u.AcsUserID, VendorRef: &f.Ref, Applied: mustJSON(f.Profile), AsDesired: asDesired})
		if err != nil {
			return nil, 0, err
		}
	}
	if asDesired {
		return nil, 0, nil
	}
	w := &Write{UserID: u.AcsUserID, Gen: u.DesiredGen, Ref: f.Ref, Delete: u.DeletingAt != nil, Profile: desired(u)}
	return s.inTurn(u, w, now)
}

// missing is compare for a user that should be on the system and is not.
func (s *Service) missing(ctx context.Context, tx store.Tx, u store.AcsUser, now time.Time) (*Write, time.Duration, error) {
	if u.Applied != nil {
		deleted := u.WrittenGen == u.DesiredGen // nothing was asked for since: somebody does not want it there
		if err := tx.AcsUserMissing(ctx, store.AcsUserMissingParams{AcsUserID: u.AcsUserID, DeletedThere: deleted, ErrorMessage: deletedThere}); err != nil {
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
func (s *Service) inTurn(u store.AcsUser, w *Write, now time.Time) (*Write, time.Duration, error) {
	switch {
	case u.BlockedGen == u.DesiredGen:
		return nil, 0, nil
	case u.NextAttemptAt != nil && u.NextAttemptAt.After(now):
		return nil, u.NextAttemptAt.Sub(now), nil
	}
	return w, 0, nil
}

// leaveLostGroups takes a user out of groups that its system does not have any more: nobody can be in them. It says
// whether there were any.
func leaveLostGroups(ctx context.Context, tx store.Tx, u *store.AcsUser, groups []FoundGroup) (bool, error) {
	lost := func(ref string) bool {
		return !slices.ContainsFunc(groups, func(g FoundGroup) bool { return g.Ref == ref })
	}
	if !slices.ContainsFunc(u.GroupRefs, lost) {
		return false, nil
	}
	u.GroupRefs = slices.DeleteFunc(slices.Clone(u.GroupRefs), lost)
	return true, tx.SetAcsUserGroups(ctx, store.SetAcsUserGroupsParams{AcsUserID: u.AcsUserID, GroupRefs: u.GroupRefs})
}

// RecordWritten notes that a system has taken a user as it was to be.
func (s *Service) RecordWritten(ctx context.Context, h access.Holder, system uuid.UUID, w Write, ref string) error {
	return s.onSystem(ctx, h, system, "record a write", func(tx store.Tx, r store.AcsSystem) error {
		u, err := tx.LockAcsUser(ctx, w.UserID)
		switch {
		case store.IsNoRows(err):
			return nil
		case err != nil:
			return err
		case w.Delete && u.DeletingAt != nil:
			return s.userGone(ctx, tx, r, u)
		case ref != access.Storable(ref):
			return nil // the next look does not see it either
		}
		return tx.AcsUserFound(ctx, store.AcsUserFoundParams{AcsUserID: w.UserID, VendorRef: &ref, Applied: mustJSON(w.Profile), AsDesired: u.DesiredGen == w.Gen})
	})
}

// Failure is why a write came to nothing.
type Failure struct {
	Message    string
	ForGood    bool          // it would fail again, until the user is changed
	RetryAfter time.Duration // not before then; 0 where the vendor does not say
}

// longestPause is between two tries of what fails.
const longestPause = 5 * time.Minute

// RecordFailure notes that a write came to nothing, and says in how long it is tried again.
func (s *Service) RecordFailure(ctx context.Context, h access.Holder, system uuid.UUID, w Write, f Failure) (pause time.Duration, err error) {
	err = s.onSystem(ctx, h, system, "record a failure", func(tx store.Tx, _ store.AcsSystem) error {
		u, err := tx.LockAcsUser(ctx, w.UserID)
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		code := "failed_to_update_on_acs_system"
		switch {
		case w.Delete:
			code = "failed_to_delete_on_acs_system"
		case w.Ref == "":
			code = "failed_to_create_on_acs_system"
		}
		pause = max(min(time.Second<<min(u.Attempts, 16), longestPause), f.RetryAfter)
		message := access.Storable(f.Message)
		return tx.AcsUserFailed(ctx, store.AcsUserFailedParams{AcsUserID: w.UserID, Gen: w.Gen, Pause: pause, Blocked: f.ForGood && !w.Delete, ErrorCode: &code, ErrorMessage: &message})
	})
	return pause, err
}
