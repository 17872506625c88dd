// Package subscription keeps an account subscribed to the pushes of a vendor that signs them with a secret of each
// subscription, and receives them. It must not know a vendor.
package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Checks whether the vendor still has the subscription: many vendors end subscriptions whose pushes fail.
const (
	checkInterval = 5 * time.Minute
	checkTimeout  = 30 * time.Second
)

// Hook is a subscription at the vendor, such as a webhook. Accounts store its JSON.
type Hook struct {
	ID  string `json:"id"`
	URL string `json:"url"`
	// Secret signs pushes. Only the vendor's response to a creation has it.
	Secret string `json:"secret"`
}

// Subscription is the subscription of one account. Its exported fields must not change after the first call.
type Subscription struct {
	// URLs returns the URLs of pushes, the current one first; nil: the account has no subscription.
	URLs func(ctx context.Context) ([]string, error)
	// Secrets stores the subscription; nil: all pushes are refused.
	Secrets adapter.Secrets
	// Log is never nil.
	Log *slog.Logger
	// List, Create, and Delete call the vendor. Create fails when the vendor returns no secret.
	List   func(ctx context.Context) ([]Hook, error)
	Create func(ctx context.Context, url string) (Hook, error)
	Delete func(ctx context.Context, id string) error
	// IsSigned reports whether a secret, which is not empty, signs a push.
	IsSigned func(header http.Header, body []byte, secret string) bool
	// MaxPush is the maximum size of a push in bytes.
	MaxPush int64

	mu      sync.Mutex
	current Hook
	alive   bool
}

// Works reports whether the vendor has the subscription.
func (s *Subscription) Works() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

func (s *Subscription) set(h Hook, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.alive = h, alive
}

func (s *Subscription) secret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Secret
}

// Stay subscribes, and subscribes again whenever the vendor has lost the subscription, until ctx ends. Without a
// subscription, the adapter must poll.
func (s *Subscription) Stay(ctx context.Context) {
	for {
		if err := s.ensure(ctx); err != nil {
			s.set(Hook{}, false)
			s.Log.DebugContext(ctx, "subscribe to the pushes of a vendor", "error", err)
		}
		select {
		case <-time.After(checkInterval*3/4 + rand.N(checkInterval/2)):
		case <-ctx.Done():
			return
		}
	}
}

// ensure subscribes unless the vendor has the stored subscription. It ends others at the same URL, whose secrets are
// unknown, and those at former URLs.
func (s *Subscription) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	urls, err := s.URLs(ctx)
	if err != nil || len(urls) == 0 {
		return err
	}
	stored, err := s.stored(ctx)
	if err != nil {
		return err
	}
	known, err := s.List(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, h := range known {
		switch {
		case h.ID == stored.ID && h.URL == urls[0] && stored.Secret != "":
			found = true
		case slices.ContainsFunc(urls, func(u string) bool { return samePath(u, h.URL) }):
			_ = s.Delete(ctx, h.ID) // a failure leaves a subscription whose pushes are refused
		}
	}
	if found {
		s.set(stored, true)
		return nil
	}
	made, err := s.Create(ctx, urls[0])
	if err != nil {
		return err
	}
	made.URL = urls[0]
	data, err := json.Marshal(made)
	if err != nil {
		return adapter.Errorf(adapter.Transient, "the subscription cannot be stored")
	}
	if err := s.Secrets.Store(ctx, adapter.SubscriptionSecret, data); err != nil {
		return err
	}
	s.set(made, true)
	return nil
}

func (s *Subscription) stored(ctx context.Context) (h Hook, err error) {
	data, err := s.Secrets.Load(ctx, adapter.SubscriptionSecret)
	if err == nil {
		_ = json.Unmarshal(data, &h) // nothing is stored at first
	}
	return h, err
}

// samePath reports whether two URLs have the same path. The path contains the server's secret and is therefore unique.
func samePath(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Path == v.Path && len(u.Path) > 1
}

// Receive reads a push and verifies its signature. It returns false after a refusal: 405 for methods other than POST,
// 413 for a large push, 400 for an incomplete one, and 401 for one that is not signed with the stored secret.
func (s *Subscription) Receive(w http.ResponseWriter, r *http.Request) (push []byte, ok bool) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return nil, false
	}
	push, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxPush))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case !s.verified(r, push):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		return push, true
	}
	return nil, false
}

// verified reports whether the stored secret signs a push. Another instance may have stored another secret.
func (s *Subscription) verified(r *http.Request, push []byte) bool {
	known := s.secret()
	if known != "" && s.IsSigned(r.Header, push, known) {
		return true
	}
	if s.Secrets == nil {
		return false
	}
	h, err := s.stored(r.Context())
	if err != nil || h.Secret == "" || h.Secret == known || !s.IsSigned(r.Header, push, h.Secret) {
		return false
	}
	s.set(h, true)
	return true
}

// Reachable returns URLs without those that a vendor at base cannot reach: a vendor on the Internet accepts only https.
func Reachable(
	base string, urls func(context.Context) ([]string, error),
) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := urls(ctx)
		if err != nil || len(all) == 0 || strings.HasPrefix(all[0], "https://") || strings.HasPrefix(base, "http://") {
			return all, err
		}
		return nil, nil
	}
}
