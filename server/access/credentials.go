package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// CredentialKind is the kind of a credential. Existing clients of this API require the token prefixes
// (spec/contract.md section 3).
type CredentialKind string

const (
	APIKey         CredentialKind = "api_key"         // seam_<8>_<24>, bound to one workspace
	PAT            CredentialKind = "pat"             // seam_at1<8>_<24>, for the workspaces that it may enter
	ConsoleSession CredentialKind = "console_session" // a JSON Web Token signed by the server
	PublishableKey CredentialKind = "publishable_key" // seam_pk1<8>_<24>, public, bound to one workspace
	EndUser        CredentialKind = "client_session"  // seam_cst1<8>_<24>, of an end user: see ClientSession
)

// Principal is the caller of a request: a credential, and the workspace that it acts in.
type Principal struct {
	WorkspaceID  uuid.UUID // zero where the request names none
	CredentialID uuid.UUID
	Kind         CredentialKind
	Name         string // of the credential; client sessions have none
	Suspended    bool   // whether the workspace is suspended
	// Scope are the accounts that the caller can see, with everything that belongs to them. nil means the whole
	// workspace.
	Scope    []uuid.UUID
	Customer string // the customer key of a client session that sees a customer's accounts
}

// CanSee reports whether the caller can see what belongs to the account. Everything else counts as absent.
func (p Principal) CanSee(account uuid.UUID) bool {
	return p.Scope == nil || slices.Contains(p.Scope, account)
}

// Credential is a credential as its owner sees it, without the token.
type Credential struct {
	ID           uuid.UUID
	Kind         CredentialKind
	Name         string
	Hint         string // the start and the end of the token
	WorkspaceIDs []uuid.UUID
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time
}

// NewCredential is a request for a credential.
type NewCredential struct {
	Kind         CredentialKind
	Name         string
	WorkspaceIDs []uuid.UUID   // exactly one for an API key or a publishable key
	Lifetime     time.Duration // 0: until revoked; a console session lives at most a day
	Sandbox      bool          // marks the key as a test key
}

const sessionLifetime = 24 * time.Hour

