package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Credential is a credential as its owner sees it, without the token.
type Credential struct {
	ID           uuid.UUID
	Kind         domain.CredentialKind
	Role         domain.Role
	Name         string
	Owner        string // the person or program that uses it; may be empty
	Hint         string // the start and the end of the token
	WorkspaceIDs []uuid.UUID
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time
	LastUsedAt   *time.Time // accurate to useInterval; nil: never
}

// useInterval is how often the use of a credential is recorded.
const useInterval = 10 * time.Minute

// NewCredential is a request for a credential.
type NewCredential struct {
	Kind         domain.CredentialKind
	Role         domain.Role // empty: RoleAdmin
	Name         string
	Owner        string
	WorkspaceIDs []uuid.UUID   // exactly one for an API key or a publishable key
	Lifetime     time.Duration // 0: until revoked; a console session lives at most a day
	Sandbox      bool          // marks the key as a test key
}

const sessionLifetime = 24 * time.Hour

// IssueCredential creates a credential. It returns the token this once; the database stores only a hash. It
// fails with Invalid, and with NotFound for an unknown workspace.
func (s *Service) IssueCredential(ctx context.Context, n NewCredential) (token string, c Credential, err error) {
	if err := domain.CheckText("name", n.Name); err != nil {
		return "", c, err
	}
	if err := domain.CheckText("owner", n.Owner); err != nil {
		return "", c, err
	}
	n.Role = cmp.Or(n.Role, domain.RoleAdmin)
	n.WorkspaceIDs = distinct(n.WorkspaceIDs)
	switch {
	case n.Lifetime < 0:
		return "", c, domain.Invalidf("lifetime", "The expiry time is in the past. Choose a time in the future.")
	case (n.Kind == domain.APIKey || n.Kind == domain.PublishableKey) && len(n.WorkspaceIDs) != 1:
		return "", c, domain.Invalidf("workspace_ids", "A key belongs to exactly one workspace.")
	case !slices.Contains(domain.Roles, n.Role):
		return "", c, domain.Invalidf("role", "A role is admin, operator, or viewer.")
	case n.Kind == domain.PublishableKey && n.Role != domain.RoleAdmin:
		return "", c, domain.Invalidf("role", "A publishable key has no role: it only creates client sessions.")
	case len(n.WorkspaceIDs) == 0:
		return "", c, domain.Invalidf("workspace_ids", "Name at least one workspace that the credential may enter.")
	}
	c = Credential{
		ID:           domain.NewID(),
		Kind:         n.Kind,
		Role:         n.Role,
		Name:         n.Name,
		Owner:        n.Owner,
		WorkspaceIDs: n.WorkspaceIDs,
	}
	if n.Kind == domain.ConsoleSession && (n.Lifetime <= 0 || n.Lifetime > sessionLifetime) {
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
				return &domain.Error{
					Kind:    domain.NotFound,
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
		if n.Kind == domain.PublishableKey {
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
			Mac:          s.keys.MAC(boundCredential{c.ID, c.Kind, hash[:], c.ExpiresAt, c.Role}.hashed()),
			Role:         string(c.Role),
			Owner:        c.Owner,
		}); err != nil {
			return err
		}
		for _, id := range n.WorkspaceIDs {
			if err := s.GrantWorkspace(ctx, tx, c.ID, id); err != nil {
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
	case domain.APIKey:
		if n.Sandbox {
			return "seam_test" + base58(4) + "_" + base58(24), nil
		}
		return "seam_" + notReserved() + "_" + base58(24), nil
	case domain.PublishableKey:
		return PublishablePrefix + "1" + base58(8) + "_" + base58(24), nil
	case domain.PAT:
		return "seam_at1" + base58(8) + "_" + base58(24), nil
	case domain.ConsoleSession:
		key, err := s.serverKeys.ServerKey(ctx, keyrotation.ConsoleSessions)
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
	return "", domain.Invalidf(
		"kind",
		"A credential is one of %s, %s, %s, %s.",
		domain.APIKey,
		domain.PAT,
		domain.ConsoleSession,
		domain.PublishableKey,
	)
}

// PublishablePrefix is the prefix of every publishable key.
const PublishablePrefix = "seam_pk"

const sessionIssuer = "deviceaccess-server"

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
func (s *Service) Authenticate(ctx context.Context, token, workspaceID string) (domain.Principal, error) {
	kind, err := s.kindOf(ctx, token)
	if err != nil {
		return domain.Principal{}, err
	}
	var asked *uuid.UUID
	if workspaceID != "" {
		id, err := uuid.Parse(workspaceID)
		if err != nil {
			return domain.Principal{}, unknownWorkspace()
		}
		asked = &id
	}
	hash := sha256.Sum256([]byte(token))
	if kind == domain.EndUser {
		return s.authenticateSession(ctx, hash[:], asked)
	}
	r, err := s.db.FindCredential(ctx, dbsqlc.FindCredentialParams{TokenHash: hash[:], WorkspaceID: asked})
	switch {
	case store.IsNoRows(err):
		return domain.Principal{}, unauthorized(kind)
	case err != nil:
		return domain.Principal{}, fmt.Errorf("look up the credential: %w", err)
	case !s.issued(r, hash[:]):
		return domain.Principal{}, unauthorized(kind)
	case r.WorkspaceID == nil && asked != nil:
		return domain.Principal{}, unknownWorkspace()
	case (kind == domain.PublishableKey) != (domain.CredentialKind(r.Kind) == domain.PublishableKey):
		return domain.Principal{}, unauthorized(kind)
	case kind == domain.PublishableKey && !r.PublishableKeys:
		return domain.Principal{}, &domain.Error{
			Kind: domain.Unauthorized,
			Type: invalidPublishableKey,
			Message: "The workspace does not accept publishable keys. Enable them with /workspaces/update and " +
				"is_publishable_key_auth_enabled true.",
		}
	}
	p := domain.Principal{
		CredentialID: r.CredentialID,
		Kind:         domain.CredentialKind(r.Kind),
		Role:         domain.Role(r.Role),
		Name:         r.Name,
		Suspended:    r.Suspended,
	}
	if r.WorkspaceID != nil {
		p.WorkspaceID = *r.WorkspaceID
	}
	return p, s.recordUse(ctx, r)
}

// recordUse records that a credential is used, at most once per useInterval. A database that accepts no writes does not
// reject the request here.
func (s *Service) recordUse(ctx context.Context, r dbsqlc.FindCredentialRow) error {
	if r.LastUsedAt != nil && s.opt.Now().Sub(*r.LastUsedAt) < useInterval {
		return nil
	}
	err := s.db.RecordCredentialUse(ctx, dbsqlc.RecordCredentialUseParams{
		CredentialID:    r.CredentialID,
		IntervalSeconds: useInterval.Seconds(),
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("record the use of the credential: %w", err)
	}
	return nil
}

// issued reports whether the server has issued a credential, and has granted it the workspace.
func (s *Service) issued(r dbsqlc.FindCredentialRow, tokenHash []byte) bool {
	b := boundCredential{r.CredentialID, domain.CredentialKind(r.Kind), tokenHash, r.ExpiresAt, domain.Role(r.Role)}
	return s.keys.Match(r.Mac, s.keys.MAC(b.hashed())) &&
		(r.WorkspaceID == nil || s.IsGranted(r.CredentialID, *r.WorkspaceID, r.WorkspaceMac))
}

// kindOf returns the kind that a token claims by its prefix. It rejects forged console sessions without a
// query.
func (s *Service) kindOf(ctx context.Context, token string) (domain.CredentialKind, error) {
	switch {
	case strings.HasPrefix(token, "seam_at"):
		return domain.PAT, nil
	case strings.HasPrefix(token, PublishablePrefix):
		return domain.PublishableKey, nil
	case strings.HasPrefix(token, SessionPrefix):
		return domain.EndUser, nil
	case strings.HasPrefix(token, "ey"):
		keys, err := s.serverKeys.ServerKeys(ctx, keyrotation.ConsoleSessions)
		if err != nil {
			return "", err
		}
		accepted := jwt.VerificationKeySet{}
		for _, key := range keys {
			accepted.Keys = append(accepted.Keys, key)
		}
		_, err = jwt.ParseWithClaims(
			token,
			&jwt.RegisteredClaims{},
			func(*jwt.Token) (any, error) { return accepted, nil },
			jwt.WithValidMethods([]string{"HS256"}),
			jwt.WithIssuer(sessionIssuer),
			jwt.WithExpirationRequired(),
		)
		if err != nil {
			return "", unauthorized(domain.ConsoleSession)
		}
		return domain.ConsoleSession, nil
	}
	return domain.APIKey, nil
}

const invalidPublishableKey = "invalid_publishable_key"

func unauthorized(kind domain.CredentialKind) *domain.Error {
	what := map[domain.CredentialKind]string{
		domain.APIKey:         "API Key not found",
		domain.PAT:            "Personal access token not found",
		domain.ConsoleSession: "Console session token not found or expired",
	}
	if kind == domain.PublishableKey {
		return &domain.Error{
			Kind:    domain.Unauthorized,
			Type:    invalidPublishableKey,
			Message: "Publishable key not found",
		}
	}
	return &domain.Error{Kind: domain.Unauthorized, Type: "unauthorized", Message: what[kind]}
}

func unknownWorkspace() *domain.Error {
	return &domain.Error{
		Kind:    domain.Unauthorized,
		Type:    "workspace_not_found",
		Message: "This credential has no access to the workspace named in the seam-workspace header.",
	}
}

// CredentialPage selects a page of credentials.
type CredentialPage struct {
	Search string    // in the name, the owner, and the hint
	Ended  bool      // also those that are revoked or expired
	Now    time.Time // for Ended
	// BeforeAt and BeforeID are the creation time and the identifier of the credential before the first one.
	BeforeAt time.Time
	BeforeID uuid.UUID
	Limit    int
}

// ListCredentialsPage lists a page of credentials, newest first.
func (s *Service) ListCredentialsPage(ctx context.Context, page CredentialPage) ([]Credential, error) {
	rows, err := s.db.UnpreparedQueries.ListCredentialsPage(ctx, dbsqlc.ListCredentialsPageParams{
		Pattern:  store.SearchPattern(page.Search),
		Ended:    page.Ended,
		Now:      page.Now,
		BeforeAt: page.BeforeAt,
		BeforeID: page.BeforeID,
		MaxRows:  int32(page.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list the credentials: %w", err)
	}
	out := make([]Credential, len(rows))
	for i, r := range rows {
		out[i] = toCredential(dbsqlc.ListCredentialsRow(r))
	}
	return out, nil
}

// ListCredentials lists every credential. For administration only.
func (s *Service) ListCredentials(ctx context.Context) ([]Credential, error) {
	rows, err := s.db.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the credentials: %w", err)
	}
	out := make([]Credential, len(rows))
	for i, r := range rows {
		out[i] = toCredential(r)
	}
	return out, nil
}

func toCredential(r dbsqlc.ListCredentialsRow) Credential {
	return Credential{
		ID:           r.CredentialID,
		Kind:         domain.CredentialKind(r.Kind),
		Role:         domain.Role(r.Role),
		Name:         r.Name,
		Owner:        r.Owner,
		Hint:         r.Hint,
		WorkspaceIDs: r.WorkspaceIds,
		CreatedAt:    r.CreatedAt,
		ExpiresAt:    r.ExpiresAt,
		RevokedAt:    r.RevokedAt,
		LastUsedAt:   r.LastUsedAt,
	}
}

// RevokeCredential revokes a credential immediately. It fails with NotFound, also for a credential that is
// already revoked.
func (s *Service) RevokeCredential(ctx context.Context, id uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.RevokeCredential(ctx, id)
		if err == nil && n == 0 {
			err = &domain.Error{
				Kind:    domain.NotFound,
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
	return domain.Wrap(err, "revoke the credential")
}
