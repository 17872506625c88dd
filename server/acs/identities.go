package acs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Identity is a person as the workspace's application knows them.
type Identity struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Key         *string // the application's own identifier
	Email       *string
	Phone       *string // E.164
	FullName    *string
	UserIDs     []uuid.UUID // the person's users on access systems
	MergedIDs   []uuid.UUID // identities that were merged into it
	MergedKeys  []string    // keys of those
	Errors      []Problem
	Warnings    []Problem
	CreatedAt   time.Time
}

// DisplayName returns the most readable name of the identity.
func (i Identity) DisplayName() string {
	return cmp.Or(text(i.FullName), text(i.Email), text(i.Phone), text(i.Key), i.ID.String())
}

// NewIdentity is the specification of a new identity. Empty fields stay unset.
type NewIdentity struct {
	Key, Email, Phone, FullName string
	SystemIDs                   []string // access systems on which the person gets a user
}

// CreateIdentity creates an identity. It fails with Conflict if another identity of the workspace
// has the key, email address, or phone number; with Invalid; and with NotFound for a system.
func (s *Service) CreateIdentity(ctx context.Context, p domain.Principal, n NewIdentity) (Identity, error) {
	if err := checkNumber(n.Phone); err != nil {
		return Identity{}, err
	}
	var out Identity
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := insertIdentity(ctx, tx, p.WorkspaceID, n)
		if err == nil {
			err = checkKeyUnmerged(ctx, tx, p.WorkspaceID, r.UserIdentityKey)
		}
		if err != nil {
			return err
		}
		if err := s.joinSystems(ctx, tx, r, n.SystemIDs); err != nil {
			return err
		}
		out, err = describeOne(ctx, tx.Queries, r)
		return err
	})
	return out, identityConflict(err, nonEmpty(n.Key), nonEmpty(n.Email), nonEmpty(n.Phone))
}

func insertIdentity(ctx context.Context, tx store.Tx, workspace uuid.UUID, n NewIdentity) (dbsqlc.UserIdentity, error) {
	return tx.InsertUserIdentity(ctx, dbsqlc.InsertUserIdentityParams{
		UserIdentityID:  domain.NewID(),
		WorkspaceID:     workspace,
		UserIdentityKey: nonEmpty(n.Key),
		EmailAddress:    nonEmpty(n.Email),
		PhoneNumber:     nonEmpty(n.Phone),
		FullName:        nonEmpty(n.FullName),
	})
}

// identityConflict converts the violation of a unique index to an error that says what to do.
func identityConflict(err error, key, email, phone *string) error {
	for _, unique := range []struct {
		index, field string
		value        *string
	}{
		{"user_identities_key", "user_identity_key", key},
		{"user_identities_email", "email_address", email},
		{"user_identities_phone", "phone_number", phone},
	} {
		if store.Violates(err, unique.index) {
			return &domain.Error{
				Kind:  domain.Conflict,
				Type:  "user_identity_already_exists",
				Field: unique.field,
				Message: fmt.Sprintf("Another user identity has this %s. Update that one, or choose another %[1]s.",
					unique.field),
				Data: map[string]any{unique.field: text(unique.value)},
			}
		}
	}
	if _, known := asError(err); err != nil && !known {
		return fmt.Errorf("write the user identity: %w", err)
	}
	return err
}

// GetIdentity returns an identity by its identifier or key. It fails with Invalid unless exactly
// one of them is set, and with NotFound.
func (s *Service) GetIdentity(ctx context.Context, p domain.Principal, id, key string) (Identity, error) {
	r, err := s.visibleIdentity(ctx, p, id, key)
	if err != nil {
		return Identity{}, err
	}
	return describeOne(ctx, s.db.Queries, r)
}

// visibleIdentity is findIdentity for a read: an end user sees only their own identity.
func (s *Service) visibleIdentity(
	ctx context.Context,
	p domain.Principal,
	id, key string,
) (r dbsqlc.UserIdentity, err error) {
	if r, err = findIdentity(ctx, s.db.Queries, p, id, key); err != nil || p.Kind != domain.EndUser {
		return r, err
	}
	own, err := s.db.IdentityOfSession(ctx, p.CredentialID)
	if err != nil && !store.IsNoRows(err) {
		return r, fmt.Errorf("read whose session it is: %w", err)
	}
	if !same(own, &r.UserIdentityID) {
		return r, noIdentity(id, key)
	}
	return r, nil
}