// IssueCredential creates a credential. It returns the token this once; the database stores only a hash. It
// fails with Invalid, and with NotFound for an unknown workspace.
func (s *Service) IssueCredential(ctx context.Context, n NewCredential) (token string, c Credential, err error) {
	if err := CheckText("name", n.Name); err != nil {
		return "", c, err
	}
	n.WorkspaceIDs = distinct(n.WorkspaceIDs)
	switch {
	case n.Lifetime < 0:
		return "", c, Invalidf("lifetime", "The expiry time is in the past. Choose a time in the future.")
	case (n.Kind == APIKey || n.Kind == PublishableKey) && len(n.WorkspaceIDs) != 1:
		return "", c, Invalidf("workspace_ids", "A key belongs to exactly one workspace.")
	case len(n.WorkspaceIDs) == 0:
		return "", c, Invalidf("workspace_ids", "Name at least one workspace that the credential may enter.")
	}
	c = Credential{
		ID:           NewID(),
		Kind:         n.Kind,
		Name:         n.Name,
		WorkspaceIDs: n.WorkspaceIDs,
	}
	if n.Kind == ConsoleSession && (n.Lifetime <= 0 || n.Lifetime > sessionLifetime) {
		n.Lifetime = sessionLifetime
	}
	if n.Lifetime > 0 {
		t := s.opt.Now().Add(n.Lifetime).UTC()
		c.ExpiresAt = &t
	}
	if token, err = s.newToken(ctx, n, c); err != nil {
		return "", c, err
	}
	c.Hint = token[:min(len(token)/3, 13)] + "…" + token[len(token)-4:]
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		for _, id := range n.WorkspaceIDs {
			if _, err := tx.GetWorkspace(ctx, id); store.IsNoRows(err) {
				return &Error{
					Kind:    NotFound,
					Type:    "workspace_not_found",
					Message: "There is no such workspace.",
					Data:    map[string]any{"workspace_id": id},
				}
			} else if err != nil {
				return err
			}
		}
		hash := sha256.Sum256([]byte(token))
		var public *string
		if n.Kind == PublishableKey {
			public = &token
		}
		if err := tx.InsertCredential(ctx, dbsqlc.InsertCredentialParams{
			CredentialID: c.ID,
			Kind:         string(c.Kind),
			Name:         c.Name,
			Hint:         c.Hint,
			TokenHash:    hash[:],
			ExpiresAt:    c.ExpiresAt,
			PublicToken:  public,
		}); err != nil {
			return err
		}
		for _, id := range n.WorkspaceIDs {
			if err := tx.InsertCredentialWorkspace(
				ctx,
				dbsqlc.InsertCredentialWorkspaceParams{CredentialID: c.ID, WorkspaceID: id},
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", c, fmt.Errorf("issue a credential: %w", err)
	}
	return token, c, nil
}

// distinct returns the identifiers without duplicates, in the same order.
func distinct(ids []uuid.UUID) (out []uuid.UUID) {
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (s *Service) newToken(ctx context.Context, n NewCredential, c Credential) (string, error) {
	switch n.Kind {
	case APIKey:
		if n.Sandbox {
			return "seam_test" + base58(4) + "_" + base58(24), nil
		}
		return "seam_" + notReserved() + "_" + base58(24), nil
	case PublishableKey:
		return PublishablePrefix + "1" + base58(8) + "_" + base58(24), nil
	case PAT:
		return "seam_at1" + base58(8) + "_" + base58(24), nil
	case ConsoleSession:
		key, err := s.sessionKey(ctx)
		if err != nil {
			return "", err
		}
		return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
			ID:        c.ID.String(),
			Issuer:    sessionIssuer,
			IssuedAt:  jwt.NewNumericDate(s.opt.Now()),
			ExpiresAt: jwt.NewNumericDate(*c.ExpiresAt),
		}).SignedString(key)
	}
	return "", Invalidf("kind", "A credential is one of %s, %s, %s, %s.", APIKey, PAT, ConsoleSession, PublishableKey)
}

// PublishablePrefix is the prefix of every publishable key.
const PublishablePrefix = "seam_pk"

const sessionIssuer = "deviceaccess-server"

func (s *Service) sessionKey(ctx context.Context) ([]byte, error) {
	return s.ServerKey(ctx, "console_sessions")
}

// notReserved returns the short part of an API key. It never collides with the prefix of another kind of token.
func notReserved() string {
	for {
		short := base58(8)
		if !strings.HasPrefix(short, "at") && !strings.HasPrefix(short, "cst") && !strings.HasPrefix(short, "pk") &&
			!strings.HasPrefix(short, "test") {
			return short
		}
	}
}

const alphabet58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

func base58(n int) string {
	out := make([]byte, 0, n)
	var b [64]byte
	for len(out) < n {
		rand.Read(b[:])
		for _, c := range b {
			if c < 232 && len(out) < n { // 4 × 58; larger bytes would bias the digits
				out = append(out, alphabet58[c%58])
			}
		}
	}
	return string(out)
}

