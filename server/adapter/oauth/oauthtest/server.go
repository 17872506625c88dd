// Package oauthtest runs an OAuth 2.0 server for tests of vendors: an authorization endpoint that allows everything, and
// a token endpoint that verifies PKCE. Codes and refresh tokens work once.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Fault is a way in which the server fails.
type Fault string

// Faults of the authorization endpoint are answered to the redirect URI, and the others by the token endpoint.
const (
	AccessDenied Fault = "access_denied" // the person refuses
	ServerError  Fault = "server_error"  // the authorization endpoint fails
	NoCode       Fault = "no code"       // the redirect has no code
	Unavailable  Fault = "unavailable"   // status 503 with Retry-After
	Garbage      Fault = "garbage"       // no JSON
	HangUp       Fault = "hang up"       // no answer
	BadClient    Fault = "bad client"    // the client is unknown
	OtherCode    Fault = "other code"    // the code of the redirect was never issued
)

// Server is an OAuth server with one client.
type Server struct {
	*httptest.Server
	// Mux serves the API of the vendor.
	Mux *http.ServeMux
	// Client is the registered client.
	Client adapter.Client

	mu          sync.Mutex
	redirectURI string
	user        string
	fault       Fault
	codes       map[string]grant
	refresh     map[string]string // token → user
	access      map[string]string // token → user
	refreshes   int
	secrets     []string
}

// grant is what a code stands for.
type grant struct{ user, challenge string }

const scope = "locks offline"

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		Mux:     http.NewServeMux(),
		Client:  adapter.Client{ID: "our-id", Secret: rand.Text()},
		codes:   map[string]grant{},
		refresh: map[string]string{},
		access:  map[string]string{},
		user:    "jane",
	}
	s.secrets = []string{s.Client.Secret}
	s.Mux.HandleFunc("GET /authorize", s.authorize)
	s.Mux.HandleFunc("POST /token", s.token)
	s.Server = httptest.NewServer(s.Mux)
	t.Cleanup(s.Close)
	return s
}

// OAuth describes the server. Connect is not set.
func (s *Server) OAuth() adapter.OAuth {
	return adapter.OAuth{
		AuthorizeURL: s.URL + "/authorize",
		TokenURL:     s.URL + "/token",
		Scopes:       strings.Fields(scope),
	}
}

// Register sets the redirect URI of the client.
func (s *Server) Register(redirectURI string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirectURI = redirectURI
}

// Fail makes the server fail; an empty fault ends that.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// LogIn sets the person who uses the authorization endpoint.
func (s *Server) LogIn(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = user
}

// RevokeAccess makes all access tokens invalid.
func (s *Server) RevokeAccess() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// User returns the person of an Authorization header, or an empty string.
func (s *Server) User(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
}

// Refreshes returns how many refresh tokens were used.
func (s *Server) Refreshes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshes
}

// Secrets returns all codes, states, verifiers, and tokens that the server has seen.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.secrets...)
}

// secret returns a random secret.
func (s *Server) secret() string {
	text := rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	challenge := q.Get("code_challenge")
	if q.Get("response_type") != "code" || q.Get("client_id") != s.Client.ID ||
		q.Get("redirect_uri") != s.redirectURI || q.Get("scope") != scope ||
		q.Get("code_challenge_method") != "S256" || len(challenge) != 43 {
		http.Error(w, "the request is wrong: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	s.secrets = append(s.secrets, q.Get("state"))
	back := url.Values{"state": {q.Get("state")}}
	switch s.fault {
	case AccessDenied, ServerError:
		back.Set("error", string(s.fault))
		back.Set("error_description", "<b>"+s.secret()+"</b>")
	case NoCode:
	case OtherCode:
		back.Set("code", s.secret())
	default:
		code := s.secret()
		s.codes[code] = grant{user: s.user, challenge: challenge}
		back.Set("code", code)
	}
	http.Redirect(w, r, s.redirectURI+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verifier := r.PostFormValue("code_verifier")
	if verifier != "" {
		s.secrets = append(s.secrets, verifier)
	}
	switch {
	case s.fault == Unavailable:
		w.Header().Set("Retry-After", "7")
		http.Error(w, s.secret(), http.StatusServiceUnavailable)
		return
	case s.fault == Garbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": ` + s.secret()))
		return
	case s.fault == HangUp:
		panic(http.ErrAbortHandler)
	case s.fault == BadClient, !s.isClient(r):
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	user, known := "", false
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		var g grant
		g, known = s.codes[code]
		delete(s.codes, code)
		hash := sha256.Sum256([]byte(verifier))
		user = g.user
		known = known && r.PostFormValue("redirect_uri") == s.redirectURI &&
			base64.RawURLEncoding.EncodeToString(hash[:]) == g.challenge
	case "refresh_token":
		token := r.PostFormValue("refresh_token")
		user, known = s.refresh[token]
		delete(s.refresh, token)
		s.refreshes++
	}
	if !known {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	access, refresh := s.secret(), s.secret()
	s.access[access], s.refresh[refresh] = user, user
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token":  access,
		"refresh_token": refresh,
		"token_type":    "bearer",
		"expires_in":    3600,
	})
}

// isClient reports whether a request has the credentials of the client, in the header or in the body.
func (s *Server) isClient(r *http.Request) bool {
	id, secret, inHeader := r.BasicAuth()
	if !inHeader {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	return adapter.Client{ID: id, Secret: secret} == s.Client
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "refused"})
}
