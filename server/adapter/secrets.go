package adapter

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Names of an account's secrets.
const (
	// CredentialsSecret holds credentials that expire. A login starts it with Checked.Credentials.
	CredentialsSecret = "credentials"
	// SubscriptionSecret holds the identifier and the secret of a subscription to pushes.
	SubscriptionSecret = "subscription"
	// CursorSecret holds the cursor of polled events.
	CursorSecret = "cursor"
)

// Secrets stores values of one account, encrypted, in the database that all instances share.
type Secrets interface {
	// Load returns a secret, or nil if there is none.
	Load(ctx context.Context, name string) ([]byte, error)
	// Store replaces a secret. nil deletes it. It fails with GatewayDown when the account was disconnected.
	Store(ctx context.Context, name string, value []byte) error
	// Rotate replaces a secret by what renew returns, and returns the new value. Of concurrent calls on all instances
	// one calls renew, and the others return its result: seen is the value that the caller could not use any more.
	// renew has RenewTimeout, and it continues when ctx ends.
	//
	// When an instance is killed while it renews, the next call passes the old value again, which many vendors accept
	// for a while. If the vendor refuses it then, the AuthRevoked error asks for a new login.
	Rotate(ctx context.Context, name string, seen []byte, renew Renew) ([]byte, error)
}

// Renew returns what replaces an old secret. It fails with AuthRevoked when the vendor refuses the old one.
type Renew func(ctx context.Context, old []byte) ([]byte, error)

// RenewTimeout bounds Renew.
const RenewTimeout = 30 * time.Second

// Tokens are credentials that expire (RFC 6749, section 5.1). Accounts store their JSON.
type Tokens struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	// ExpiresAt is by this server's clock; zero means unknown.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// refreshMargin is how long before the end of a token its successor is requested.
const refreshMargin = time.Minute

// TokenSource provides the access token of an account. It is safe for concurrent use.
type TokenSource struct {
	Secrets Secrets
	// Refresh requests new tokens from the vendor. An empty Refresh in its result keeps the old one.
	Refresh func(ctx context.Context, old Tokens) (Tokens, error)
	// Now is the clock; nil: the system's.
	Now func() time.Time

	mu     sync.Mutex
	stored []byte // what tokens was read from
	tokens Tokens
}

// Token returns an access token. It requests another one shortly before the token expires.
func (s *TokenSource) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	stored, tokens := s.stored, s.tokens
	s.mu.Unlock()
	if stored == nil {
		var err error
		if stored, err = s.Secrets.Load(ctx, CredentialsSecret); err != nil {
			return "", err
		}
		if stored == nil {
			return "", Errorf(AuthRevoked, "the account has no login; log in again")
		}
		if tokens, err = s.keep(stored); err != nil {
			return "", err
		}
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if tokens.ExpiresAt.IsZero() || now().Before(tokens.ExpiresAt.Add(-refreshMargin)) {
		return tokens.Access, nil
	}
	return s.renew(ctx, stored)
}

// Renew returns a successor of an access token that the vendor refuses, also before its end: the vendor may have
// revoked it, another instance may have replaced it, or the clock may have jumped.
func (s *TokenSource) Renew(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	stored, tokens := s.stored, s.tokens
	s.mu.Unlock()
	if stored == nil || tokens.Access != refused { // it was replaced in the meantime
		return s.Token(ctx)
	}
	return s.renew(ctx, stored)
}

func (s *TokenSource) renew(ctx context.Context, seen []byte) (string, error) {
	refresh := func(ctx context.Context, old []byte) ([]byte, error) {
		var before Tokens
		if json.Unmarshal(old, &before) != nil { // the error may quote a token
			return nil, Errorf(AuthRevoked, "the stored login cannot be read; log in again")
		}
		after, err := s.Refresh(ctx, before)
		if err != nil {
			return nil, err
		}
		if after.Refresh == "" {
			after.Refresh = before.Refresh
		}
		return json.Marshal(after)
	}
	stored, err := s.Secrets.Rotate(ctx, CredentialsSecret, seen, refresh)
	if err != nil {
		return "", err
	}
	tokens, err := s.keep(stored)
	return tokens.Access, err
}

func (s *TokenSource) keep(stored []byte) (tokens Tokens, err error) {
	if json.Unmarshal(stored, &tokens) != nil {
		return tokens, Errorf(AuthRevoked, "the stored login cannot be read; log in again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored, s.tokens = stored, tokens
	return tokens, nil
}
