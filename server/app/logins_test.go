package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// The server dials an address from a connect page only where the operator allows it. An address of the operator has no
// limit.
func TestGuard_AddressesOfConnectPages(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(gateway.Close)
	at := strings.Replace(gateway.URL, "http", "ws", 1)
	loopback := Connecting{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	written := func(c adapter.Connection) []byte {
		t.Helper()
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	zwave, zigbee := zwavejs.Config{URL: at}, zigbee2mqtt.Config{Broker: at, Topic: "z"}
	marked := adapter.PageOrigin{FromWebview: true}
	for _, c := range []struct{ entered, connected adapter.Connection }{
		{&zwavejs.Connection{Config: zwave, PageOrigin: marked}, &zwavejs.Connection{Config: zwave}},
		{&zigbee2mqtt.Connection{Config: zigbee, PageOrigin: marked}, &zigbee2mqtt.Connection{Config: zigbee}},
	} {
		name := c.entered.Adapter()
		entered, connected := written(c.entered), written(c.connected)
		read, err := Connecting{}.connection(account.Account{Adapter: name, Config: entered})
		if err != nil {
			t.Fatal(err)
		}
		for what, one := range map[string]struct {
			config []byte
			in     Connecting
			dials  bool
		}{
			"entered, in a network that is not allowed":      {entered, Connecting{}, false},
			"entered, in one that is":                        {entered, loopback, true},
			"connected by the operator":                      {connected, Connecting{}, true},
			"from a page, then changed by the operator":      {written(read), Connecting{}, false},
			"changed by the operator, in an allowed network": {written(read), loopback, true},
		} {
			before := asked.Load()
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(time.Minute))
			v := &vendors{connecting: one.in, log: slog.New(slog.DiscardHandler), sandbox: &Sandbox{}}
			a, err := v.openers()[name](ctx, account.Account{Adapter: name, Config: one.config})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Devices(ctx); err == nil {
				t.Errorf("%s, %s: there are devices", name, what)
			}
			cancel()
			if dialled := asked.Load() > before; dialled != one.dials {
				t.Errorf("%s, %s: dialled: %v", name, what, dialled)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What only the operator can mend is logged with what to do. People read words without flags.
func TestLogIn_OperatorErrors(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{})
	for errcode, logged := range map[int]string{
		10000: "--vendor-client",
		10001: "--vendor-client-secret-file",
		30006: "accepts no more calls",
		30007: "upgrade the application's plan",
		30008: "--url https://cnapi.ttlock.com",
		80000: "the clock of this server",
		10007: "", // a wrong password
		-4043: "",
	} {
		cloud.RefuseAll(errcode)
		var log bytes.Buffer
		l := &logins{
			Connecting: Connecting{
				Vendors: []adapter.Vendor{ttlock.VendorAt(cloud.URL)},
				Clients: map[string]adapter.Client{
					ttlock.Name: {ID: ttlocktest.ClientID, Secret: ttlocktest.ClientSecret},
				},
			},
			log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		_, err := l.LogIn(t.Context(), account.Workspace{}, ttlock.Name, map[string]string{
			"username": ttlocktest.Username,
			"password": ttlocktest.Password,
		})
		refused, ok := errors.AsType[*login.Refusal](err)
		if !ok || refused.Message == "" || namesSetting(refused.Message) {
			t.Errorf("errcode %d: the page says %v", errcode, err)
		}
		text := log.String()
		if !strings.Contains(text, logged) || (text != "") != (logged != "") ||
			logged != "" && (!strings.Contains(text, "level=WARN") || !strings.Contains(text, "adapter=ttlock")) {
			t.Errorf("errcode %d: the log says %q", errcode, text)
		}
		for secret := range ttlocktest.Secrets() {
			if strings.Contains(text+err.Error(), secret) {
				t.Errorf("errcode %d: a secret is shown", errcode)
			}
		}
	}
}

// No page of any vendor shows a flag or a variable.
func TestRefusal_NamesNoSetting(t *testing.T) {
	t.Parallel()
	for _, v := range registry.All() {
		if v.Login == nil {
			continue
		}
		for _, class := range []adapter.Class{
			adapter.Invalid, adapter.GatewayDown, adapter.Transient, adapter.AuthRevoked, adapter.NotSupported,
		} {
			for _, message := range []string{"set --vendor-client", "set DEVICEACCESS_GATEWAY_TOKEN"} {
				err := adapter.Errorf(class, "%s", message)
				refused, ok := errors.AsType[*login.Refusal](refusal(v, err))
				if !ok || refused.Message == "" || namesSetting(refused.Message) {
					t.Errorf("%s, %s: the page says %v", v.Adapter, class, refused)
				}
				if class == adapter.Invalid && !v.EntersAddress && !concernsOperator(v, err) {
					t.Errorf("%s: the operator does not learn that %s", v.Adapter, message)
				}
			}
		}
	}
}

// A password without a user is rejected, not ignored.
func TestLogIn_PasswordNeedsUser(t *testing.T) {
	t.Parallel()
	l := &logins{Connecting: Connecting{Gateways: true}}
	_, err := l.LogIn(
		t.Context(),
		account.Workspace{},
		"zwave_js",
		map[string]string{"url": "ws://127.0.0.1:1", "password": "secret"},
	)
	if refused, ok := errors.AsType[*login.Refusal](err); !ok || refused.Field != "username" {
		t.Errorf("%v", err)
	}
}
