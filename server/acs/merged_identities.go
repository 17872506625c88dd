package acs

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Merge names a primary identity and the identities to merge into it, either by identifiers or by keys.
type Merge struct {
	ID, Key   string
	IDs, Keys []string
}

// check fails with Invalid unless the merge names all identities in the same way.
func (m Merge) check() error {
	switch {
	case m.ID+m.Key == "" || m.ID != "" && m.Key != "":
		return domain.Invalidf("", "Must specify either user_identity_id or user_identity_key")
	case m.ID != "" && len(m.Keys) > 0 || m.Key != "" && len(m.IDs) > 0:
		return domain.Invalidf("", "Must identify all user identities by ID, or all of them by key")
	case len(m.IDs)+len(m.Keys) == 0:
		return domain.Invalidf("", "Must specify merged_user_identity_ids or merged_user_identity_keys")
	}
	return nil
}

// MergeIdentities moves the users, client sessions, accounts, webviews, devices, and phones of identities to the primary one,
// and deletes the others. The primary one gets the email address and phone number that it lacks from the first identity
// that has one. Former identifiers and keys name the primary one. Identities that were merged into it already are
// skipped. It fails with Invalid; with NotFound; and with Conflict if two of the identities have a user on one system,
// or if one was merged into another identity.
func (s *Service) MergeIdentities(ctx context.Context, p domain.Principal, m Merge) error {
	if err := m.check(); err != nil {
		return err
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		primary, others, err := findMerge(ctx, tx, p, m)
		if err != nil || len(others) == 0 {
			return err
		}
		if primary, others, err = lockMerge(ctx, tx, p, primary, others); err != nil {
			return err
		}
		for _, other := range others {
			if err := s.moveUsers(ctx, tx, p.WorkspaceID, other.UserIdentityID, primary.UserIdentityID); err != nil {
				return err
			}
			if err := mergeIdentity(ctx, tx, &primary, other); err != nil {
				return err
			}
		}
		return tx.UpdateUserIdentity(ctx, dbsqlc.UpdateUserIdentityParams{
			UserIdentityID:  primary.UserIdentityID,
			UserIdentityKey: primary.UserIdentityKey,
			EmailAddress:    primary.EmailAddress,
			PhoneNumber:     primary.PhoneNumber,
			FullName:        primary.FullName,
		})
	})
	return domain.Wrap(onSystemAlready(err, m.ID), "merge user identities")
}

// findMerge returns the primary identity and those that are not merged into it yet, without duplicates.
func findMerge(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	m Merge,
) (primary dbsqlc.UserIdentity, others []dbsqlc.UserIdentity, err error) {
	if primary, err = findIdentity(ctx, tx.Queries, p, m.ID, m.Key); err != nil {
		return primary, nil, err
	}
	seen := map[uuid.UUID]bool{}
	add := func(id, key string) error {
		i, err := findIdentity(ctx, tx.Queries, p, id, key)
		switch {
		case err != nil:
			return err
		case domain.IsID(id, i.UserIdentityID) || key != "" && same(i.UserIdentityKey, &key):
			if i.UserIdentityID == primary.UserIdentityID {
				return domain.Invalidf("", "A user identity cannot be merged into itself")
			}
		case i.UserIdentityID == primary.UserIdentityID:
			return nil // merged already
		default:
			return &domain.Error{
				Kind:    domain.Conflict,
				Type:    "user_identity_already_merged",
				Data:    map[string]any{"user_identity_id": i.UserIdentityID},
				Message: "The user identity was merged into another one. Merge that one instead.",
			}
		}
		if !seen[i.UserIdentityID] {
			seen[i.UserIdentityID], others = true, append(others, i)
		}
		return nil
	}
	for _, id := range m.IDs {
		if err := add(id, ""); err != nil {
			return primary, nil, err
		}
	}
	for _, key := range m.Keys {
		if err := add("", key); err != nil {
			return primary, nil, err
		}
	}
	return primary, others, nil
}

// lockMerge locks the identities of a merge and returns their current rows in the same order. It fails with NotFound
// for one that was deleted or merged meanwhile.
func lockMerge(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	primary dbsqlc.UserIdentity,
	others []dbsqlc.UserIdentity,
) (dbsqlc.UserIdentity, []dbsqlc.UserIdentity, error) {
	ids := []uuid.UUID{primary.UserIdentityID}
	for _, i := range others {
		ids = append(ids, i.UserIdentityID)
	}
	rows, err := tx.LockIdentitiesToMerge(ctx,
		dbsqlc.LockIdentitiesToMergeParams{WorkspaceID: p.WorkspaceID, Ids: ids})
	if err != nil {
		return primary, nil, err
	}
	all := make([]dbsqlc.UserIdentity, len(ids))
	for n, id := range ids {
		at := slices.IndexFunc(rows, func(r dbsqlc.UserIdentity) bool { return r.UserIdentityID == id })
		if at < 0 {
			return primary, nil, notFound("user_identity", "user_identity_id", id)
		}
		all[n] = rows[at]
	}
	return all[0], all[1:], nil
}

