package sandbox

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Everything is the provider with the devices of DefaultProfiles.
const Everything = "sandbox"

// AccessSystems is the provider of access systems.
const AccessSystems = "sandbox_access_system"

// People are the email addresses of the persons with an account at every provider. Some providers have more.
var People = []string{"jane@example.com", "john@example.com"}

// Password is the password of all People; it is not secret.
const Password = "1234"

// SecondFactor is the code that some providers ask for after the password; it is not secret.
const SecondFactor = "123456"

// loginRequest is the body of POST /login.
type loginRequest struct {
	Partner  string `json:"partner"`
	Provider string `json:"provider"`
	Email    string `json:"email"`
	Password string `json:"password"`
	Code     string `json:"code"`
}

// login returns the account of a person to a partner, and restores the account's token.
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
	prof, known := profileOf(q.Provider, 0)
	if !known && q.Provider != Everything && q.Provider != AccessSystems {
		answerProblem(w, refuse(invalidRequest, "There is no such provider."))
		return
	}
	email, ok := person(q.Email, slices.Concat(People, prof.MorePeople))
	if prof.AnyPerson {
		email, ok = anyPerson(q.Email)
	}
	if !ok || subtle.ConstantTimeCompare([]byte(q.Password), []byte(Password)) != 1 {
		answerProblem(w, refuse(loginRefused, "The email address or the password is wrong."))
		return
	}
	if prof.SecondFactor && q.Code == "" {
		answerProblem(w, refuse(secondFactorRequired, "A code is required."))
		return
	}
	if prof.SecondFactor && subtle.ConstantTimeCompare([]byte(q.Code), []byte(SecondFactor)) != 1 {
		answerProblem(w, refuse(secondFactorRefused, "The code is wrong."))
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

// person returns the address among people that equals email, ignoring case.
func person(email string, people []string) (string, bool) {
	for _, p := range people {
		if strings.EqualFold(p, strings.TrimSpace(email)) {
			return p, true
		}
	}
	return "", false
}

// accountKey returns the key of a person's account at a provider. The first of the People has the initial locks of a
// partner. After a FreshKey, partner is that key.
func accountKey(partner, provider, email string) string {
	if provider == Everything && email == People[0] {
		return partner
	}
	return partner + "/" + provider + "/" + email
}

// FreshKey returns the key of a new account with which a partner starts over with new locks. Pending requests to the
// old locks do not reach the new ones, and later logins use new accounts as well.
func FreshKey(partner string) string { return partner + "#" + uuid.NewString() }

func (s *Sandbox) base(partner string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return cmp.Or(s.bases[partner], partner)
}

// ensureAccount returns the account, and creates it without locks and access systems if necessary.
func (s *Sandbox) ensureAccount(key string) (*account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account(key)
}

// account is ensureAccount; s.mu is held.
func (s *Sandbox) account(key string) (*account, error) {
	if s.closed {
		return nil, errClosed
	}
	hash := sha256.Sum256([]byte(s.tokens.Account(key)))
	base, _, _ := strings.Cut(key, "/")
	if partner, _, fresh := strings.Cut(base, "#"); fresh {
		s.bases[partner] = base
	}
	a := s.accounts[hash]
	if a == nil {
		a = &account{
			box:     s,
			id:      s.idOf("account", key),
			gateway: &gate{},
			byID:    map[string]*lock{},
		}
		if _, err := s.files().load(a.file(), &a.state); err != nil {
			return nil, err
		}
		s.accounts[hash] = a
	}
	return a, nil
}
