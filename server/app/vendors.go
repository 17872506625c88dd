package app

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	acsreconcile "github.com/deviceaccess/terraform-provider-deviceaccess/server/acs/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// vendorsPath is the path prefix of vendors' events: /vendors/<account>/<secret>.
const vendorsPath = "/vendors/"

// vendors opens the adapters of accounts, and forwards events of vendors to them.
type vendors struct {
	access     *access.Services
	adapters   *reconcile.Adapters
	sandbox    *Sandbox
	url        string // where this server listens
	pushes     string // where vendors reach this server or one of several
	log        *slog.Logger
	traces     *traces.Traces
	connecting Connecting // networks of gateways from connect pages
	renewals   *renewals  // of the secrets of all accounts
	appPushes  appPushLimiters
	unverified onceEach // warnings by adapter

	ctx    context.Context // ends with the server
	cancel context.CancelFunc
}

func newVendors(
	ctx context.Context,
	a *access.Services,
	s *Sandbox,
	url, public string,
	entered Connecting,
	log *slog.Logger,
) *vendors {
	v := &vendors{
		access:     a,
		sandbox:    s,
		url:        url,
		pushes:     strings.TrimRight(cmp.Or(public, url), "/"),
		connecting: entered,
		renewals:   newRenewals(),
		log:        log,
	}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return v
}

// all returns the registered and the simulated vendors, by adapter.
func (v *vendors) all() map[string]adapter.Vendor {
	out := map[string]adapter.Vendor{}
	for _, one := range append(v.connecting.Registered(), simulatedVendors(v.sandbox, v.url)...) {
		out[one.Adapter] = one
	}
	return out
}

// openers returns the openers of the adapters of devices.
func (v *vendors) openers() map[string]reconcile.Opener {
	out := map[string]reconcile.Opener{}
	for name, vendor := range v.all() {
		if !vendor.IsAccessSystem() {
			out[name] = v.opener(vendor)
		}
	}
	return out
}

func (v *vendors) opener(vendor adapter.Vendor) reconcile.Opener {
	return func(ctx context.Context, account account.Account) (adapter.Adapter, error) {
		c, err := readConnection(vendor, account)
		if err != nil {
			return nil, err
		}
		if startsReadOnly(vendor) {
			v.unverified.Do(vendor.Adapter, func() {
				v.log.WarnContext(ctx, "the adapter of a vendor has never met the vendor",
					"adapter", vendor.Adapter, "tested", vendor.Verification.String())
			})
		}
		d, ok := c.(adapter.DeviceConnection)
		if !ok {
			return nil, fmt.Errorf("the adapter %q has no devices", vendor.Adapter)
		}
		return d.Open(ctx, v.env(vendor, account, c))
	}
}

// accessOpeners returns the openers of the adapters of access systems.
func (v *vendors) accessOpeners() map[string]acsreconcile.Opener {
	out := map[string]acsreconcile.Opener{}
	for name, vendor := range v.all() {
		if vendor.IsAccessSystem() {
			out[name] = v.accessOpener(vendor)
		}
	}
	return out
}

func (v *vendors) accessOpener(vendor adapter.Vendor) acsreconcile.Opener {
	return func(ctx context.Context, account account.Account) (adapter.AccessSystems, error) {
		c, err := readConnection(vendor, account)
		if err != nil {
			return nil, err
		}
		s, ok := c.(adapter.SystemConnection)
		if !ok {
			return nil, fmt.Errorf("the adapter %q has no access systems", vendor.Adapter)
		}
		return s.OpenSystems(ctx, v.env(vendor, account, c))
	}
}

