package app

import (
	"context"
	"crypto/hmac"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
)

// appPushPath is the path prefix of pushes to the operator's applications: /vendors/app/<adapter>/<secret>. Account
// identifiers are UUIDs, so no account has this path.
const appPushPath = vendorsPath + "app/"

// Limits of the pushes of one application.
const (
	appPushLimit       = 256 << 10 // bytes
	appPushesPerSec    = 100
	appPushBurst       = 500
	maxEventsOfAppPush = 1000
)

// appPushOwner is what the secret of an application's URL is derived from.
func appPushOwner(adapterName string) []byte { return []byte("app/" + adapterName) }

// appPushURL returns where a vendor sends the pushes of all accounts of the operator's application.
func appPushURL(ctx context.Context, keys *keyrotation.Service, base, adapterName string) (string, error) {
	all, err := pushSecrets(ctx, keys, appPushOwner(adapterName))
	if err != nil {
		return "", err
	}
	return strings.TrimRight(base, "/") + appPushPath + adapterName + "/" + all[0], nil
}

// AppPushURL returns the URL that an operator enters at a vendor that sends the pushes of all accounts to one URL. base is
// the URL at which vendors reach the server. It returns an error for other vendors.
func (a *Admin) AppPushURL(ctx context.Context, adapterName, base string) (string, error) {
	v, ok := a.Connecting.vendorOf(adapterName)
	if !ok || v.AppPush == nil {
		return "", fmt.Errorf("%q is no vendor that sends the pushes of all accounts to one URL", adapterName)
	}
	return appPushURL(ctx, a.Access.ServerKeys, base, adapterName)
}

// appPushLimiters limit the pushes by vendor.
type appPushLimiters struct {
	mu  sync.Mutex
	all map[string]*rate.Limiter
}

func (l *appPushLimiters) allow(adapterName string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.all[adapterName]
	if one == nil {
		if l.all == nil {
			l.all = map[string]*rate.Limiter{}
		}
		one = rate.NewLimiter(appPushesPerSec, appPushBurst)
		l.all[adapterName] = one
	}
	return one.Allow()
}

// receiveAppPush receives a push to the operator's application. Without the secret, it answers 404 for every vendor.
func (v *vendors) receiveAppPush(w http.ResponseWriter, r *http.Request) {
	name, secret, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, appPushPath), "/")
	vendor, known := v.connecting.vendorOf(name)
	accepted, err := pushSecrets(r.Context(), v.access.ServerKeys, appPushOwner(name))
	switch {
	case err != nil:
		v.log.Warn("received a vendor's event, and the keys of push URLs cannot be read", "error", err)
		tryLater(w, r)
		return
	case !slices.ContainsFunc(accepted, func(s string) bool { return hmac.Equal([]byte(secret), []byte(s)) }),
		!known || vendor.AppPush == nil:
		http.NotFound(w, r)
		return
	case !v.appPushes.allow(name):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, appPushLimit)
	push, err := vendor.AppPush(r)
	if err != nil || len(push.Events) > maxEventsOfAppPush { // the error may quote a PIN
		http.Error(w, "the push cannot be read", http.StatusBadRequest)
		return
	}
	for _, e := range push.Events {
		if err := v.forward(r.Context(), vendor.Adapter, e); err != nil {
			v.log.Warn("failed to forward a vendor's event", "adapter", vendor.Adapter, "error", err)
			tryLater(w, r)
			return
		}
	}
	_, _ = io.WriteString(w, push.Response) // the vendor repeats a push whose response is lost
}

// forward sends an event to the adapters of the accounts that it concerns.
func (v *vendors) forward(ctx context.Context, adapterName string, e adapter.AppEvent) error {
	ids, err := v.access.Accounts.AccountsOfPush(ctx, adapterName, e.Address, string(e.Event.Device))
	if err != nil {
		return err
	}
	for _, id := range ids {
		a, err := v.adapters.ForPush(ctx, id)
		if err != nil {
			return err
		}
		if receiver, ok := a.(adapter.EventReceiver); ok && !receiver.ReceiveEvent(e.Event) {
			return fmt.Errorf("the adapter of account %s is closed", id)
		}
	}
	return nil
}
