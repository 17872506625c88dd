package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// SessionPrefix is what the token of every client session begins with.
const SessionPrefix = "seam_cst"

const clientSessionLifetime = 365 * 24 * time.Hour

// ClientSession is the credential of an end user. What it reaches is decided anew at each request, so that a change of
// it, its revocation and its deletion count at once.
type ClientSession struct {
	ID                uuid.UUID
	WorkspaceID       uuid.UUID
	Token             string // kept sealed, because whoever asks for a session that is there needs it
	UserIdentifierKey *string
	UserIdentityID    *uuid.UUID
	CustomerKey       *string
	AccountIDs        []uuid.UUID // that it reaches, in whichever way
	WebviewIDs        []uuid.UUID
	Devices           int // that it reaches and that are managed
	CreatedAt         time.Time
	ExpiresAt         time.Time
}

// NewClientSession asks for a client session. Zero values are not given.
type NewClientSession struct {
	UserIdentifierKey string
	CustomerKey       string
	Reach
	ExpiresAt *time.Time
}

// IfTaken says what becomes of the request for a session of an end user who has one.
type IfTaken int

const (
	RefuseIfTaken IfTaken = iota
	AnswerIfTaken         // with the one that is there, as it is
	GrantIfTaken          // the one that is there reaches what is asked for besides
)

func sessionPlace(id uuid.UUID) string { return "client_sessions.token/" + id.String() }

// CreateClientSession makes a session for an end user, who has one at a time.
// With a publishable key it is one that reaches nothing yet, and names its end user; it fails with TooMany where there are as many
// of these as there may be.
// It fails with Forbidden (publishable_keys_must_create_empty_client_sessions); with NotFound for what it is to reach; with Invalid where its end is past, and
// (client_session_token_already_exists) where the end user has one and taken does not say what to do then.
func (s *Service) CreateClientSession(ctx context.Context, p Principal, n NewClientSession, taken IfTaken) (c ClientSession, err error) {
	if p.Kind == PublishableKey {
		if err := checkEmpty(n); err != nil {
			return c, err
		}
	}
	now := s.opt.Now()
	expires := now.Add(clientSessionLifetime)
	if n.ExpiresAt != nil {
		if expires = *n.ExpiresAt; !expires.After(now) {
			return c, invalid("expires_at", "The end of a client session lies in the future")
		}
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if n.UserIdentifierKey != "" {
			if err := tx.LockEndUser(ctx, dbsqlc.LockEndUserParams{WorkspaceID: p.WorkspaceID.String(), UserIdentifierKey: n.UserIdentifierKey}); err != nil {
				return err
			}
			r, err := tx.GetClientSessionOfEndUser(ctx, dbsqlc.GetClientSessionOfEndUserParams{WorkspaceID: p.WorkspaceID, UserIdentifierKey: n.UserIdentifierKey})
			switch {
			case store.IsNoRows(err):
			case err != nil:
				return err
			case taken == RefuseIfTaken:
				return &Error{Kind: Invalid, Type: "client_session_token_already_exists", Field: "user_identifier_key", Data: map[string]any{"client_session_id": r.ClientSessionID},
					Message: "This end user has a client session already. Ask for it with /client_sessions/get_or_create, or delete it first."}
			case taken == GrantIfTaken:
				c, err = s.granted(ctx, tx, r, n.Reach)
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
		if p.Kind == PublishableKey {
			if err := s.roomForUnclaimed(ctx, tx, p.WorkspaceID); err != nil {
				return err
			}
		}
		id, token := newID(), SessionPrefix+"1"+base58(8)+"_"+base58(24)
		hash := sha256.Sum256([]byte(token))
		if err := tx.InsertClientSession(ctx, dbsqlc.InsertClientSessionParams{ClientSessionID: id, WorkspaceID: p.WorkspaceID, TokenHash: hash[:],
			TokenSealed: s.keys.Seal(sessionPlace(id), []byte(token)), UserIdentifierKey: nonEmpty(n.UserIdentifierKey), CustomerKey: nonEmpty(n.CustomerKey),
			ExpiresAt: expires, IsUnclaimed: p.Kind == PublishableKey}); err != nil {
			return err
		}
		r, err := tx.GetClientSession(ctx, dbsqlc.GetClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: id})
		if err != nil {
			return err
		}
		c, err = s.granted(ctx, tx, r, n.Reach)
		return err
	})
	return c, named(err, "create a client session")
}

// sessionOfIdentity is the session that a person has who is known by a user identity alone, where that will do.
func (s *Service) sessionOfIdentity(ctx context.Context, tx store.Tx, p Principal, n NewClientSession, taken IfTaken) (*ClientSession, error) {
	if taken == RefuseIfTaken || n.UserIdentifierKey != "" || len(n.UserIdentityIDs) == 0 {
		return nil, nil
	}
	id, err := uuid.Parse(n.UserIdentityIDs[0])
	if err != nil {
		return nil, nil //nolint:nilerr // grant says it
	}
	if err := tx.LockEndUser(ctx, dbsqlc.LockEndUserParams{WorkspaceID: p.WorkspaceID.String(), UserIdentifierKey: "identity " + id.String()}); err != nil {
		return nil, err
	}
	r, err := tx.GetClientSessionOfIdentity(ctx, dbsqlc.GetClientSessionOfIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: id})
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c ClientSession
	if taken == GrantIfTaken {
		c, err = s.granted(ctx, tx, r, n.Reach)
	} else {
		c, err = s.readSession(ctx, tx, r)
	}
	return &c, err
}