// env returns the environment of an account's connection.
func (v *vendors) env(vendor adapter.Vendor, account account.Account, c adapter.Connection) adapter.Env {
	e := v.connecting.env(vendor, nil)
	entered := isEntered(c)
	if entered {
		e.Guard = v.connecting.guard
	}
	e.Account, e.Workspace = account.ID.String(), account.WorkspaceID.String()
	e.Log = v.log.With("connected_account_id", account.ID)
	e.CheckGateway = v.storeGateway(account.ID, entered)
	at := v.pushes
	if vendor.Simulated && v.sandbox.own != nil { // a cloud in this process uses the local address
		at = v.url
	}
	if v.access != nil {
		e.Budget = budgetOf(vendor, v.access.Accounts, account.ID, e.Log)
		e.Secrets = &accountSecrets{
			accounts: v.access.Accounts,
			account:  account.ID,
			adapter:  vendor.Adapter,
			renewals: v.renewals,
		}
	}
	e.PushURLs = func(ctx context.Context) ([]string, error) {
		urls, err := v.secrets(ctx, account.ID)
		for i, secret := range urls {
			urls[i] = at + vendorsPath + account.ID.String() + "/" + secret
		}
		return urls, err
	}
	return e
}

// storeGateway returns a callback that stores the gateway that an account reaches. An address from a connect page must not reach
// the gateway of another account, since its host name can change its target at any time.
func (v *vendors) storeGateway(account uuid.UUID, entered bool) func(context.Context, string) error {
	return func(ctx context.Context, gateway string) error {
		err := v.access.Accounts.RecordGateway(ctx, account, gateway, entered)
		if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.Conflict {
			return adapter.Errorf(adapter.GatewayDown, "the gateway at this address is connected as another account")
		}
		if err != nil {
			v.log.WarnContext(
				ctx,
				"failed to store the gateway of an account",
				"connected_account_id",
				account,
				"error",
				err,
			)
			return adapter.Errorf(
				adapter.GatewayDown,
				"the server could not determine which account the gateway belongs to; it retries",
			)
		}
		return nil
	}
}

func tryLater(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}

// secrets returns the secrets that are accepted in the URL of an account, the current one first.
func (v *vendors) secrets(ctx context.Context, account uuid.UUID) (all []string, err error) {
	return pushSecrets(ctx, v.access.ServerKeys, account[:])
}

// pushSecrets returns the secrets in a push URL of an owner, the current one first.
func pushSecrets(ctx context.Context, keys *keyrotation.Service, owner []byte) (all []string, err error) {
	found, err := keys.ServerKeys(ctx, keyrotation.VendorPushes)
	for _, key := range found {
		h := hmac.New(sha256.New, key)
		h.Write(owner)
		all = append(all, hex.EncodeToString(h.Sum(nil)[:16]))
	}
	return all, err
}

// ServeHTTP receives events of vendors. Without the account's secret, it answers 404 for every account.
func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, appPushPath) {
		v.receiveAppPush(w, r)
		return
	}
	id, secret, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, vendorsPath), "/")
	account, err := uuid.Parse(id)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	secrets, err := v.secrets(r.Context(), account)
	if err != nil {
		v.log.Warn("received a vendor's event, and the keys of push URLs cannot be read", "error", err)
		tryLater(w, r)
		return
	}
	if !slices.ContainsFunc(secrets, func(s string) bool { return hmac.Equal([]byte(secret), []byte(s)) }) {
		http.NotFound(w, r)
		return
	}
	span := v.traces.Request(r.Context(), nil, time.Now(), r.Method, vendorsPath+"{account}")
	seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	defer func() {
		span.Set(traces.Status(cmp.Or(seen.Status(), http.StatusOK)))
		span.End()
	}()
	span.Set(traces.Account(account))
	w, r = seen, r.WithContext(span.NewContext(r.Context()))
	a, err := v.adapters.ForPush(r.Context(), account)
	if err != nil {
		span.Fail("unreachable")
		v.log.Warn(
			"received a vendor's event for an account that cannot be opened",
			"connected_account_id",
			account,
			"error",
			err,
		)
		tryLater(w, r)
		return
	}
	receiver, ok := a.(interface {
		Receive(http.ResponseWriter, *http.Request)
	})
	if !ok {
		http.NotFound(w, r)
		return
	}
	receiver.Receive(w, r)
}

// onceEach runs a function once for each key.
type onceEach struct {
	mu   sync.Mutex
	done map[string]bool
}

// Do runs f unless it has run for the key.
func (o *onceEach) Do(key string, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done[key] {
		return
	}
	if o.done == nil {
		o.done = map[string]bool{}
	}
	o.done[key] = true
	f()
}
