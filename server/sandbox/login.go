package sandbox

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// Everything is the vendor with locks of all the others.
const Everything = "sandbox"

// AccessSystems is the vendor of access systems.
const AccessSystems = "sandbox_access_system"

// People have an account at every vendor. All have the same password, which is no secret.
var People = []string{"jane@example.com", "john@example.com"}

// Password is that of all People.
const Password = "1234"

// loginRequest is the body of POST /login.
type loginRequest struct {
	Partner  string `json:"partner"`
	Provider string `json:"provider"`
	Email    string `json:"email"`
	Password string `json:"password"`
}

// login tells a partner which account somebody has, and has that account's token be accepted again.
func (s *Sandbox) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
	var q loginRequest
	if p := read(r, &q); p != nil {
		answerProblem(w, p)
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if q.Partner == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.tokens.Partner(q.Partner))) != 1 {
		answerProblem(w, refuse(unauthorized, "The partner's token is not accepted."))
		return
	}
	if _, known := profiles[q.Provider]; !known && q.Provider != Everything && q.Provider != AccessSystems {
		answerProblem(w, refuse(invalidRequest, "There is no such provider."))
		return
	}
	email, ok := person(q.Email)
	if !ok || subtle.ConstantTimeCompare([]byte(q.Password), []byte(Password)) != 1 {
		answerProblem(w, refuse(loginRefused, "The email address or the password is wrong."))
		return
	}
	key := accountKey(s.base(q.Partner), q.Provider, email)
	a, err := s.ensureAccount(key)
	if err == nil {
		err = a.revoke(false)
	}
	if err != nil {
		answerProblem(w, refuse(unavailable, "The login could not be stored."))
		return
	}
	answer(w, http.StatusOK, map[string]any{"account": key, "email": email})
}

// person is who has the address, in whichever case.
func person(email string) (string, bool) {
	for _, p := range People {
		if strings.EqualFold(p, strings.TrimSpace(email)) {
			return p, true
		}
	}
	return "", false
}

// accountKey names the account that somebody has at a provider. The first of the People has the locks that a partner
// begins with.
//
// What partners' accounts are named by changes when they begin anew: Anew.
func accountKey(partner, provider, email string) string {
	if provider == Everything && email == People[0] {
		return partner
	}
	return partner + "/" + provider + "/" + email
}

// Anew is the key of an account with which a partner begins anew: with locks that nobody has ever seen. What is on its
// way to those before does not reach them, and whoever logs in from then on gets to new ones, too.
func Anew(partner string) string { return partner + "#" + uuid.NewString() }

func (s *Sandbox) base(partner string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return cmp.Or(s.bases[partner], partner)
}

// ensureAccount makes the account, without locks and access systems, unless there is one.
func (s *Sandbox) ensureAccount(key string) (*account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account(key)
}

// account is ensureAccount for those who hold the lock.
func (s *Sandbox) account(key string) (*account, error) {
	if s.closed {
		return nil, errClosed
	}
	hash := sha256.Sum256([]byte(s.tokens.Account(key)))
	base, _, _ := strings.Cut(key, "/")
	if partner, _, anew := strings.Cut(base, "#"); anew {
		s.bases[partner] = base
	}
	a := s.accounts[hash]
	if a == nil {
		a = &account{box: s, id: s.idOf("account", key), gateway: &gate{}, byID: map[string]*lock{}}
		if _, err := s.files().load(a.file(), &a.state); err != nil {
			return nil, err
		}
		s.accounts[hash] = a
	}
	return a, nil
}
