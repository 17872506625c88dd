package app

import (
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
