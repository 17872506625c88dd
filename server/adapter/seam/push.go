package seam

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Limits of pushes.
const (
	pushLimit       = 64 << 10 // bytes
	pushesPerSecond = 100
	pushBurst       = 500
	// signatureAge is how far the timestamp of a push may differ from this machine's clock (Standard Webhooks).
	signatureAge = 5 * time.Minute
)

// Checks whether the server still has the webhook.
const (
	webhookCheckInterval = 5 * time.Minute
	webhookCheckTimeout  = 30 * time.Second
)

// eventTypes are the events to subscribe to. The hosted API has had them since 2024; older servers reject newer ones.
var eventTypes = []string{
	"access_code.backup_access_code_pulled",
	"access_code.changed",
	"access_code.created",
	"access_code.delay_in_removing_from_device",
	"access_code.delay_in_setting_on_device",
	"access_code.deleted",
	"access_code.deleted_external_to_seam",
	"access_code.failed_to_remove_from_device",
	"access_code.failed_to_set_on_device",
	"access_code.modified_external_to_seam",
	"access_code.removed_from_device",
	"access_code.scheduled_on_device",
	"access_code.set_on_device",
	"access_code.unmanaged.converted_to_managed",
	"access_code.unmanaged.created",
	"access_code.unmanaged.failed_to_convert_to_managed",
	"access_code.unmanaged.removed",
	"connected_account.connected",
	"connected_account.deleted",
	"connected_account.disconnected",
	"device.battery_status_changed",
	"device.connected",
	"device.converted_to_unmanaged",
	"device.disconnected",
	"device.low_battery",
	"device.removed",
	"device.tampered",
	"device.unmanaged.converted_to_managed",
	"lock.locked",
	"lock.unlocked",
}

// webhook is the stored subscription.
type webhook struct {
	ID     string `json:"webhook_id"`
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// subscription is the state of the webhook.
type subscription struct {
	mu      sync.Mutex
	current webhook
	alive   bool
	pushes  *rate.Limiter
}

// works reports whether the server has the webhook.
func (s *subscription) works() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

func (s *subscription) set(w webhook, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.alive = w, alive
}

func (s *subscription) secret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Secret
}

// staySubscribed creates a webhook upstream, and creates it again whenever the server has lost it, until ctx ends.
// Without a webhook, the poller finds all events later.
func (a *Adapter) staySubscribed(ctx context.Context) {
	for {
		if err := a.ensureWebhook(ctx); err != nil {
			a.hook.set(webhook{}, false)
			a.slog.DebugContext(ctx, "subscribe to the events of the upstream server", "error", err)
		}
		select {
		case <-time.After(webhookCheckInterval*3/4 + rand.N(webhookCheckInterval/2)):
		case <-ctx.Done():
			return
		}
	}
}

// ensureWebhook creates a webhook unless the server has the stored one. It deletes others at the same URL, whose
// secrets are unknown, and those at former URLs.
func (a *Adapter) ensureWebhook(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, webhookCheckTimeout)
	defer cancel()
	urls, err := a.pushURLs(ctx)
	if err != nil || len(urls) == 0 {
		return err
	}
	var stored webhook
	data, err := a.secrets.Load(ctx, adapter.SubscriptionSecret)
	if err != nil {
		return err
	}
	_ = json.Unmarshal(data, &stored) // nothing is stored at first
	var known struct {
		Webhooks adapter.List[webhook] `json:"webhooks"`
	}
	if err := a.read(ctx, "/webhooks/list", map[string]any{}, &known); err != nil {
		return err
	}
	found := false
	for _, w := range known.Webhooks {
		switch {
		case w.ID == stored.ID && w.URL == urls[0] && stored.Secret != "":
			found = true
		case slices.ContainsFunc(urls, func(u string) bool { return samePath(u, w.URL) }):
			// A failure leaves a webhook whose pushes are refused.
			_, _ = a.do(ctx, call{path: "/webhooks/delete", body: map[string]any{"webhook_id": w.ID}, write: true}, nil)
		}
	}
	if found {
		a.hook.set(stored, true)
		return nil
	}
	return a.createWebhook(ctx, urls[0])
}

func (a *Adapter) createWebhook(ctx context.Context, at string) error {
	var made struct {
		Webhook webhook `json:"webhook"`
	}
	body := map[string]any{"url": at, "event_types": eventTypes}
	if _, err := a.do(ctx, call{path: "/webhooks/create", body: body, write: true}, &made); err != nil {
		return err
	}
	w := made.Webhook
	w.URL = at
	if _, err := signingKey(w.Secret); err != nil || w.ID == "" {
		return adapter.Errorf(adapter.NotSupported, "the server's webhooks have no secret that signs them")
	}
	data, err := json.Marshal(w)
	if err != nil {
		return adapter.Errorf(adapter.Transient, "the subscription cannot be stored")
	}
	if err := a.secrets.Store(ctx, adapter.SubscriptionSecret, data); err != nil {
		return err
	}
	a.hook.set(w, true)
	return nil
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

// signingKey decodes a secret of Standard Webhooks.
func signingKey(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 8 {
		return nil, errors.New("the secret is not of Standard Webhooks")
	}
	return key, nil
}

// isSigned reports whether a push is signed with a secret (Standard Webhooks 1.0; Svix uses other header names).
func isSigned(header http.Header, body []byte, secret string, now time.Time) bool {
	key, err := signingKey(secret)
	if err != nil {
		return false
	}
	for _, prefix := range []string{"webhook-", "svix-"} {
		id, sent := header.Get(prefix+"id"), header.Get(prefix+"timestamp")
		seconds, err := strconv.ParseInt(sent, 10, 64)
		if id == "" || err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > signatureAge {
			continue
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, sent)
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, got := range strings.Fields(header.Get(prefix + "signature")) {
			if hmac.Equal([]byte(got), []byte(want)) {
				return true
			}
		}
	}
	return false
}

// Receive serves the URL of the webhook. It responds with 204 to signed events; with 405 to methods other than POST;
// with 401 to a push that is not signed with the stored secret; with 400 to an unreadable one; with 413 to a push that
// is too large; with 429 above the rate limit; and with 503 after Close. The event log contains what it refuses.
func (a *Adapter) Receive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !a.hook.pushes.Allow() {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushLimit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !a.verified(r, data) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var e wireEvent
	if json.Unmarshal(data, &e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if a.open.Err() != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if out, ok := a.unhandled(e); ok {
		a.events.Send(out)
	}
	w.WriteHeader(http.StatusNoContent)
}

// verified reports whether the stored secret signs a push. Another instance may have stored another secret.
func (a *Adapter) verified(r *http.Request, data []byte) bool {
	if isSigned(r.Header, data, a.hook.secret(), time.Now()) {
		return true
	}
	stored, err := a.secrets.Load(r.Context(), adapter.SubscriptionSecret)
	var w webhook
	if err != nil || json.Unmarshal(stored, &w) != nil || w.Secret == a.hook.secret() {
		return false
	}
	if !isSigned(r.Header, data, w.Secret, time.Now()) {
		return false
	}
	a.hook.set(w, true)
	return true
}
