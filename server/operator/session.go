package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Lifetimes of a session.
const (
	IdleTimeout     = 12 * time.Hour     // without a request
	SessionLifetime = 7 * 24 * time.Hour // altogether
)

// seenInterval is how often the use of a session is recorded.
const seenInterval = time.Minute

// Ways to sign in.
const (
	ByPassword = "password"
	ByPasskey  = "passkey"
	ByOIDC     = "oidc"
	ByLink     = "link" // a one-time link
)

// Session is a browser in which an operator is signed in.
type Session struct {
	ID         uuid.UUID
	Operator   Operator
	Method     string // password, passkey, oidc, or link
	CreatedAt  time.Time
	SeenAt     time.Time // accurate to a minute
	SignedInAt time.Time // when the operator last proved who it is
	ExpiresAt  time.Time
	Agent      string // of the browser
	Address    string
	CSRF       string // the token of forms; only in the answers of Service.Session and FindSession
}

func toSession(r dbsqlc.OperatorSession, o Operator) Session {
	return Session{
		ID:         r.OperatorSessionID,
		Operator:   o,
		Method:     r.Method,
		CreatedAt:  r.CreatedAt,
		SeenAt:     r.SeenAt,
		SignedInAt: r.SignedInAt,
		ExpiresAt:  r.ExpiresAt,
		Agent:      r.Agent,
		Address:    r.Address,
	}
}

// maxAgent is the maximum length of a stored User-Agent header in bytes.
const maxAgent = 300

// signIn is a proof of who an operator is.
type signIn struct {
	operator record // as it was checked
	method   string
	// at is when the operator proved who it is; zero: now.
	at     time.Time
	client Client
}

// startSession creates a session in a transaction. It fails with Unauthorized if the operator was changed meanwhile.
func (s *Service) startSession(ctx context.Context, tx store.Tx, in signIn) (string, error) {
	now, err := tx.LockOperator(ctx, in.operator.row.OperatorID)
	if store.IsNoRows(err) || err == nil && !s.keys.Match(now.Mac, in.operator.row.Mac) {
		return "", signInExpired()
	}
	if err != nil {
		return "", err
	}
	at := s.opt.Now()
	if in.at.IsZero() || in.at.After(at) {
		in.at = at
	}
	token, hash := newToken()
	row := dbsqlc.OperatorSession{
		OperatorSessionID: domain.NewID(),
		OperatorID:        in.operator.row.OperatorID,
		TokenHash:         hash,
		Method:            in.method,
		Agent:             domain.CleanName(in.client.Agent[:min(len(in.client.Agent), maxAgent)]),
		Address:           domain.Storable(in.client.Address),
		CreatedAt:         at,
		SeenAt:            at,
		SignedInAt:        in.at,
		ExpiresAt:         at.Add(SessionLifetime),
	}
	if err := tx.InsertOperatorSession(ctx, dbsqlc.InsertOperatorSessionParams{
		OperatorSessionID: row.OperatorSessionID,
		OperatorID:        row.OperatorID,
		TokenHash:         row.TokenHash,
		Method:            row.Method,
		Agent:             row.Agent,
		Address:           row.Address,
		CreatedAt:         row.CreatedAt,
		SeenAt:            row.SeenAt,
		SignedInAt:        row.SignedInAt,
		ExpiresAt:         row.ExpiresAt,
		Mac:               s.keys.MAC(hashedSession(row)),
	}); err != nil {
		return "", err
	}
	return token, tx.RecordSignIn(ctx, dbsqlc.RecordSignInParams{OperatorID: row.OperatorID, SignedInAt: at})
}

// Session returns the session of a token, and records that it is used, at most once a minute. It fails with
// Unauthorized for an unknown, ended, or expired session, and for a disabled operator.
func (s *Service) Session(ctx context.Context, token string) (Session, error) {
	ctx = audit.Unasked(ctx)
	row, o, err := s.openSession(ctx, token)
	if err != nil {
		return Session{}, err
	}
	if now := s.opt.Now(); now.Sub(row.SeenAt) >= seenInterval {
		row.SeenAt = now
		// A database that accepts no writes does not reject the request here.
		if err := s.saveSession(ctx, s.db.Queries, row); err != nil && ctx.Err() != nil {
			return Session{}, fmt.Errorf("record the use of the session: %w", err)
		}
	}
	return withCSRF(toSession(row, o), token), nil
}

// FindSession is Session without a record of the use: it does not extend the session.
func (s *Service) FindSession(ctx context.Context, token string) (Session, error) {
	row, o, err := s.openSession(audit.Unasked(ctx), token)
	if err != nil {
		return Session{}, err
	}
	return withCSRF(toSession(row, o), token), nil
}