func findIdentity(
	ctx context.Context,
	q *dbsqlc.Queries,
	p domain.Principal,
	id, key string,
) (r dbsqlc.UserIdentity, err error) {
	if (id == "") == (key == "") {
		return r, domain.Invalidf("", "Must specify either user_identity_id or user_identity_key")
	}
	missing := noIdentity(id, key)
	if id != "" {
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return r, missing
		}
		r, err = q.GetUserIdentity(
			ctx,
			dbsqlc.GetUserIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: parsed},
		)
	} else {
		r, err = q.GetUserIdentityByKey(ctx, dbsqlc.GetUserIdentityByKeyParams{
			WorkspaceID:     p.WorkspaceID,
			UserIdentityKey: key,
		})
	}
	switch {
	case store.IsNoRows(err):
		return r, missing
	case err != nil:
		return r, fmt.Errorf("read the user identity: %w", err)
	}
	return r, nil
}

// noIdentity returns the NotFound error for an identity, named by the given identifier or key. It
// also hides identities that the caller may not see.
func noIdentity(id, key string) error {
	if id != "" {
		return notFound("user_identity", "user_identity_id", id)
	}
	return notFound("user_identity", "user_identity_key", key)
}

// NoUnmanagedIdentity returns the NotFound error for an unmanaged identity. There are none, because all identities are
// created with the API.
func NoUnmanagedIdentity(id string) error { return noIdentity(id, "") }

// holdIdentity prevents the deletion of an identity until tx ends. It fails with NotFound.
func holdIdentity(ctx context.Context, tx store.Tx, r dbsqlc.UserIdentity) error {
	_, err := tx.ShareLockUserIdentity(ctx, r.UserIdentityID)
	// The identity was deleted after it was found.
	if store.IsNoRows(err) {
		return notFound("user_identity", "user_identity_id", r.UserIdentityID)
	}
	return err
}

// IdentityFilter is a set of conditions that must all hold. Zero values match everything.
type IdentityFilter struct {
	CreatedBefore string
	IDs           *[]string // nil matches any
	Search        string    // in its name, number, address and identifier
	Nothing       bool      // true matches no identity
}

// ListIdentities lists identities, oldest first, and reports whether more follow the page. It fails
// with Invalid.
func (s *Service) ListIdentities(
	ctx context.Context,
	p domain.Principal,
	f IdentityFilter,
	page domain.Page,
) ([]Identity, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	arg := dbsqlc.FindUserIdentitiesParams{
		WorkspaceID: p.WorkspaceID,
		AfterAt:     page.After.At,
		AfterID:     page.After.ID,
		MaxRows:     page.Rows(),
		Pattern:     store.SearchPattern(f.Search),
		Ids:         identifiers(f.IDs),
	}
	if p.Kind == domain.EndUser {
		arg.Session = &p.CredentialID
	}
	var err error
	if arg.CreatedBefore, err = parseCreatedBefore(f.CreatedBefore); err != nil {
		return nil, false, err
	}
	rows, err := s.db.UnpreparedQueries.FindUserIdentities(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the user identities: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out, err := describe(ctx, s.db.Queries, p.WorkspaceID, rows)
	return out, more, err
}

// parseCreatedBefore parses the condition created_before.
func parseCreatedBefore(value string) (*time.Time, error) {
	if value == "" {
		return nil, nil
	}
	at, err := domain.ParseTime("created_before", value)
	return &at, err
}

// IdentityChange is a change of an identity.
type IdentityChange struct {
	Key, Email, Phone, FullName Change
}

// UpdateIdentity changes an identity. It fails with NotFound, and with Conflict like
// CreateIdentity.
func (s *Service) UpdateIdentity(ctx context.Context, p domain.Principal, id string, c IdentityChange) error {
	if err := checkNumber(text(c.Phone.To)); err != nil {
		return err
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return notFound("user_identity", "user_identity_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := tx.LockUserIdentity(ctx,
			dbsqlc.LockUserIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: parsed})
		if store.IsNoRows(err) {
			return notFound("user_identity", "user_identity_id", id)
		}
		if err != nil {
			return err
		}
		if err := tx.UpdateUserIdentity(ctx, dbsqlc.UpdateUserIdentityParams{
			UserIdentityID:  r.UserIdentityID,
			UserIdentityKey: c.Key.applyTo(r.UserIdentityKey),
			EmailAddress:    c.Email.applyTo(r.EmailAddress),
			PhoneNumber:     c.Phone.applyTo(r.PhoneNumber),
			FullName:        c.FullName.applyTo(r.FullName),
		}); err != nil {
			return err
		}
		return checkKeyUnmerged(ctx, tx, p.WorkspaceID, c.Key.To)
	})
	return identityConflict(err, c.Key.To, c.Email.To, c.Phone.To)
}

