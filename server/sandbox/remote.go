package sandbox

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// accountRequest is the body of PUT and DELETE /accounts.
type accountRequest struct {
	Key             string   `json:"key"`
	Profiles        []string `json:"profiles,omitempty"`
	LocksPerProfile int      `json:"locks_per_profile,omitempty"`
	Systems         int      `json:"systems,omitempty"` // number of access systems; creates no locks
}

// ownerOnly authenticates the owner of the cloud; other callers get UNAUTHORIZED.
func (s *Sandbox) ownerOnly(act func(accountRequest) *problem) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.tokens.Owner())) != 1 {
			answerProblem(w, refuse(unauthorized, "The owner's token is not accepted."))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		var q accountRequest
		p := read(r, &q)
		if p == nil && q.Key == "" {
			p = refuse(invalidRequest, "key is required.")
		}
		if p == nil {
			p = act(q)
		}
		respond(w, done, p)
	}
}

func (s *Sandbox) putAccount(q accountRequest) *problem {
	var err error
	if q.Systems > 0 {
		_, err = s.EnsureAccessAccount(AccessSpec{Key: q.Key, Systems: q.Systems})
	} else {
		_, err = s.EnsureAccount(AccountSpec{Key: q.Key, Profiles: q.Profiles, LocksPerProfile: q.LocksPerProfile})
	}
	if err != nil {
		return refuse(unavailable, "The account could not be created: %v", err)
	}
	return nil
}

func (s *Sandbox) deleteAccount(q accountRequest) *problem {
	if err := s.Forget(q.Key); err != nil {
		return refuse(unavailable, "The account could not be deleted: %v", err)
	}
	return nil
}

// Remote accesses a sandbox with the same seed in another process as its owner.
type Remote struct {
	// URL is the address of the cloud.
	URL string
	// Seed is the Options.Seed of the sandbox.
	Seed uint64
}

var remoteHTTP = &http.Client{Timeout: 10 * time.Second}

// EnsureAccount calls Sandbox.EnsureAccount there.
func (r Remote) EnsureAccount(ctx context.Context, spec AccountSpec) error {
	return r.send(ctx, http.MethodPut, accountRequest{
		Key:             spec.Key,
		Profiles:        spec.Profiles,
		LocksPerProfile: spec.LocksPerProfile,
	})
}

// EnsureAccessAccount calls Sandbox.EnsureAccessAccount there.
func (r Remote) EnsureAccessAccount(ctx context.Context, spec AccessSpec) error {
	return r.send(ctx, http.MethodPut, accountRequest{Key: spec.Key, Systems: max(1, spec.Systems)})
}

// Forget calls Sandbox.Forget there.
func (r Remote) Forget(ctx context.Context, key string) error {
	return r.send(ctx, http.MethodDelete, accountRequest{Key: key})
}

func (r Remote) send(ctx context.Context, method string, q accountRequest) error {
	body, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("ask the simulated cloud: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL+"/accounts", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the simulated cloud: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+Tokens(r.Seed).Owner())
	req.Header.Set("Content-Type", "application/json")
	res, err := remoteHTTP.Do(req)
	if err != nil {
		return fmt.Errorf("ask the simulated cloud: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return nil
	}
	var out struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(res.Body).Decode(&out) // the status suffices without a message
	return fmt.Errorf("the simulated cloud at %s answers %s: %s", r.URL, res.Status, out.Message)
}
