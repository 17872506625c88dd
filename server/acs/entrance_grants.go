package acs

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// maxEntranceGrants is the maximum number of entrances that a user can be granted in addition to
// those of its groups.
const maxEntranceGrants = 1000

// GrantAccess lets a user pass an entrance in addition to those of its groups. A person named by
// identity means the user on the system of the entrance; a person without one gets it like in
// CreateIdentity. It fails with Invalid unless exactly one of user and identity is set, for an
// entrance of another system, and for a person without a name; and with NotFound.
func (s *Service) GrantAccess(ctx context.Context, p domain.Principal, name UserName, entrance string) error {
	switch {
	case name.UserID == "" && name.IdentityID == "":
		return domain.Invalidf("", "Must specify either acs_user_id or user_identity_id")
	case name.UserID == "":
		return s.grantToIdentity(ctx, p, name.IdentityID, entrance)
	}
	return s.onUser(ctx, p, name, func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
		return grantEntrance(ctx, tx, system, r, entrance)
	})
}

func (s *Service) grantToIdentity(ctx context.Context, p domain.Principal, identity, entrance string) error {
	at, err := getEntrance(ctx, s.db.Queries, p.WorkspaceID, entrance)
	if err != nil {
		return err
	}
	return s.onUserOf(ctx, p, identity, at.AcsEntrance.AcsSystemID,
		func(tx store.Tx, system dbsqlc.AcsSystem, r *dbsqlc.AcsUser) error {
			return grantEntrance(ctx, tx, system, r, entrance)
		})
}

// onUserOf runs f on a person's locked user on a system, which it links or creates if there is none, and stores the
// result.
func (s *Service) onUserOf(
	ctx context.Context,
	p domain.Principal,
	identity string,
	onSystem uuid.UUID,
	f func(store.Tx, dbsqlc.AcsSystem, *dbsqlc.AcsUser) error,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		// Lock the identity before its systems, like DeleteIdentity.
		i, err := findIdentity(ctx, tx.Queries, p, identity, "")
		if err == nil {
			err = holdIdentity(ctx, tx, i)
		}
		if err != nil {
			return err
		}
		system, err := lockSystem(ctx, tx, p.WorkspaceID, onSystem.String())
		if err != nil {
			return err
		}
		r, err := s.userOn(ctx, tx, i, system)
		if err != nil {
			return err
		}
		was := r
		if err := f(tx, system, &r); err != nil {
			return err
		}
		return s.changeUser(ctx, tx, was, r)
	})
	return onSystemAlready(err, identity)
}

// userOn returns a person's locked user on a system, which it links or creates if there is none.
// The caller must hold the locks of the identity and the system.
func (s *Service) userOn(
	ctx context.Context,
	tx store.Tx,
	i dbsqlc.UserIdentity,
	system dbsqlc.AcsSystem,
) (dbsqlc.AcsUser, error) {
	rows, err := tx.ListAcsUsersOfIdentity(ctx, dbsqlc.ListAcsUsersOfIdentityParams{
		WorkspaceID:    i.WorkspaceID,
		UserIdentityID: i.UserIdentityID,
		AcsSystemID:    &system.AcsSystemID,
	})
	if err != nil {
		return dbsqlc.AcsUser{}, err
	}
	if len(rows) > 0 && rows[0].AcsUser.DeletingAt == nil {
		r, err := tx.LockAcsUser(ctx, rows[0].AcsUser.AcsUserID)
		// Otherwise the user was removed from the identity meanwhile.
		if err != nil || same(r.UserIdentityID, &i.UserIdentityID) {
			return r, err
		}
	}
	return s.joinSystem(ctx, tx, i, system, domain.Invalidf(
		"user_identity_id",
		"The person has no user on the access system, and no name to create one. "+
			"Set full_name with /user_identities/update first.",
	))
}

// grantEntrance adds an entrance to the desired state of a user. The caller must hold the lock of
// the system.
func grantEntrance(
	ctx context.Context,
	tx store.Tx,
	system dbsqlc.AcsSystem,
	r *dbsqlc.AcsUser,
	entrance string,
) error {
	e, err := getEntrance(ctx, tx.Queries, system.WorkspaceID, entrance)
	switch {
	case err != nil:
		return err
	case e.AcsEntrance.AcsSystemID != system.AcsSystemID:
		return domain.Invalidf("acs_entrance_id", "The entrance belongs to another access system")
	case slices.Contains(r.EntranceRefs, e.AcsEntrance.VendorRef):
		return nil
	case len(r.EntranceRefs) >= maxEntranceGrants:
		return domain.Invalidf("acs_entrance_id",
			"The user has %d entrances without an access group, the maximum. Add the user to an access group.",
			maxEntranceGrants)
	}
	r.EntranceRefs = append(slices.Clone(r.EntranceRefs), e.AcsEntrance.VendorRef)
	return nil
}
