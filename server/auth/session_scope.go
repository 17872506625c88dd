package auth

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ScopeGrant is the scope to add to a client session.
type ScopeGrant struct {
	AccountIDs, WebviewIDs []string
	UserIdentityIDs        []string
}

func (r ScopeGrant) empty() bool {
	return len(r.AccountIDs)+len(r.WebviewIDs)+len(r.UserIdentityIDs) == 0
}

// grantAndRead adds to the scope of a session and returns the session.
func (s *Service) grantAndRead(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.ClientSession,
	more ScopeGrant,
) (ClientSession, error) {
	if err := s.grant(ctx, tx, r, more); err != nil {
		return ClientSession{}, err
	}
	r, err := tx.GetClientSession(
		ctx,
		dbsqlc.GetClientSessionParams{WorkspaceID: r.WorkspaceID, ClientSessionID: r.ClientSessionID},
	)
	if err != nil {
		return ClientSession{}, err
	}
	return s.readSession(ctx, tx, r)
}

// grant adds to the scope of a session. It fails with NotFound for what the workspace does not have.
func (s *Service) grant(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession, more ScopeGrant) error {
	// Lock order: the user identity first, as its deletion does.
	if err := s.setIdentity(ctx, tx, &r, more.UserIdentityIDs); err != nil {
		return err
	}
	if _, err := tx.LockClientSession(ctx, r.ClientSessionID); store.IsNoRows(err) {
		return SessionNotFound("client_session_id", r.ClientSessionID.String())
	} else if err != nil {
		return err
	}
	if r.UserIdentityID != nil {
		if err := tx.SetIdentityOfClientSession(
			ctx,
			dbsqlc.SetIdentityOfClientSessionParams{
				ClientSessionID: r.ClientSessionID,
				UserIdentityID:  r.UserIdentityID,
			},
		); err != nil {
			return err
		}
	}
	accounts, err := tx.AccountsOfWorkspace(
		ctx,
		dbsqlc.AccountsOfWorkspaceParams{WorkspaceID: r.WorkspaceID, Accounts: domain.ParseIDs(&more.AccountIDs)},
	)
	if err != nil {
		return err
	}
	if missing := firstMissing(more.AccountIDs, accounts); missing != "" {
		return domain.AccountNotFound("connected_account_id", missing)
	}
	webviews, err := tx.WebviewsOfWorkspace(
		ctx,
		dbsqlc.WebviewsOfWorkspaceParams{WorkspaceID: r.WorkspaceID, Webviews: domain.ParseIDs(&more.WebviewIDs)},
	)
	if err != nil {
		return err
	}
	if missing := firstMissing(more.WebviewIDs, webviews); missing != "" {
		return domain.WebviewNotFound(missing)
	}
	if err := tx.GrantWebviewsToClientSession(
		ctx,
		dbsqlc.GrantWebviewsToClientSessionParams{ClientSessionID: r.ClientSessionID, Webviews: webviews},
	); err != nil {
		return err
	}
	if err := tx.KeepWebviewsOfIdentity(ctx, r.ClientSessionID); err != nil {
		return err
	}
	return tx.GrantAccountsToClientSession(
		ctx,
		dbsqlc.GrantAccountsToClientSessionParams{ClientSessionID: r.ClientSessionID, Accounts: accounts},
	)
}

// setIdentity sets the user identity of a session, and locks that identity until the transaction ends. It fails
// with NotFound for the user identity, and with Invalid where the session belongs to another one.
func (s *Service) setIdentity(ctx context.Context, tx store.Tx, r *dbsqlc.ClientSession, identities []string) error {
	for _, text := range identities {
		missing := &domain.Error{
			Kind:    domain.NotFound,
			Type:    "user_identity_not_found",
			Message: "Could not find a user identity with this user_identity_id.",
			Data:    map[string]any{"user_identity_id": text},
		}
		id, err := uuid.Parse(text)
		if err != nil {
			return missing
		}
		held, err := tx.HoldUserIdentity(
			ctx,
			dbsqlc.HoldUserIdentityParams{WorkspaceID: r.WorkspaceID, UserIdentityID: id},
		)
		switch {
		case store.IsNoRows(err):
			return missing
		case err != nil:
			return err
		case r.UserIdentityID != nil && *r.UserIdentityID != held:
			return domain.Invalidf(
				"user_identity_id",
				"The client session belongs to another user identity. Create one for this user identity",
			)
		}
		r.UserIdentityID = &held // id may be that of a merged identity
	}
	return nil
}

