package nukitest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
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
	code    string // of a login whose tokens were not requested yet
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

// authorize is the vendor's page, on which the person allows the access at once.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != s.options.Client.ID || q.Get("response_type") != "code" {
		http.Error(w, "the request of the login is wrong", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.ids++
	s.tokens.code = "code-" + strconv.Itoa(s.ids)
	with := url.Values{"code": {s.tokens.code}, "state": {q.Get("state")}}
	s.mu.Unlock()
	back.RawQuery = with.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (s *Server) oauthRoutes(mux *http.ServeMux) {
	s.handle(mux, "POST /oauth/token", func(r *http.Request) (any, error) {
		client := adapter.Client{ID: r.PostFormValue("client_id"), Secret: r.PostFormValue("client_secret")}
		if client != s.options.Client {
			return nil, refusal{status: http.StatusUnauthorized, text: "invalid_client", oauth: true}
		}
		t := &s.tokens
		granted := t.issued > 0 && !t.revoked && r.PostFormValue("refresh_token") == t.refresh()
		if r.PostFormValue("grant_type") == "authorization_code" {
			granted = t.code != "" && r.PostFormValue("code") == t.code
		}
		if !granted {
			return nil, refusal{status: http.StatusBadRequest, text: "invalid_grant", oauth: true}
		}
		t.issued++
		t.code, t.expired, t.revoked = "", false, false
		return map[string]any{
			"access_token":  t.access(),
			"refresh_token": t.refresh(),
			"token_type":    "bearer",
			"expires_in":    int(lifetime.Seconds()),
		}, nil
	})
}
