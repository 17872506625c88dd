package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// SessionPrefix is the prefix of the token of every client session.
const SessionPrefix = "seam_cst"

const clientSessionLifetime = 365 * 24 * time.Hour

// MaxSessionWebviews is the maximum number of open webviews that a client session creates, and of webviews in
// ClientSession.
const MaxSessionWebviews = 20

// ClientSession is the credential of an end user. Each request recomputes its scope, so a change of scope, a
// revocation, and a deletion apply immediately.
type ClientSession struct {
	ID                uuid.UUID
	WorkspaceID       uuid.UUID
	Token             string // stored sealed, because a later get_or_create returns it
	UserIdentifierKey *string
	UserIdentityID    *uuid.UUID
	CustomerKey       *string
	AccountIDs        []uuid.UUID // the accounts that it can see
	WebviewIDs        []uuid.UUID // the newest MaxSessionWebviews
	Devices           int         // the number of managed devices that it can see
	grantedDevices    []uuid.UUID // those that it can see without their accounts
	CreatedAt         time.Time
	ExpiresAt         time.Time
}

// NewClientSession is a request for a client session. Zero values are not set.
type NewClientSession struct {
	UserIdentifierKey string
	CustomerKey       string
	ScopeGrant
	ExpiresAt *time.Time
}

// IfTaken says how to handle a request for a session of an end user that already has one.
type IfTaken int

// Ways to handle an existing session.
const (
	RefuseIfTaken IfTaken = iota
	AnswerIfTaken         // return the existing session unchanged
	GrantIfTaken          // add the requested scope to the existing session
)

func sessionPlace(id uuid.UUID) string { return "client_sessions.token/" + id.String() }

// CreateClientSession creates a session for an end user, which has at most one. With a publishable key the
// session must name its end user and reaches nothing yet. It fails with TooMany where the workspace has the
// maximum of these.
//
// It fails with Forbidden (publishable_keys_must_create_empty_client_sessions), with NotFound for what it
// should reach, with Invalid for an expiry time in the past, and with Invalid
// (client_session_token_already_exists) where the end user has a session and taken is RefuseIfTaken.
func (s *Service) CreateClientSession(
	ctx context.Context,
	p domain.Principal,
	n NewClientSession,
	taken IfTaken,
) (c ClientSession, err error) {
	if p.Kind == domain.PublishableKey {
		if err := checkEmpty(n); err != nil {
			return c, err
		}
	}
	now := s.opt.Now()
	expires := now.Add(clientSessionLifetime)
	if n.ExpiresAt != nil {
		if expires = *n.ExpiresAt; !expires.After(now) {
			return c, domain.Invalidf("expires_at", "The expiry time is in the past. Choose a time in the future")
		}
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if n.UserIdentifierKey != "" {
			if err := tx.LockEndUser(
				ctx,
				dbsqlc.LockEndUserParams{WorkspaceID: p.WorkspaceID.String(), UserIdentifierKey: n.UserIdentifierKey},
			); err != nil {
				return err
			}
			r, err := tx.GetClientSessionOfEndUser(
				ctx,
				dbsqlc.GetClientSessionOfEndUserParams{
					WorkspaceID:       p.WorkspaceID,
					UserIdentifierKey: n.UserIdentifierKey,
				},
			)
			switch {
			case store.IsNoRows(err):
			case err != nil:
				return err
			case taken == RefuseIfTaken:
				return &domain.Error{
					Kind:  domain.Invalid,
					Type:  "client_session_token_already_exists",
					Field: "user_identifier_key",
					Data:  map[string]any{"client_session_id": r.ClientSessionID},
					Message: "This end user already has a client session. Get it with " +
						"/client_sessions/get_or_create, or delete it first.",
				}
			case taken == GrantIfTaken:
				c, err = s.grantAndRead(ctx, tx, r, n.ScopeGrant)
				return err
			default:
				c, err = s.readSession(ctx, tx, r)
				return err
			}
		}
		if known, err := s.sessionOfIdentity(ctx, tx, p, n, taken); err != nil || known != nil {
			if known != nil {
				c = *known
			}
			return err
		}
		if p.Kind == domain.PublishableKey {
			if err := s.roomForUnclaimed(ctx, tx, p.WorkspaceID); err != nil {
				return err
			}
		}
		id, token := domain.NewID(), SessionPrefix+"1"+base58(8)+"_"+base58(24)
		hash := sha256.Sum256([]byte(token))
		bound := boundSession{
			id:                id,
			workspace:         p.WorkspaceID,
			tokenHash:         hash[:],
			userIdentifierKey: domain.NonEmpty(n.UserIdentifierKey),
			customerKey:       domain.NonEmpty(n.CustomerKey),
			expiresAt:         expires,
		}
		if err := tx.InsertClientSession(ctx, dbsqlc.InsertClientSessionParams{
			ClientSessionID:   bound.id,
			WorkspaceID:       bound.workspace,
			TokenHash:         bound.tokenHash,
			TokenSealed:       s.keys.Seal(sessionPlace(id), []byte(token)),
			UserIdentifierKey: bound.userIdentifierKey,
			CustomerKey:       bound.customerKey,
			ExpiresAt:         bound.expiresAt,
			IsUnclaimed:       p.Kind == domain.PublishableKey,
			Mac:               s.keys.MAC(bound.hashed()),
		}); err != nil {
			return err
		}
		r, err := tx.GetClientSession(
			ctx,
			dbsqlc.GetClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: id},
		)
		if err != nil {
			return err
		}
		c, err = s.grantAndRead(ctx, tx, r, n.ScopeGrant)
		return err
	})
	return c, domain.Wrap(err, "create a client session")
}