// checkEmpty says why everybody must not have such a session.
func checkEmpty(n NewClientSession) error {
	switch {
	case n.UserIdentifierKey == "":
		return invalid("user_identifier_key", "Required")
	case !n.empty() || n.CustomerKey != "" || n.ExpiresAt != nil:
		return &Error{Kind: Forbidden, Type: "publishable_keys_must_create_empty_client_sessions",
			Message: "With a publishable key a client session is given nothing but its user_identifier_key. Grant it access with /client_sessions/grant_access and an API key."}
	}
	return nil
}

// GetClientSession reads a session by its identifier or its end user; a session that asks may leave out both, and sees
// itself alone. It fails with Invalid unless it is told which, and with NotFound.
func (s *Service) GetClientSession(ctx context.Context, p Principal, id, key string) (c ClientSession, err error) {
	if p.Kind == EndUser && id+key == "" {
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
	return c, named(err, "read a client session")
}

// findSession reads a session by its identifier or, if that is empty, the one of an end user that is good.
func findSession(ctx context.Context, tx store.Tx, p Principal, id, key string) (r dbsqlc.ClientSession, err error) {
	if (id == "") == (key == "") {
		return r, invalid("", "Must specify either client_session_id or user_identifier_key")
	}
	missing := sessionNotFound("user_identifier_key", key)
	if id != "" {
		missing = sessionNotFound("client_session_id", id)
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return r, missing
		}
		r, err = tx.GetClientSession(ctx, dbsqlc.GetClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed})
	} else {
		r, err = tx.GetClientSessionOfEndUser(ctx, dbsqlc.GetClientSessionOfEndUserParams{WorkspaceID: p.WorkspaceID, UserIdentifierKey: key})
	}
	if store.IsNoRows(err) || (err == nil && p.Kind == EndUser && r.ClientSessionID != p.CredentialID) {
		return r, missing
	}
	return r, err
}

func sessionNotFound(what, value string) *Error {
	return &Error{Kind: NotFound, Type: "client_session_not_found", Message: "Could not find a client session with this " + what + ".", Data: map[string]any{what: value}}
}

// SessionFilter is a set of conditions that must all hold; zero ones are none.
type SessionFilter struct {
	ID, UserIdentifierKey     string
	WebviewID, UserIdentityID string
	WithoutKey                bool
}

// ListClientSessions lists the sessions that are good, oldest first, and says whether more follow the page.
func (s *Service) ListClientSessions(ctx context.Context, p Principal, f SessionFilter, page Page) (out []ClientSession, more bool, err error) {
	arg := dbsqlc.ListClientSessionsParams{WorkspaceID: p.WorkspaceID, UserIdentifierKey: nonEmpty(f.UserIdentifierKey), WithoutKey: f.WithoutKey,
		AfterAt: page.After.At, AfterID: page.After.ID, MaxRows: page.rows()}
	for _, one := range []struct {
		text string
		to   **uuid.UUID
	}{{f.ID, &arg.ClientSessionID}, {f.WebviewID, &arg.ConnectWebviewID}, {f.UserIdentityID, &arg.UserIdentityID}} {
		if one.text == "" {
			continue
		}
		id, err := uuid.Parse(one.text)
		if err != nil {
			return nil, false, nil //nolint:nilerr // what is no identifier names nothing
		}
		*one.to = &id
	}
	rows, err := s.db.PlannedAnew.ListClientSessions(ctx, arg)
	if err == nil {
		rows, more = cut(page, rows)
		out, err = s.readSessions(ctx, s.db.Queries, p.WorkspaceID, rows)
	}
	return out, more, named(err, "list the client sessions")
}

func (s *Service) readSession(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession) (ClientSession, error) {
	all, err := s.readSessions(ctx, tx.Queries, r.WorkspaceID, []dbsqlc.ClientSession{r})
	if err != nil {
		return ClientSession{}, err
	}
	return all[0], nil
}

// readSessions adds to sessions what they reach at the moment, and opens their tokens.
func (s *Service) readSessions(ctx context.Context, db *dbsqlc.Queries, workspace uuid.UUID, rows []dbsqlc.ClientSession) ([]ClientSession, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ClientSessionID
	}
	reached, err := db.ReachOfClientSessions(ctx, dbsqlc.ReachOfClientSessionsParams{WorkspaceID: workspace, ClientSessionIds: ids})
	if err != nil {
		return nil, err
	}
	reach := map[uuid.UUID]dbsqlc.ReachOfClientSessionsRow{}
	for _, r := range reached {
		reach[r.ClientSessionID] = r
	}
	out := make([]ClientSession, len(rows))
	for i, r := range rows {
		token, err := s.keys.Open(sessionPlace(r.ClientSessionID), r.TokenSealed)
		if err != nil {
			return nil, fmt.Errorf("open the token of client session %s: %w", r.ClientSessionID, err)
		}
		has := reach[r.ClientSessionID]
		out[i] = ClientSession{ID: r.ClientSessionID, WorkspaceID: r.WorkspaceID, Token: string(token), UserIdentifierKey: r.UserIdentifierKey,
			UserIdentityID: r.UserIdentityID, CustomerKey: r.CustomerKey, AccountIDs: has.Accounts, WebviewIDs: has.Webviews, Devices: int(has.Devices),
			CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
	}
	return out, nil
}

// named says what was being done when something inside has failed; what the caller is told stays as it is.
func named(err error, doing string) error {
	if _, ok := asError(err); err != nil && !ok {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return err
}