func withCSRF(session Session, token string) Session {
	session.CSRF = deriveToken(token, "csrf")
	return session
}

// openSession reads the session of a token. It fails as Session does.
func (s *Service) openSession(ctx context.Context, token string) (dbsqlc.OperatorSession, Operator, error) {
	fail := func(err error) (dbsqlc.OperatorSession, Operator, error) {
		return dbsqlc.OperatorSession{}, Operator{}, err
	}
	refused := unauthorized("session_not_found", "You are signed out. Sign in again.")
	r, err := s.db.FindOperatorSession(ctx, hashToken(token))
	if store.IsNoRows(err) {
		return fail(refused)
	}
	if err != nil {
		return fail(fmt.Errorf("look up the session: %w", err))
	}
	if !s.keys.Match(r.OperatorSession.Mac, s.keys.MAC(hashedSession(r.OperatorSession))) {
		return fail(refused)
	}
	o, err := s.openRecord(r.Operator, r.Passkeys)
	if err != nil {
		s.opt.Log.Warn("refused a session", "error", err)
		return fail(refused)
	}
	if o.row.DisabledAt != nil || s.expired(r.OperatorSession, s.opt.Now()) {
		return fail(refused)
	}
	return r.OperatorSession, o.operator(), nil
}

func (s *Service) expired(r dbsqlc.OperatorSession, now time.Time) bool {
	return !now.Before(r.ExpiresAt) || now.Sub(r.SeenAt) >= IdleTimeout
}

// saveSession stores when a session was used and when its operator signed in.
func (s *Service) saveSession(ctx context.Context, q *dbsqlc.Queries, r dbsqlc.OperatorSession) error {
	return q.UpdateOperatorSession(ctx, dbsqlc.UpdateOperatorSessionParams{
		OperatorSessionID: r.OperatorSessionID,
		TokenHash:         r.TokenHash,
		SeenAt:            r.SeenAt,
		SignedInAt:        r.SignedInAt,
		Mac:               s.keys.MAC(hashedSession(r)),
	})
}

// Principal returns the principal of a session in a workspace. uuid.Nil stands for the whole installation. It returns
// false if the operator has no role there. The caller checks whether the workspace is suspended.
func (s *Service) Principal(session Session, workspace uuid.UUID) (domain.Principal, bool) {
	role := session.Operator.RoleIn(workspace)
	return domain.Principal{
		WorkspaceID:  workspace,
		CredentialID: session.Operator.ID,
		Kind:         domain.OperatorAccount,
		Name:         session.Operator.Email,
		Role:         role,
	}, role != ""
}

// ListSessions lists the sessions of an operator that are valid, newest first. It fails with NotFound.
func (s *Service) ListSessions(ctx context.Context, operatorID uuid.UUID) ([]Session, error) {
	row, err := s.db.GetOperator(ctx, operatorID)
	if store.IsNoRows(err) {
		return nil, operatorNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read the operator %s: %w", operatorID, err)
	}
	rows, err := s.db.ListOperatorSessions(ctx, operatorID)
	if err != nil {
		return nil, fmt.Errorf("list the sessions of operator %s: %w", operatorID, err)
	}
	out := []Session{}
	for _, r := range rows {
		if !s.expired(r, s.opt.Now()) && s.keys.Match(r.Mac, s.keys.MAC(hashedSession(r))) {
			out = append(out, toSession(r, unchecked(row.Operator, row.Passkeys)))
		}
	}
	return out, nil
}

// EndSession ends a session of an operator. It fails with NotFound.
func (s *Service) EndSession(ctx context.Context, operatorID, sessionID uuid.UUID) error {
	n, err := s.db.DeleteOperatorSession(
		ctx,
		dbsqlc.DeleteOperatorSessionParams{OperatorID: operatorID, OperatorSessionID: sessionID},
	)
	if err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	if n == 0 {
		return &domain.Error{
			Kind:    domain.NotFound,
			Type:    "session_not_found",
			Message: "There is no such session, or it has ended.",
		}
	}
	return nil
}

// EndSessionsOf ends all sessions of an operator.
func (s *Service) EndSessionsOf(ctx context.Context, operatorID uuid.UUID) error {
	err := s.db.DeleteSessionsOfOperator(ctx, dbsqlc.DeleteSessionsOfOperatorParams{OperatorID: operatorID})
	return domain.Wrap(err, "end the sessions of an operator")
}

// EndOtherSessions ends all sessions of an operator but one.
func (s *Service) EndOtherSessions(ctx context.Context, session Session) error {
	err := s.db.DeleteSessionsOfOperator(ctx, dbsqlc.DeleteSessionsOfOperatorParams{
		OperatorID:    session.Operator.ID,
		ExceptSession: &session.ID,
	})
	return domain.Wrap(err, "end the other sessions of an operator")
}
