package acs

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// UserChange says what is to change of a user; nil and empty fields stay.
type UserChange struct {
	FullName, Email, Phone string
	ScheduleGiven          bool
	Schedule               *NewSchedule // with ScheduleGiven; nil: it is not bound to a time any more
}

// UpdateUser changes what a user should be. It fails with Invalid, and with NotFound.
func (s *Service) UpdateUser(ctx context.Context, p access.Principal, name UserName, c UserChange) error {
	if err := checkNumber(c.Phone); err != nil {
		return err
	}
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) (err error) {
		if c.FullName != "" {
			r.FullName = c.FullName
		}
		if c.Email != "" {
			r.EmailAddress = &c.Email
		}
		if c.Phone != "" {
			r.PhoneNumber = &c.Phone
		}
		if c.ScheduleGiven {
			r.StartsAt, r.EndsAt = nil, nil
			if c.Schedule != nil {
				r.StartsAt, r.EndsAt, err = c.Schedule.parse(s.access.Now())
			}
		}
		return err
	})
}

// SetSuspended suspends a user, who keeps everything but may not pass, or ends that. It fails with Invalid unless it
// is told which user, and with NotFound.
func (s *Service) SetSuspended(ctx context.Context, p access.Principal, name UserName, suspended bool) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		r.IsSuspended = suspended
		return nil
	})
}

// AddToGroup puts a user into an access group. It fails with Invalid, also for a group of another system, and with
// NotFound.
func (s *Service) AddToGroup(ctx context.Context, p access.Principal, name UserName, group string) error {
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		g, err := groupOn(ctx, tx, system, group, "acs_access_group_id")
		if err == nil && !slices.Contains(r.GroupRefs, g.VendorRef) {
			r.GroupRefs = append(r.GroupRefs, g.VendorRef)
		}
		return err
	})
}

// RemoveFromGroup takes a user out of an access group, if it is in it; a person who is named without a system is meant
// on that of the group. It fails like AddToGroup.
func (s *Service) RemoveFromGroup(ctx context.Context, p access.Principal, name UserName, group string) error {
	if name.IdentityID != "" && name.SystemID == "" {
		g, err := s.GetGroup(ctx, p, group)
		if err != nil {
			return err
		}
		name.SystemID = g.SystemID.String()
	}
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		g, err := groupOn(ctx, tx, system, group, "acs_access_group_id")
		r.GroupRefs = slices.DeleteFunc(slices.Clone(r.GroupRefs), func(ref string) bool { return ref == g.VendorRef })
		return err
	})
}

// RevokeAllEntrances takes a user out of all access groups, which is what entrances open for. It fails like
// SetSuspended.
func (s *Service) RevokeAllEntrances(ctx context.Context, p access.Principal, name UserName) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		r.GroupRefs = []string{}
		return nil
	})
}

// DeleteUser has a user be taken from its system; it is there until that is done. It fails like SetSuspended.
func (s *Service) DeleteUser(ctx context.Context, p access.Principal, name UserName) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		s.deleteUser(r)
		return nil
	})
}

func (s *Service) deleteUser(r *dbsqlc.AcsUser) {
	if r.DeletingAt == nil {
		r.DeletingAt = new(s.access.Now().UTC())
	}
}

// onUser runs f on a managed user that is locked, and writes down what it makes of it. One that is being deleted is
// not changed any more.
func (s *Service) onUser(ctx context.Context, p access.Principal, name UserName, f func(store.Tx, dbsqlc.AcsSystem, *dbsqlc.AcsUser) error) error {
	found, err := findUser(ctx, s.db.Queries, p.WorkspaceID, name)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		system, err := lockSystem(ctx, tx, p.WorkspaceID, found.AcsUser.AcsSystemID.String()) // before its users, as everybody does
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, found.AcsUser.AcsUserID)
		if store.IsNoRows(err) || err == nil && !r.IsManaged { // since it was found
			return userNotFound("acs_user_id", found.AcsUser.AcsUserID)
		}
		if err != nil {
			return err
		}
		if name.IdentityID != "" && !same(r.UserIdentityID, found.AcsUser.UserIdentityID) { // it is somebody else's by now
			return userNotFound("user_identity_id", name.IdentityID)
		}
		was := r
		if err := f(tx, system, &r); err != nil {
			return err
		}
		if was.DeletingAt != nil && r.DeletingAt == was.DeletingAt && !desired(was).equal(desired(r)) {
			return access.Invalidf("acs_user_id", "The user is being deleted; create another one")
		}
		return s.changeUser(ctx, tx, was, r)
	})
	return onSystemAlready(err, name.IdentityID)
}

// changeUser writes down what should be from now on, if that is something else or has got lost at the system, and has
// it be done. It is for those who hold the locks of the system and the user.
func (s *Service) changeUser(ctx context.Context, tx store.Tx, was, r dbsqlc.AcsUser) error {
	lost := was.ErrorCode != nil && *was.ErrorCode == deletedExternally
	if desired(was).equal(desired(r)) && sameInstant(was.StartsAt, r.StartsAt) && sameInstant(was.EndsAt, r.EndsAt) &&
		sameInstant(was.DeletingAt, r.DeletingAt) && !lost {
		return nil
	}
	err := tx.ChangeAcsUser(ctx, dbsqlc.ChangeAcsUserParams{AcsUserID: r.AcsUserID, FullName: r.FullName, EmailAddress: r.EmailAddress, PhoneNumber: r.PhoneNumber,
		StartsAt: r.StartsAt, EndsAt: r.EndsAt, IsSuspended: r.IsSuspended, GroupRefs: r.GroupRefs, DeletingAt: r.DeletingAt})
	if err != nil {
		return err
	}
	tx.Begins()
	return s.wake(ctx, tx, r.AcsSystemID)
}

// endUsersOf has all managed users of an identity be deleted, in the transaction that ends it.
func (s *Service) endUsersOf(ctx context.Context, tx store.Tx, workspace, identity uuid.UUID) error {
	rows, err := tx.ListAcsUsersOfIdentity(ctx, dbsqlc.ListAcsUsersOfIdentityParams{WorkspaceID: workspace, UserIdentityID: &identity})
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b dbsqlc.ListAcsUsersOfIdentityRow) int { // systems in one order, whoever locks them
		return slices.Compare(a.AcsUser.AcsSystemID[:], b.AcsUser.AcsSystemID[:])
	})
	for _, row := range rows {
		_, err := lockSystem(ctx, tx, workspace, row.AcsUser.AcsSystemID.String())
		if e, ok := asError(err); ok && e.Kind == access.NotFound { // it has gone since, and its users with it
			continue
		}
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, row.AcsUser.AcsUserID)
		if store.IsNoRows(err) || err == nil && !same(r.UserIdentityID, &identity) { // or it is somebody else's by now
			continue
		}
		if err != nil {
			return err
		}
		was := r
		s.deleteUser(&r)
		if err := s.changeUser(ctx, tx, was, r); err != nil {
			return err
		}
	}
	return nil
}
