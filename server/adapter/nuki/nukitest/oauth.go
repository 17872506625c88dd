package nukitest

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// lifetime is how long access tokens are valid.
const lifetime = time.Hour

// tokens are the credentials that the fake accepts. A refresh token works once.
type tokens struct {
	api     bool // the API token works
	issued  int
	expired bool // the last access token
	revoked bool
}

func (t *tokens) access() string  { return "access-token-" + strconv.Itoa(t.issued) }
func (t *tokens) refresh() string { return "refresh-token-" + strconv.Itoa(t.issued) }

func (t *tokens) valid(token string) bool {
	return token == Token && t.api || t.issued > 0 && token == t.access() && !t.expired && !t.revoked
}

// LogIn returns the tokens of a login on the vendor's pages.
func (s *Server) LogIn() adapter.Tokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens.issued++
	s.tokens.expired, s.tokens.revoked = false, false
	return adapter.Tokens{
		Access:    s.tokens.access(),
		Refresh:   s.tokens.refresh(),
		ExpiresAt: time.Now().Add(lifetime),
	}
}

// Expire ends the access token before its time.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens.expired = true
}

// Revoke ends all tokens, as a change of the account's password does.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens.api, s.tokens.revoked = false, true
}

func (s *Server) oauthRoutes(mux *http.ServeMux) {
	s.handle(mux, "POST /oauth/token", func(r *http.Request) (any, error) {
		client := adapter.Client{ID: r.PostFormValue("client_id"), Secret: r.PostFormValue("client_secret")}
		if client != s.options.Client {
			return nil, refusal{http.StatusUnauthorized, "invalid_client"}
		}
		t := &s.tokens
		if t.issued == 0 || t.revoked || r.PostFormValue("refresh_token") != t.refresh() {
			return nil, refusal{http.StatusBadRequest, "invalid_grant"}
		}
		t.issued++
		t.expired = false
		return map[string]any{
			"access_token":  t.access(),
			"refresh_token": t.refresh(),
			"token_type":    "bearer",
			"expires_in":    int(lifetime.Seconds()),
		}, nil
	})
}
