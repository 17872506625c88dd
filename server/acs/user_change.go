package acs

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// UserChange is a change of a user. nil and empty fields stay unchanged.
type UserChange struct {
	FullName, Email, Phone string
	ScheduleGiven          bool
	Schedule               *NewSchedule // with ScheduleGiven, nil removes the schedule
}

// UpdateUser changes the desired state of a user. It fails with Invalid and with NotFound.
func (s *Service) UpdateUser(ctx context.Context, p domain.Principal, name UserName, c UserChange) error {
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
				r.StartsAt, r.EndsAt, err = c.Schedule.parse(s.devices.Now())
			}
		}
		return err
	})
}

// SetSuspended suspends or unsuspends a user. A suspended user keeps its data but may not pass any
// entrance. It fails with Invalid unless the name is unambiguous, and with NotFound.
func (s *Service) SetSuspended(ctx context.Context, p domain.Principal, name UserName, suspended bool) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		r.IsSuspended = suspended
		return nil
	})
}

// AddToGroup adds a user to an access group. It fails with Invalid, also for a group of another
// system, and with NotFound.
func (s *Service) AddToGroup(ctx context.Context, p domain.Principal, name UserName, group string) error {
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		return joinGroup(ctx, tx, p, system, r, group)
	})
}

// AddUserToGroup is AddToGroup for a user or a person. A person without a user on the system of the
// group gets one like in CreateIdentity. It fails with Invalid unless exactly one of user and
// identity is set, and for a person without a name.
func (s *Service) AddUserToGroup(ctx context.Context, p domain.Principal, name UserName, group string) error {
	if name.UserID != "" || name.IdentityID == "" {
		return s.AddToGroup(ctx, p, name, group)
	}
	g, err := s.GetGroup(ctx, p, group)
	if err != nil {
		return err
	}
	return s.onUserOf(ctx, p, name.IdentityID, g.SystemID,
		func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
			return joinGroup(ctx, tx, p, system, r, group)
		})
}

// joinGroup adds a group to the desired state of a user. The caller must hold the lock of the system.
func joinGroup(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	system dbsqlc.AcsSystem,
	r *dbsqlc.AcsUser,
	group string,
) error {
	g, err := groupOn(ctx, tx, p, system, group)
	if err == nil && !slices.Contains(r.GroupRefs, g.VendorRef) {
		r.GroupRefs = append(slices.Clone(r.GroupRefs), g.VendorRef)
	}
	return err
}

// RemoveFromGroup removes a user from an access group. A person named without a system means the
// user on the group's system. It fails like AddToGroup.
func (s *Service) RemoveFromGroup(ctx context.Context, p domain.Principal, name UserName, group string) error {
	if name.IdentityID != "" && name.SystemID == "" {
		g, err := s.GetGroup(ctx, p, group)
		if err != nil {
			return err
		}
		name.SystemID = g.SystemID.String()
	}
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		g, err := groupOn(ctx, tx, p, system, group)
		r.GroupRefs = slices.DeleteFunc(slices.Clone(r.GroupRefs), func(ref string) bool { return ref == g.VendorRef })
		return err
	})
}

// RevokeAllEntrances removes a user from all access groups, and ends all grants of entrances. It
// fails like SetSuspended.
func (s *Service) RevokeAllEntrances(ctx context.Context, p domain.Principal, name UserName) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		r.GroupRefs, r.EntranceRefs = []string{}, []string{}
		return nil
	})
}

// DeleteUser starts the deletion of a user from its system. The user exists until the system
// confirms. It fails like SetSuspended.
func (s *Service) DeleteUser(ctx context.Context, p domain.Principal, name UserName) error {
	return s.onUser(ctx, p, name, func(_ store.Tx, _ dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		s.deleteUser(r)
		return nil
	})
}

func (s *Service) deleteUser(r *dbsqlc.AcsUser) {
	if r.DeletingAt == nil {
		r.DeletingAt = new(s.devices.Now().UTC())
	}
}