// sessionOfIdentity returns the session of a user identity, or nil if the request must create one. It applies
// to requests without a user identifier key.
func (s *Service) sessionOfIdentity(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	n NewClientSession,
	taken IfTaken,
) (*ClientSession, error) {
	if taken == RefuseIfTaken || n.UserIdentifierKey != "" || len(n.UserIdentityIDs) == 0 {
		return nil, nil
	}
	id, err := uuid.Parse(n.UserIdentityIDs[0])
	if err != nil {
		return nil, nil //nolint:nilerr // grant reports it
	}
	if err := tx.LockEndUser(
		ctx,
		dbsqlc.LockEndUserParams{WorkspaceID: p.WorkspaceID.String(), UserIdentifierKey: "identity " + id.String()},
	); err != nil {
		return nil, err
	}
	r, err := tx.GetClientSessionOfIdentity(
		ctx,
		dbsqlc.GetClientSessionOfIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: id},
	)
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c ClientSession
	if taken == GrantIfTaken {
		c, err = s.grantAndRead(ctx, tx, r, n.ScopeGrant)
	} else {
		c, err = s.readSession(ctx, tx, r)
	}
	return &c, err
}

// checkEmpty fails where a publishable key, which is public, must not create such a session.
func checkEmpty(n NewClientSession) error {
	switch {
	case n.UserIdentifierKey == "":
		return domain.Invalidf("user_identifier_key", "Required")
	case !n.empty() || n.CustomerKey != "" || n.ExpiresAt != nil:
		return &domain.Error{
			Kind: domain.Forbidden,
			Type: "publishable_keys_must_create_empty_client_sessions",
			Message: "With a publishable key a client session takes only a user_identifier_key. Grant it " +
				"access with /client_sessions/grant_access and an API key.",
		}
	}
	return nil
}

// GetClientSession reads a session by its identifier or its end user. A calling session may leave out both, and
// sees only itself. It fails with Invalid if the request names neither or both, and with NotFound.
func (s *Service) GetClientSession(
	ctx context.Context,
	p domain.Principal,
	id, key string,
) (c ClientSession, err error) {
	if p.Kind == domain.EndUser && id+key == "" {
		id = p.CredentialID.String()
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := findSession(ctx, tx, p, id, key)
		if err != nil {
			return err
		}
		c, err = s.readSession(ctx, tx, r)
		return err
	})
	return c, domain.Wrap(err, "read a client session")
}

// findSession reads a session by its identifier or, if that is empty, the active session of an end user.
func findSession(
	ctx context.Context,
	tx store.Tx,
	p domain.Principal,
	id, key string,
) (r dbsqlc.ClientSession, err error) {
	if (id == "") == (key == "") {
		return r, domain.Invalidf("", "Must specify either client_session_id or user_identifier_key")
	}
	missing := SessionNotFound("user_identifier_key", key)
	if id != "" {
		missing = SessionNotFound("client_session_id", id)
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return r, missing
		}
		r, err = tx.GetClientSession(
			ctx,
			dbsqlc.GetClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed},
		)
	} else {
		r, err = tx.GetClientSessionOfEndUser(
			ctx,
			dbsqlc.GetClientSessionOfEndUserParams{WorkspaceID: p.WorkspaceID, UserIdentifierKey: key},
		)
	}
	if store.IsNoRows(err) || (err == nil && p.Kind == domain.EndUser && r.ClientSessionID != p.CredentialID) {
		return r, missing
	}
	return r, err
}

