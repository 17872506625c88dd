package nuki

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Limits of pushes.
const (
	pushLimit       = 256 << 10 // bytes
	pushesPerSecond = 100
	pushBurst       = 500
)

// Checks whether Nuki still has the subscription: it ends subscriptions whose pushes fail.
const (
	hookCheckInterval = 5 * time.Minute
	hookCheckTimeout  = 30 * time.Second
)

// signatureHeader has the hexadecimal HMAC-SHA256 of the body.
const signatureHeader = "X-Nuki-Signature-SHA256"

// features are the pushes to subscribe to.
var features = []string{"DEVICE_STATUS", "DEVICE_MASTERDATA", "DEVICE_CONFIG", "DEVICE_LOGS", "DEVICE_AUTHS"}

// webhook is the stored subscription.
type webhook struct {
	ID     int64  `json:"id"`
	URL    string `json:"webhookUrl"`
	Secret string `json:"secret"`
}

// subscription is the state of the subscription.
type subscription struct {
	mu      sync.Mutex
	current webhook
	alive   bool
	pushes  *rate.Limiter
}

// works reports whether Nuki has the subscription.
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

// staySubscribed subscribes, and subscribes again whenever Nuki has lost the subscription, until ctx ends. Without it,
// the poller finds all events later.
func (a *Adapter) staySubscribed(ctx context.Context) {
	for {
		if err := a.ensureSubscription(ctx); err != nil {
			a.hook.set(webhook{}, false)
			a.slog.DebugContext(ctx, "subscribe to the pushes of Nuki", "error", err)
		}
		select {
		case <-time.After(hookCheckInterval*3/4 + rand.N(hookCheckInterval/2)):
		case <-ctx.Done():
			return
		}
	}
}

// ensureSubscription subscribes unless Nuki has the stored subscription. It ends others at the same URL, whose secrets
// are unknown, and those at former URLs.
func (a *Adapter) ensureSubscription(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hookCheckTimeout)
	defer cancel()
	urls, err := a.pushURLs(ctx)
	if err != nil || len(urls) == 0 {
		return err
	}
	stored, err := a.storedSubscription(ctx)
	if err != nil {
		return err
	}
	var known adapter.List[webhook]
	if err := a.do(ctx, vendorhttp.Call{Path: "/api/decentralWebhook"}, &known); err != nil {
		return err
	}
	found := false
	for _, w := range known {
		switch {
		case w.ID == stored.ID && w.URL == urls[0] && stored.Secret != "":
			found = true
		case slices.ContainsFunc(urls, func(u string) bool { return samePath(u, w.URL) }):
			// A failure leaves a subscription whose pushes are refused.
			_ = a.do(ctx, vendorhttp.Call{
				Method: http.MethodDelete,
				Path:   "/api/decentralWebhook/" + strconv.FormatInt(w.ID, 10),
				Write:  true,
			}, nil)
		}
	}
	if found {
		a.hook.set(stored, true)
		return nil
	}
	return a.subscribe(ctx, urls[0])
}

func (a *Adapter) storedSubscription(ctx context.Context) (w webhook, err error) {
	data, err := a.secrets.Load(ctx, adapter.SubscriptionSecret)
	if err == nil {
		_ = json.Unmarshal(data, &w) // nothing is stored at first
	}
	return w, err
}

func (a *Adapter) subscribe(ctx context.Context, at string) error {
	var made webhook
	call := vendorhttp.Call{
		Method: http.MethodPut,
		Path:   "/api/decentralWebhook",
		JSON:   map[string]any{"webhookUrl": at, "webhookFeatures": features},
		Write:  true,
	}
	if err := a.do(ctx, call, &made); err != nil {
		return err
	}
	if made.Secret == "" {
		return adapter.Errorf(adapter.NotSupported, "Nuki's subscription has no secret that signs pushes")
	}
	made.URL = at
	data, err := json.Marshal(made)
	if err != nil {
		return adapter.Errorf(adapter.Transient, "the subscription cannot be stored")
	}
	if err := a.secrets.Store(ctx, adapter.SubscriptionSecret, data); err != nil {
		return err
	}
	a.hook.set(made, true)
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

func isSigned(header http.Header, body []byte, secret string) bool {
	if secret == "" {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	got, err := hex.DecodeString(header.Get(signatureHeader))
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

// wirePush is a push. The authorization has its PIN in clear.
type wirePush struct {
	Feature     string   `json:"feature"`
	SmartlockID int64    `json:"smartlockId"`
	Server      *int     `json:"serverState"`
	Auth        wireAuth `json:"smartlockAuth"`
	Log         wireLog  `json:"smartlockLog"`
}

// Receive serves the URL of the subscription. It responds with 204 to each signed push, because Nuki ends subscriptions
// whose pushes fail; with 405 to methods other than POST; with 401 to a push that is not signed with the stored secret;
// with 400 and 413 to an incomplete and to a large push; and with 503 after Close.
func (a *Adapter) Receive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushLimit))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case !a.verified(r, data):
		w.WriteHeader(http.StatusUnauthorized)
	case a.open.Err() != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		a.receive(data)
		w.WriteHeader(http.StatusNoContent)
	}
}

// receive sends the events of a signed push.
func (a *Adapter) receive(data []byte) {
	var p wirePush
	if !a.hook.pushes.Allow() || json.Unmarshal(data, &p) != nil {
		a.events.Send(adapter.Event{Kind: adapter.Resync})
		return
	}
	device := wireLock{ID: p.SmartlockID}.ref()
	switch p.Feature {
	case "DEVICE_STATUS":
		a.devices.forget()
		a.events.Send(a.seen.noteOnline(device, wireLock{Server: p.Server}.isOnline()))
	case "DEVICE_MASTERDATA", "DEVICE_CONFIG":
		a.devices.forget()
		a.events.Send(adapter.Event{Kind: adapter.DeviceListed})
	case "DEVICE_AUTHS":
		a.auths.forget()
		if p.Auth.Type == keypadCode && isID(p.Auth.ID) {
			ref := wireLock{ID: p.Auth.SmartlockID}.ref()
			a.events.Send(adapter.Event{Kind: adapter.CodesChanged, Device: ref, Code: adapter.CodeRef(p.Auth.ID)})
		}
	case "DEVICE_LOGS":
		if !isID(p.Log.ID) || !a.seen.isNew(p.Log.ID) {
			return
		}
		if e, ok := p.Log.event(); ok {
			a.events.Send(e)
		}
	}
}

// verified reports whether the stored secret signs a push. Another instance may have stored another secret.
func (a *Adapter) verified(r *http.Request, data []byte) bool {
	if isSigned(r.Header, data, a.hook.secret()) {
		return true
	}
	if a.secrets == nil {
		return false
	}
	w, err := a.storedSubscription(r.Context())
	if err != nil || w.Secret == a.hook.secret() || !isSigned(r.Header, data, w.Secret) {
		return false
	}
	a.hook.set(w, true)
	return true
}
