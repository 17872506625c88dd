package app

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	acsreconcile "github.com/deviceaccess/terraform-provider-deviceaccess/server/acs/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
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
		log:        log,
	}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return v
}

func (v *vendors) openers() map[string]reconcile.Opener {
	return map[string]reconcile.Opener{
		account.SandboxAdapter: v.openSandbox, "devicecloud": v.openDeviceCloud,
		"zwavejs": v.openZWaveJS, "zigbee2mqtt": v.openZigbee2MQTT,
	}
}

// accessOpeners returns the openers of the adapters of access systems.
func (v *vendors) accessOpeners() map[string]acsreconcile.Opener {
	return map[string]acsreconcile.Opener{
		account.SandboxAccessAdapter: v.openSandboxAccess,
		"accesscloud":                v.openAccessCloud,
	}
}

func (v *vendors) openAccessCloud(_ context.Context, account account.Account) (adapter.AccessSystems, error) {
	c, err := opened[AccessCloud](account)
	if err != nil {
		return nil, err
	}
	return accesscloud.New(accesscloud.Config{BaseURL: c.BaseURL, Token: c.Token, Log: v.log}), nil
}

// openSandboxAccess opens simulated access systems over HTTP, like those of a vendor.
func (v *vendors) openSandboxAccess(ctx context.Context, account account.Account) (adapter.AccessSystems, error) {
	token, err := v.sandbox.Token(ctx, account)
	if err != nil {
		return nil, err
	}
	return accesscloud.New(accesscloud.Config{BaseURL: v.sandbox.cloudURL(v.url), Token: token, Log: v.log}), nil
}

// opened decodes the connection of an account.
func opened[C any](account account.Account) (c C, err error) {
	if err := json.Unmarshal(account.Config, &c); err != nil {
		return c, fmt.Errorf("read the connection of account %s: its stored configuration is invalid", account.ID)
	}
	return c, nil
}

func (v *vendors) openDeviceCloud(ctx context.Context, account account.Account) (adapter.Adapter, error) {
	c, err := opened[DeviceCloud](account)
	if err != nil {
		return nil, err
	}
	return v.deviceCloud(ctx, account.ID, c, v.pushes)
}

func (v *vendors) openZWaveJS(_ context.Context, account account.Account) (adapter.Adapter, error) {
	c, err := opened[ZWaveJS](account)
	if err != nil {
		return nil, err
	}
	c.Log = v.log.With("connected_account_id", account.ID)
	c.dialWithin(v.connecting.guard)
	c.CheckGateway = v.storeGateway(account.ID, c.FromWebview)
	return zwavejs.New(c.Config)
}

func (v *vendors) openZigbee2MQTT(_ context.Context, account account.Account) (adapter.Adapter, error) {
	c, err := opened[Zigbee2MQTT](account)
	if err != nil {
		return nil, err
	}
	c.Log = v.log.With("connected_account_id", account.ID)
	c.dialWithin(v.connecting.guard)
	c.CheckGateway = v.storeGateway(account.ID, c.FromWebview)
	return zigbee2mqtt.New(c.Config)
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

// openSandbox opens simulated locks over HTTP, like those of a vendor.
func (v *vendors) openSandbox(ctx context.Context, account account.Account) (adapter.Adapter, error) {
	token, err := v.sandbox.Token(ctx, account)
	if err != nil {
		return nil, err
	}
	at := v.url // a cloud in this process uses the local address
	if v.sandbox.own == nil {
		at = v.pushes
	}
	return v.deviceCloud(ctx, account.ID, DeviceCloud{BaseURL: v.sandbox.cloudURL(v.url), Token: token}, at)
}

func (v *vendors) deviceCloud(
	ctx context.Context,
	account uuid.UUID,
	c DeviceCloud,
	at string,
) (adapter.Adapter, error) {
	urls, err := v.secrets(ctx, account)
	if err != nil {
		return nil, err
	}
	opened := urls[0]
	for i, secret := range urls {
		urls[i] = at + vendorsPath + account.String() + "/" + secret
	}
	a := devicecloud.New(devicecloud.Config{
		BaseURL:       c.BaseURL,
		Token:         c.Token,
		Provider:      c.Provider,
		PushURL:       urls[0],
		OtherPushURLs: urls[1:],
		Outdated: func() bool {
			now, err := v.secrets(v.ctx, account)
			return err == nil && now[0] != opened
		},
		Log: v.log.With("connected_account_id", account),
	})
	go a.StaySubscribed(v.ctx) // until it is subscribed, the server polls the devices
	return a, nil
}

func tryLater(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}

// secrets returns the secrets that are accepted in the URL of an account, the current one first.
func (v *vendors) secrets(ctx context.Context, account uuid.UUID) (all []string, err error) {
	keys, err := v.access.ServerKeys.ServerKeys(ctx, keyrotation.VendorPushes)
	for _, key := range keys {
		h := hmac.New(sha256.New, key)
		h.Write(account[:])
		all = append(all, hex.EncodeToString(h.Sum(nil)[:16]))
	}
	return all, err
}

// ServeHTTP receives events of vendors. Without the account's secret, it answers 404 for every account.
func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