// SessionNotFound returns the error for a session that does not exist or is not visible.
func SessionNotFound(what, value string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "client_session_not_found",
		Message: "Could not find a client session with this " + what + ".",
		Data:    map[string]any{what: value},
	}
}

// SessionFilter is a set of conditions that must all hold. Zero values are no condition.
type SessionFilter struct {
	ID, UserIdentifierKey     string
	WebviewID, UserIdentityID string
	WithoutKey                bool
}

// ListClientSessions lists active sessions, oldest first, and reports whether more follow the page.
func (s *Service) ListClientSessions(
	ctx context.Context,
	p domain.Principal,
	f SessionFilter,
	page domain.Page,
) (out []ClientSession, more bool, err error) {
	arg := dbsqlc.ListClientSessionsParams{
		WorkspaceID:       p.WorkspaceID,
		UserIdentifierKey: domain.NonEmpty(f.UserIdentifierKey),
		WithoutKey:        f.WithoutKey,
		AfterAt:           page.After.At,
		AfterID:           page.After.ID,
		MaxRows:           page.Rows(),
	}
	for _, one := range []struct {
		text string
		to   **uuid.UUID
	}{{f.ID, &arg.ClientSessionID}, {f.WebviewID, &arg.ConnectWebviewID}, {f.UserIdentityID, &arg.UserIdentityID}} {
		if one.text == "" {
			continue
		}
		id, err := uuid.Parse(one.text)
		if err != nil {
			return nil, false, nil //nolint:nilerr // not an identifier, so it matches nothing
		}
		*one.to = &id
	}
	rows, err := s.db.UnpreparedQueries.ListClientSessions(ctx, arg)
	if err == nil {
		rows, more = domain.Cut(page, rows)
		out, err = s.readSessions(ctx, s.db.Queries, p.WorkspaceID, rows)
	}
	return out, more, domain.Wrap(err, "list the client sessions")
}

func (s *Service) readSession(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession) (ClientSession, error) {
	all, err := s.readSessions(ctx, tx.Queries, r.WorkspaceID, []dbsqlc.ClientSession{r})
	if err != nil {
		return ClientSession{}, err
	}
	return all[0], nil
}

// readSessions adds the current scope to sessions, and opens their tokens.
func (s *Service) readSessions(
	ctx context.Context,
	db *dbsqlc.Queries,
	workspace uuid.UUID,
	rows []dbsqlc.ClientSession,
) ([]ClientSession, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ClientSessionID
	}
	reached, err := db.GetClientSessionScopes(
		ctx,
		dbsqlc.GetClientSessionScopesParams{
			WorkspaceID:      workspace,
			ClientSessionIds: ids,
			MaxWebviews:      MaxSessionWebviews,
		},
	)
	if err != nil {
		return nil, err
	}
	reach := map[uuid.UUID]dbsqlc.GetClientSessionScopesRow{}
	for _, r := range reached {
		reach[r.ClientSessionID] = r
	}
	out := make([]ClientSession, len(rows))
	for i, r := range rows {
		if !s.keys.Match(r.Mac, s.keys.MAC(boundSessionOf(r).hashed())) {
			return nil, fmt.Errorf("client session %s was changed in the database: delete it", r.ClientSessionID)
		}
		token, err := s.keys.Open(sessionPlace(r.ClientSessionID), r.TokenSealed)
		if err != nil {
			return nil, fmt.Errorf("open the token of client session %s: %w", r.ClientSessionID, err)
		}
		has := reach[r.ClientSessionID]
		out[i] = ClientSession{
			ID:                r.ClientSessionID,
			WorkspaceID:       r.WorkspaceID,
			Token:             string(token),
			UserIdentifierKey: r.UserIdentifierKey,
			UserIdentityID:    r.UserIdentityID,
			CustomerKey:       r.CustomerKey,
			AccountIDs:        has.Accounts,
			WebviewIDs:        has.Webviews,
			Devices:           int(has.Devices),
			grantedDevices:    has.GrantedDevices,
			CreatedAt:         r.CreatedAt,
			ExpiresAt:         r.ExpiresAt,
		}
	}
	return out, nil
}