// moveUsers moves the users of an identity to another one. The caller holds the locks of both.
func (s *Service) moveUsers(ctx context.Context, tx store.Tx, workspace, from, to uuid.UUID) error {
	rows, err := tx.ListAcsUsersOfIdentity(ctx,
		dbsqlc.ListAcsUsersOfIdentityParams{WorkspaceID: workspace, UserIdentityID: from})
	if err != nil {
		return err
	}
	// Lock users in a fixed order to prevent deadlocks.
	slices.SortFunc(rows, func(a, b dbsqlc.ListAcsUsersOfIdentityRow) int {
		return bytes.Compare(a.AcsUser.AcsUserID[:], b.AcsUser.AcsUserID[:])
	})
	for _, row := range rows {
		r, err := tx.LockAcsUser(ctx, row.AcsUser.AcsUserID)
		// The user was deleted or moved to another identity meanwhile.
		if store.IsNoRows(err) || err == nil && !same(r.UserIdentityID, &from) {
			continue
		}
		if err == nil {
			err = tx.LinkAcsUser(ctx, dbsqlc.LinkAcsUserParams{AcsUserID: r.AcsUserID, UserIdentityID: &to})
		}
		if store.Violates(err, "acs_users_identity") {
			return &domain.Error{
				Kind: domain.Conflict,
				Type: "acs_user_already_exists",
				Data: map[string]any{"acs_user_id": r.AcsUserID, "acs_system_id": r.AcsSystemID},
				Message: "Two of the user identities have a user on one access system. " +
					"Delete one of the users, or remove it with /user_identities/remove_acs_user.",
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeIdentity moves everything except the users of an identity to the primary one, and deletes the identity.
func mergeIdentity(ctx context.Context, tx store.Tx, primary *dbsqlc.UserIdentity, other dbsqlc.UserIdentity) error {
	if err := tx.MergeUserIdentity(ctx, dbsqlc.MergeUserIdentityParams{
		UserIdentityID:       primary.UserIdentityID,
		WorkspaceID:          primary.WorkspaceID,
		MergedUserIdentityID: other.UserIdentityID,
	}); err != nil {
		return err
	}
	if err := tx.MoveSessionsToIdentity(ctx, dbsqlc.MoveSessionsToIdentityParams{
		UserIdentityID:       &primary.UserIdentityID,
		WorkspaceID:          primary.WorkspaceID,
		MergedUserIdentityID: &other.UserIdentityID,
	}); err != nil {
		return err
	}
	if primary.EmailAddress == nil {
		primary.EmailAddress = other.EmailAddress
	}
	if primary.PhoneNumber == nil {
		primary.PhoneNumber = other.PhoneNumber
	}
	return tx.DeleteUserIdentity(ctx,
		dbsqlc.DeleteUserIdentityParams{WorkspaceID: primary.WorkspaceID, UserIdentityID: other.UserIdentityID})
}

// checkKeyUnmerged fails with Conflict if the key names the primary identity of a merge. Call it after the key was
// written: the unique index makes the writer wait for a concurrent merge.
func checkKeyUnmerged(ctx context.Context, tx store.Tx, workspace uuid.UUID, key *string) error {
	if key == nil {
		return nil
	}
	m, err := tx.GetMergedIdentity(ctx, dbsqlc.GetMergedIdentityParams{WorkspaceID: workspace, UserIdentityKey: key})
	switch {
	case store.IsNoRows(err):
		return nil
	case err != nil:
		return err
	}
	return &domain.Error{
		Kind:    domain.Conflict,
		Type:    "user_identity_already_exists",
		Field:   "user_identity_key",
		Message: "A merged user identity has this user_identity_key. Choose another user_identity_key.",
		Data:    map[string]any{"user_identity_key": *key, "user_identity_id": m.UserIdentityID},
	}
}

// mergedInto returns the identities that were merged into each of the identities.
func mergedInto(
	ctx context.Context,
	q *dbsqlc.Queries,
	workspace uuid.UUID,
	ids []uuid.UUID,
) (map[uuid.UUID][]dbsqlc.MergedUserIdentity, error) {
	rows, err := q.ListMergedIdentities(ctx, dbsqlc.ListMergedIdentitiesParams{WorkspaceID: workspace, Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("list the merged user identities: %w", err)
	}
	into := map[uuid.UUID][]dbsqlc.MergedUserIdentity{}
	for _, r := range rows {
		into[r.UserIdentityID] = append(into[r.UserIdentityID], r)
	}
	return into, nil
}
