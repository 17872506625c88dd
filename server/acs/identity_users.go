package acs

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// joinSystems gives a new person a user on each of the systems. It links an existing user with the
// person's email address or phone number, or creates one. Linking adopts an unmanaged user.
func (s *Service) joinSystems(ctx context.Context, tx store.Tx, i dbsqlc.UserIdentity, systems []string) error {
	systems = slices.Clone(systems)
	for n, id := range systems {
		// Normalize different spellings of the same identifier.
		if parsed, err := uuid.Parse(id); err == nil {
			systems[n] = parsed.String()
		}
	}
	// Lock systems in a fixed order to prevent deadlocks.
	order := make([]int, len(systems))
	for n := range systems {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return slices.Compare([]byte(systems[a]), []byte(systems[b])) })
	for n, at := range order {
		if n > 0 && systems[at] == systems[order[n-1]] {
			continue
		}
		system, err := lockSystem(ctx, tx, i.WorkspaceID, systems[at])
		if err != nil {
			return err
		}
		_, err = s.joinSystem(ctx, tx, i, system, domain.Invalidf(
			"full_name",
			"Required, because the access system acs_system_ids.%d has no user with this email address or phone number",
			at,
		))
		if err != nil {
			return err
		}
	}
	return nil
}

// joinSystem is joinSystems for one locked system. It fails with nameless if it would have to
// create a user without a name.
func (s *Service) joinSystem(
	ctx context.Context,
	tx store.Tx,
	i dbsqlc.UserIdentity,
	system dbsqlc.AcsSystem,
	nameless *domain.Error,
) (dbsqlc.AcsUser, error) {
	found, err := tx.FindAcsUserToLink(
		ctx,
		dbsqlc.FindAcsUserToLinkParams{
			AcsSystemID:  system.AcsSystemID,
			EmailAddress: i.EmailAddress,
			PhoneNumber:  i.PhoneNumber,
		},
	)
	switch {
	case err == nil:
		err = tx.LinkAcsUser(ctx,
			dbsqlc.LinkAcsUserParams{AcsUserID: found.AcsUserID, UserIdentityID: &i.UserIdentityID})
		found.UserIdentityID = &i.UserIdentityID
		if err == nil && !found.IsManaged {
			err = s.emitUser(ctx, tx, "acs_user.created", system, found)
		}
		return found, err
	case !store.IsNoRows(err):
		return found, err
	case i.FullName == nil:
		return found, nameless
	}
	return s.insertUser(ctx, tx, system, dbsqlc.InsertAcsUserParams{
		UserIdentityID: &i.UserIdentityID,
		FullName:       *i.FullName,
		EmailAddress:   i.EmailAddress,
		PhoneNumber:    i.PhoneNumber,
		GroupRefs:      []string{},
		EntranceRefs:   []string{},
	})
}

// AddUser links a managed user to a person. An unknown key creates an identity from the user's
// data. It fails with Invalid unless an identity is named, with NotFound, and with Conflict if the
// user belongs to another person or the person has another user on the system.
func (s *Service) AddUser(ctx context.Context, p domain.Principal, identity, key, user string) error {
	found, err := getUser(ctx, s.db.Queries, p, user, "", true)
	if err != nil {
		return err
	}
	u := found.AcsUser
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		i, err := findIdentity(ctx, tx.Queries, p, identity, key)
		if e, ok := asError(err); ok && e.Kind == domain.NotFound && identity == "" {
			i, err = insertIdentity(ctx, tx, p.WorkspaceID, NewIdentity{
				Key:      key,
				Email:    text(u.EmailAddress),
				Phone:    text(u.PhoneNumber),
				FullName: u.FullName,
			})
			err = identityConflict(err, &key, u.EmailAddress, u.PhoneNumber)
		}
		if err == nil {
			err = holdIdentity(ctx, tx, i)
		}
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, u.AcsUserID)
		switch {
		case store.IsNoRows(err):
			return userNotFound("acs_user_id", user)
		case err != nil:
			return err
		case r.UserIdentityID != nil && *r.UserIdentityID != i.UserIdentityID:
			return &domain.Error{
				Kind:    domain.Conflict,
				Type:    "acs_user_belongs_to_another_user_identity",
				Data:    map[string]any{"user_identity_id": *r.UserIdentityID},
				Message: "The user belongs to another user identity. Remove it there first with /user_identities/remove_acs_user.",
			}
		}
		return tx.LinkAcsUser(ctx, dbsqlc.LinkAcsUserParams{AcsUserID: u.AcsUserID, UserIdentityID: &i.UserIdentityID})
	})
	return onSystemAlready(err, identity)
}

// RemoveUser unlinks a user from a person. Its system does not change. It fails with NotFound, also
// for a user of another person.
func (s *Service) RemoveUser(ctx context.Context, p domain.Principal, identity, user string) error {
	found, err := getUser(ctx, s.db.Queries, p, user, "", true)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		i, err := findIdentity(ctx, tx.Queries, p, identity, "")
		if err != nil {
			return err
		}
		r, err := tx.LockAcsUser(ctx, found.AcsUser.AcsUserID)
		if store.IsNoRows(err) || err == nil && !same(r.UserIdentityID, &i.UserIdentityID) {
			return userNotFound("acs_user_id", user)
		}
		if err != nil {
			return err
		}
		return tx.LinkAcsUser(ctx, dbsqlc.LinkAcsUserParams{AcsUserID: r.AcsUserID})
	})
	if _, known := asError(err); err != nil && !known {
		return fmt.Errorf("remove the user %s from its identity: %w", user, err)
	}
	return err
}

// UsersOf lists the users of a person, oldest first. It fails with NotFound.
func (s *Service) UsersOf(ctx context.Context, p domain.Principal, identity string) ([]User, error) {
	i, err := findIdentity(ctx, s.db.Queries, p, identity, "")
	if err != nil {
		return nil, err
	}
	out, _, err := s.ListUsers(ctx, p, UserFilter{IdentityID: i.UserIdentityID.String()}, everything)
	return out, err
}

// SystemsOf lists the systems on which a person has a user, oldest first. It fails with NotFound.
func (s *Service) SystemsOf(ctx context.Context, p domain.Principal, identity string) ([]System, error) {
	i, err := s.visibleIdentity(ctx, p, identity, "")
	if err != nil {
		return nil, err
	}
	return s.ListSystems(ctx, p, SystemFilter{IdentityID: i.UserIdentityID.String()})
}

// everything is a page that holds the whole of a short list.
var everything = domain.Page{Limit: 1 << 20}