// Authenticate returns the principal of a token. workspaceID is the workspace that the request names, or empty.
// It fails with Unauthorized.
func (s *Service) Authenticate(ctx context.Context, token, workspaceID string) (Principal, error) {
	kind, err := s.kindOf(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	var asked *uuid.UUID
	if workspaceID != "" {
		id, err := uuid.Parse(workspaceID)
		if err != nil {
			return Principal{}, unknownWorkspace()
		}
		asked = &id
	}
	hash := sha256.Sum256([]byte(token))
	if kind == EndUser {
		return s.authenticateSession(ctx, hash[:], asked)
	}
	r, err := s.db.FindCredential(ctx, dbsqlc.FindCredentialParams{TokenHash: hash[:], WorkspaceID: asked})
	switch {
	case store.IsNoRows(err):
		return Principal{}, unauthorized(kind)
	case err != nil:
		return Principal{}, fmt.Errorf("look up the credential: %w", err)
	case r.WorkspaceID == nil && asked != nil:
		return Principal{}, unknownWorkspace()
	case (kind == PublishableKey) != (CredentialKind(r.Kind) == PublishableKey):
		return Principal{}, unauthorized(kind)
	case kind == PublishableKey && !r.PublishableKeys:
		return Principal{}, &Error{
			Kind: Unauthorized,
			Type: invalidPublishableKey,
			Message: "The workspace does not accept publishable keys. Enable them with /workspaces/update and " +
				"is_publishable_key_auth_enabled true.",
		}
	}
	p := Principal{
		CredentialID: r.CredentialID,
		Kind:         CredentialKind(r.Kind),
		Name:         r.Name,
		Suspended:    r.Suspended,
	}
	if r.WorkspaceID != nil {
		p.WorkspaceID = *r.WorkspaceID
	}
	return p, nil
}

// kindOf returns the kind that a token claims by its prefix. It rejects forged console sessions without a
// query.
func (s *Service) kindOf(ctx context.Context, token string) (CredentialKind, error) {
	switch {
	case strings.HasPrefix(token, "seam_at"):
		return PAT, nil
	case strings.HasPrefix(token, PublishablePrefix):
		return PublishableKey, nil
	case strings.HasPrefix(token, SessionPrefix):
		return EndUser, nil
	case strings.HasPrefix(token, "ey"):
		key, err := s.sessionKey(ctx)
		if err != nil {
			return "", err
		}
		_, err = jwt.ParseWithClaims(token, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return key, nil },
			jwt.WithValidMethods([]string{"HS256"}), jwt.WithIssuer(sessionIssuer), jwt.WithExpirationRequired())
		if err != nil {
			return "", unauthorized(ConsoleSession)
		}
		return ConsoleSession, nil
	}
	return APIKey, nil
}

const invalidPublishableKey = "invalid_publishable_key"

func unauthorized(kind CredentialKind) *Error {
	what := map[CredentialKind]string{
		APIKey:         "API Key not found",
		PAT:            "Personal access token not found",
		ConsoleSession: "Console session token not found or expired",
	}
	if kind == PublishableKey {
		return &Error{Kind: Unauthorized, Type: invalidPublishableKey, Message: "Publishable key not found"}
	}
	return &Error{Kind: Unauthorized, Type: "unauthorized", Message: what[kind]}
}

func unknownWorkspace() *Error {
	return &Error{
		Kind:    Unauthorized,
		Type:    "workspace_not_found",
		Message: "This credential has no access to the workspace named in the seam-workspace header.",
	}
}

// ListCredentials lists every credential. For administration only.
func (s *Service) ListCredentials(ctx context.Context) ([]Credential, error) {
	rows, err := s.db.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the credentials: %w", err)
	}
	out := make([]Credential, len(rows))
	for i, r := range rows {
		out[i] = Credential{
			ID:           r.CredentialID,
			Kind:         CredentialKind(r.Kind),
			Name:         r.Name,
			Hint:         r.Hint,
			WorkspaceIDs: r.WorkspaceIds,
			CreatedAt:    r.CreatedAt,
			ExpiresAt:    r.ExpiresAt,
			RevokedAt:    r.RevokedAt,
		}
	}
	return out, nil
}

// RevokeCredential revokes a credential immediately. It fails with NotFound, also for a credential that is
// already revoked.
func (s *Service) RevokeCredential(ctx context.Context, id uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.RevokeCredential(ctx, id)
		if err == nil && n == 0 {
			err = &Error{
				Kind:    NotFound,
				Type:    "credential_not_found",
				Message: "There is no such credential, or it is already revoked.",
			}
		}
		if err != nil {
			return err
		}
		workspaces, err := tx.ListWorkspacesOfCredential(ctx, id)
		for _, w := range workspaces {
			tx.Concerns(w.Workspace.WorkspaceID)
		}
		return err
	})
	return Wrap(err, "revoke the credential")
}