// onUser runs f on a locked managed user and stores the result. It refuses changes of a user that
// is being deleted.
func (s *Service) onUser(
	ctx context.Context,
	p domain.Principal,
	name UserName,
	f func(store.Tx, dbsqlc.AcsSystem, *dbsqlc.AcsUser) error,
) error {
	found, err := findUser(ctx, s.db.Queries, p, name)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		// Lock the system before its users, like every other transaction.
		system, err := lockSystem(ctx, tx, p.WorkspaceID, found.AcsUser.AcsSystemID.String())
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, found.AcsUser.AcsUserID)
		// The user changed after it was found.
		if store.IsNoRows(err) || err == nil && !r.IsManaged {
			return userNotFound("acs_user_id", found.AcsUser.AcsUserID)
		}
		if err != nil {
			return err
		}
		// The user belongs to another identity by now.
		if name.IdentityID != "" && !same(r.UserIdentityID, found.AcsUser.UserIdentityID) {
			return userNotFound("user_identity_id", name.IdentityID)
		}
		was := r
		if err := f(tx, system, &r); err != nil {
			return err
		}
		if was.DeletingAt != nil && r.DeletingAt == was.DeletingAt && !desired(was).equal(desired(r)) {
			return domain.Invalidf("acs_user_id", "The user is being deleted. Create a new user instead.")
		}
		return s.changeUser(ctx, tx, was, r)
	})
	return onSystemAlready(err, name.IdentityID)
}

// changeUser stores the new desired state if it differs or if the user was lost at the system, and
// wakes the system. The caller must hold the locks of the system and the user.
func (s *Service) changeUser(ctx context.Context, tx store.Tx, was, r dbsqlc.AcsUser) error {
	lost := was.ErrorCode != nil && *was.ErrorCode == deletedExternally
	if desired(was).equal(desired(r)) && sameInstant(was.StartsAt, r.StartsAt) && sameInstant(was.EndsAt, r.EndsAt) &&
		sameInstant(was.DeletingAt, r.DeletingAt) && !lost {
		return nil
	}
	err := tx.ChangeAcsUser(ctx, dbsqlc.ChangeAcsUserParams{
		AcsUserID:    r.AcsUserID,
		FullName:     r.FullName,
		EmailAddress: r.EmailAddress,
		PhoneNumber:  r.PhoneNumber,
		StartsAt:     r.StartsAt,
		EndsAt:       r.EndsAt,
		IsSuspended:  r.IsSuspended,
		GroupRefs:    r.GroupRefs,
		EntranceRefs: r.EntranceRefs,
		DeletingAt:   r.DeletingAt,
	})
	if err != nil {
		return err
	}
	tx.Begins()
	return s.wake(ctx, tx, r.AcsSystemID)
}

// endUsersOf starts the deletion of all managed users of an identity, in the transaction that
// deletes the identity.
func (s *Service) endUsersOf(ctx context.Context, tx store.Tx, workspace, identity uuid.UUID) error {
	rows, err := tx.ListAcsUsersOfIdentity(ctx,
		dbsqlc.ListAcsUsersOfIdentityParams{WorkspaceID: workspace, UserIdentityID: identity})
	if err != nil {
		return err
	}
	// Lock systems in a fixed order to prevent deadlocks.
	slices.SortFunc(rows, func(a, b dbsqlc.ListAcsUsersOfIdentityRow) int {
		return slices.Compare(a.AcsUser.AcsSystemID[:], b.AcsUser.AcsSystemID[:])
	})
	for _, row := range rows {
		_, err := lockSystem(ctx, tx, workspace, row.AcsUser.AcsSystemID.String())
		// The system and its users were removed meanwhile.
		if e, ok := asError(err); ok && e.Kind == domain.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, row.AcsUser.AcsUserID)
		// The user was deleted or moved to another identity meanwhile.
		if store.IsNoRows(err) || err == nil && !same(r.UserIdentityID, &identity) {
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
