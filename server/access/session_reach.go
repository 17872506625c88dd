package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Reach is what a client session is to be given.
type Reach struct {
	AccountIDs, WebviewIDs []string
	UserIdentityIDs        []string
}

func (r Reach) empty() bool { return len(r.AccountIDs)+len(r.WebviewIDs)+len(r.UserIdentityIDs) == 0 }

// granted is the session once it has been given more.
func (s *Service) granted(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession, more Reach) (ClientSession, error) {
	if err := s.grant(ctx, tx, r, more); err != nil {
		return ClientSession{}, err
	}
	r, err := tx.GetClientSession(ctx, dbsqlc.GetClientSessionParams{WorkspaceID: r.WorkspaceID, ClientSessionID: r.ClientSessionID})
	if err != nil {
		return ClientSession{}, err
	}
	return s.readSession(ctx, tx, r)
}

// grant gives a session what it is to reach besides. It fails with NotFound for what the workspace does not have.
func (s *Service) grant(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession, more Reach) error {
	// The person first, as whoever deletes one does.
	if err := s.identify(ctx, tx, &r, more.UserIdentityIDs); err != nil {
		return err
	}
	if _, err := tx.LockClientSession(ctx, r.ClientSessionID); store.IsNoRows(err) {
		return sessionNotFound("client_session_id", r.ClientSessionID.String())
	} else if err != nil {
		return err
	}
	if r.UserIdentityID != nil {
		if err := tx.SetIdentityOfClientSession(ctx, dbsqlc.SetIdentityOfClientSessionParams{ClientSessionID: r.ClientSessionID, UserIdentityID: r.UserIdentityID}); err != nil {
			return err
		}
	}
	accounts, err := tx.AccountsOfWorkspace(ctx, dbsqlc.AccountsOfWorkspaceParams{WorkspaceID: r.WorkspaceID, Accounts: parseIDs(&more.AccountIDs)})
	if err != nil {
		return err
	}
	if missing := firstMissing(more.AccountIDs, accounts); missing != "" {
		return accountNotFound("connected_account_id", missing)
	}
	webviews, err := tx.WebviewsOfWorkspace(ctx, dbsqlc.WebviewsOfWorkspaceParams{WorkspaceID: r.WorkspaceID, Webviews: parseIDs(&more.WebviewIDs)})
	if err != nil {
		return err
	}
	if missing := firstMissing(more.WebviewIDs, webviews); missing != "" {
		return webviewNotFound(missing)
	}
	if err := tx.GrantWebviewsToClientSession(ctx, dbsqlc.GrantWebviewsToClientSessionParams{ClientSessionID: r.ClientSessionID, Webviews: webviews}); err != nil {
		return err
	}
	if err := tx.KeepWebviewsOfIdentity(ctx, r.ClientSessionID); err != nil {
		return err
	}
	return tx.GrantAccountsToClientSession(ctx, dbsqlc.GrantAccountsToClientSessionParams{ClientSessionID: r.ClientSessionID, Accounts: accounts})
}

// identify says whose a session is to be. It fails with NotFound for the user identity, which stays until the
// transaction ends, and with Invalid where the session is another's already.
func (s *Service) identify(ctx context.Context, tx store.Tx, r *dbsqlc.ClientSession, identities []string) error {
	for _, text := range identities {
		missing := &Error{Kind: NotFound, Type: "user_identity_not_found", Message: "Could not find a user identity with this user_identity_id.", Data: map[string]any{"user_identity_id": text}}
		id, err := uuid.Parse(text)
		if err != nil {
			return missing
		}
		_, err = tx.HoldUserIdentity(ctx, dbsqlc.HoldUserIdentityParams{WorkspaceID: r.WorkspaceID, UserIdentityID: id})
		switch {
		case store.IsNoRows(err):
			return missing
		case err != nil:
			return err
		case r.UserIdentityID != nil && *r.UserIdentityID != id:
			return invalid("user_identity_id", "The client session is of another user identity. Create one for this user identity")
		}
		r.UserIdentityID = &id
	}
	return nil
}

// firstMissing is the first of the texts that is none of the identifiers; empty: all are.
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

// GrantAccess has a session, named by its identifier or its end user, reach more from now on.
// It fails with Invalid unless exactly one is given, or where nothing is to be granted, and with NotFound.
func (s *Service) GrantAccess(ctx context.Context, p Principal, id, key string, more Reach) (c ClientSession, err error) {
	if more.empty() {
		return c, invalid("", "Must specify at least one of connected_account_ids, connect_webview_ids or user_identity_id")
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := findSession(ctx, tx, p, id, key)
		if err != nil {
			return err
		}
		c, err = s.granted(ctx, tx, r, more)
		return err
	})
	return c, named(err, "grant access to a client session")
}

// authenticateSession finds out what the session of a token may do. It fails with Unauthorized.
func (s *Service) authenticateSession(ctx context.Context, hash []byte, workspace *uuid.UUID) (Principal, error) {
	r, err := s.db.AuthenticateClientSession(ctx, hash)
	refuse := func(kind, message string) (Principal, error) {
		return Principal{}, &Error{Kind: Unauthorized, Type: kind, Message: message}
	}
	switch {
	case store.IsNoRows(err):
		return refuse("client_session_not_found", "There is no client session with this token; it may have been deleted.")
	case err != nil:
		return Principal{}, fmt.Errorf("look up the client session: %w", err)
	case r.Revoked:
		return refuse("client_session_revoked", "This client session was revoked. Ask for a new one.")
	case r.Expired:
		return refuse("client_session_expired", "This client session is over. Ask for a new one.")
	case workspace != nil && *workspace != r.WorkspaceID:
		return Principal{}, unknownWorkspace()
	}
	p := Principal{WorkspaceID: r.WorkspaceID, CredentialID: r.ClientSessionID, Kind: EndUser, Suspended: r.IsSuspended, Reach: r.Accounts, Customer: text(r.CustomerKey)}
	if p.Reach == nil {
		p.Reach = []uuid.UUID{} // nil would be everything
	}
	return p, nil
}

// AsSeenBy is the principal with no more in reach than the session of an end user has; an empty key changes nothing. To a
// session all others are absent, as those are that never were: whose key is a secret must not be found by trying.
func (s *Service) AsSeenBy(ctx context.Context, p Principal, key string) (Principal, error) {
	if key == "" {
		return p, nil
	}
	c, err := s.GetClientSession(ctx, p, "", key)
	if e, ok := asError(err); ok && e.Kind == NotFound {
		err = nil
	}
	reach := slices.DeleteFunc(c.AccountIDs, func(id uuid.UUID) bool { return !p.reaches(id) })
	if p.Reach = reach; reach == nil {
		p.Reach = []uuid.UUID{}
	}
	return p, err
}