// firstMissing returns the first text that is none of the identifiers, or "".
func firstMissing(texts []string, ids []uuid.UUID) string {
	there := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	for _, text := range texts {
		if id, err := uuid.Parse(text); err != nil || !there[id] {
			return text
		}
	}
	return ""
}

// GrantAccess adds to the scope of a session, named by its identifier or its end user. It fails with Invalid
// unless exactly one is given, or for an empty grant, and with NotFound.
func (s *Service) GrantAccess(
	ctx context.Context,
	p domain.Principal,
	id, key string,
	more ScopeGrant,
) (c ClientSession, err error) {
	if more.empty() {
		return c, domain.Invalidf(
			"",
			"Must specify at least one of connected_account_ids, connect_webview_ids or user_identity_id",
		)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := findSession(ctx, tx, p, id, key)
		if err != nil {
			return err
		}
		c, err = s.grantAndRead(ctx, tx, r, more)
		return err
	})
	return c, domain.Wrap(err, "grant access to a client session")
}

// authenticateSession returns the principal of a session. It fails with Unauthorized.
func (s *Service) authenticateSession(
	ctx context.Context,
	hash []byte,
	workspace *uuid.UUID,
) (domain.Principal, error) {
	r, err := s.db.AuthenticateClientSession(ctx, hash)
	refuse := func(kind, message string) (domain.Principal, error) {
		return domain.Principal{}, &domain.Error{Kind: domain.Unauthorized, Type: kind, Message: message}
	}
	unknown := func() (domain.Principal, error) {
		return refuse(
			"client_session_not_found",
			"There is no client session with this token; it may have been deleted.",
		)
	}
	switch {
	case store.IsNoRows(err):
		return unknown()
	case err != nil:
		return domain.Principal{}, fmt.Errorf("look up the client session: %w", err)
	// An ended session is refused in any case, so that its holder learns why.
	case r.Revoked:
		return refuse("client_session_revoked", "This client session was revoked. Ask for a new one.")
	case r.Expired:
		return refuse("client_session_expired", "This client session has expired. Ask for a new one.")
	case !s.keys.Match(r.Mac, s.keys.MAC(boundSession{
		id:                r.ClientSessionID,
		workspace:         r.WorkspaceID,
		tokenHash:         hash,
		userIdentifierKey: r.UserIdentifierKey,
		customerKey:       r.CustomerKey,
		expiresAt:         r.ExpiresAt,
	}.hashed())):
		return unknown()
	case workspace != nil && *workspace != r.WorkspaceID:
		return domain.Principal{}, unknownWorkspace()
	}
	p := domain.Principal{
		WorkspaceID:  r.WorkspaceID,
		CredentialID: r.ClientSessionID,
		Kind:         domain.EndUser,
		Suspended:    r.IsSuspended,
		Scope:        r.Scope,
		Customer:     domain.Value(r.CustomerKey),
		Unclaimed:    r.IsUnclaimed && len(r.Scope) == 0,
	}
	if p.Scope == nil {
		p.Scope = []uuid.UUID{} // nil would mean all accounts
	}
	return p, nil
}

// AsSeenBy returns the principal with its scope reduced to that of an end user's session. An empty key changes
// nothing. An unknown key gives an empty scope, so that a caller cannot discover keys by trying.
func (s *Service) AsSeenBy(ctx context.Context, p domain.Principal, key string) (domain.Principal, error) {
	if key == "" {
		return p, nil
	}
	c, err := s.GetClientSession(ctx, p, "", key)
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		err = nil
	}
	reach := slices.DeleteFunc(slices.Concat(c.AccountIDs, c.grantedDevices),
		func(id uuid.UUID) bool { return !p.CanSee(id) })
	if p.Scope = reach; reach == nil {
		p.Scope = []uuid.UUID{}
	}
	return p, err
}