func describeOne(ctx context.Context, q *dbsqlc.Queries, r dbsqlc.UserIdentity) (Identity, error) {
	out, err := describe(ctx, q, r.WorkspaceID, []dbsqlc.UserIdentity{r})
	if err != nil {
		return Identity{}, err
	}
	return out[0], nil
}

// describe adds to identities what their users show: errors and warnings.
func describe(
	ctx context.Context,
	q *dbsqlc.Queries,
	workspace uuid.UUID,
	rows []dbsqlc.UserIdentity,
) ([]Identity, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.UserIdentityID
	}
	users, err := q.ListUsersOfIdentities(ctx, dbsqlc.ListUsersOfIdentitiesParams{WorkspaceID: workspace, Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("list the users of user identities: %w", err)
	}
	merged, err := mergedInto(ctx, q, workspace, ids)
	if err != nil {
		return nil, err
	}
	of := map[uuid.UUID][]dbsqlc.AcsUser{}
	for _, u := range users {
		of[*u.UserIdentityID] = append(of[*u.UserIdentityID], u)
	}
	out := make([]Identity, len(rows))
	for i, r := range rows {
		d := Identity{
			ID:          r.UserIdentityID,
			WorkspaceID: r.WorkspaceID,
			Key:         r.UserIdentityKey,
			Email:       r.EmailAddress,
			Phone:       r.PhoneNumber,
			FullName:    r.FullName,
			CreatedAt:   r.CreatedAt,
		}
		for _, m := range merged[r.UserIdentityID] {
			d.MergedIDs = append(d.MergedIDs, m.MergedUserIdentityID)
			if m.UserIdentityKey != nil {
				d.MergedKeys = append(d.MergedKeys, *m.UserIdentityKey)
			}
		}
		for _, u := range of[r.UserIdentityID] {
			d.addUser(r, u)
		}
		out[i] = d
	}
	return out, nil
}

// addUser adds a user of an identity, with its errors and warnings.
func (i *Identity) addUser(r dbsqlc.UserIdentity, u dbsqlc.AcsUser) {
	i.UserIDs = append(i.UserIDs, u.AcsUserID)
	if u.ErrorCode != nil {
		i.Errors = append(i.Errors, Problem{
			Code:     "issue_with_acs_user",
			Message:  text(u.ErrorMessage),
			At:       *u.ErrorAt,
			SystemID: u.AcsSystemID,
			UserID:   u.AcsUserID,
		})
	}
	if fields := mismatchedFields(r, u); len(fields) > 0 {
		i.Warnings = append(
			i.Warnings,
			Problem{
				Code: "acs_user_profile_does_not_match_user_identity", At: u.ChangedAt,
				Message: fmt.Sprintf(
					"The access system user %s has a different %s. Update the user or the identity.",
					u.AcsUserID, strings.Join(fields, ", ")),
			},
		)
	}
}

// mismatchedFields names the fields in which a user differs from its identity. Unset fields never
// differ.
func mismatchedFields(i dbsqlc.UserIdentity, u dbsqlc.AcsUser) (fields []string) {
	if i.FullName != nil && *i.FullName != u.FullName {
		fields = append(fields, "full_name")
	}
	if i.EmailAddress != nil && u.EmailAddress != nil && !strings.EqualFold(*i.EmailAddress, *u.EmailAddress) {
		fields = append(fields, "email_address")
	}
	if i.PhoneNumber != nil && u.PhoneNumber != nil && *i.PhoneNumber != *u.PhoneNumber {
		fields = append(fields, "phone_number")
	}
	return slices.Clip(fields)
}

// DeleteIdentity deletes an identity and its client sessions, deactivates its phones, and starts the
// deletion of its users from their systems. It fails with NotFound.
func (s *Service) DeleteIdentity(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return notFound("user_identity", "user_identity_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		_, err := tx.LockUserIdentityForDelete(ctx,
			dbsqlc.LockUserIdentityForDeleteParams{WorkspaceID: p.WorkspaceID, UserIdentityID: parsed})
		if store.IsNoRows(err) {
			return notFound("user_identity", "user_identity_id", id)
		}
		if err != nil {
			return err
		}
		if err := s.endUsersOf(ctx, tx, p.WorkspaceID, parsed); err != nil {
			return err
		}
		if err := s.auth.EndSessionsOf(ctx, tx, p.WorkspaceID, parsed); err != nil {
			return err
		}
		if err := s.phones.DeactivateOf(ctx, tx, p.WorkspaceID, parsed); err != nil {
			return err
		}
		return tx.DeleteUserIdentity(ctx,
			dbsqlc.DeleteUserIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: parsed})
	})
	if _, known := asError(err); err != nil && !known {
		return fmt.Errorf("delete the user identity %s: %w", id, err)
	}
	return err
}
