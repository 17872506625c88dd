package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// openGateway is a zwave-js-server without locks and without a password. home is its network. listened is the number of
// clients that have started to listen.
type openGateway struct {
	address  string
	home     atomic.Uint32
	greeted  atomic.Int64 // since hangUp
	listened atomic.Int64
	mu       sync.Mutex
	conns    []*websocket.Conn
}

// hangUp closes all connections.
func (g *openGateway) hangUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.greeted.Store(0)
	for _, c := range g.conns {
		_ = c.CloseNow()
	}
	g.conns = nil
}

func newOpenGateway(t *testing.T, home uint32) *openGateway {
	t.Helper()
	g := &openGateway{}
	g.home.Store(home)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.address = strings.Replace(server.URL, "http", "ws", 1)
	return g
}

func (g *openGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	g.mu.Lock()
	g.conns = append(g.conns, c)
	g.mu.Unlock()
	g.greeted.Add(1)
	_ = c.Write(
		r.Context(),
		websocket.MessageText,
		fmt.Appendf(
			nil,
			`{"type":"version","homeId":%d,"driverVersion":"15.29.0","serverVersion":"3.10.2","minSchemaVersion":0,"maxSchemaVersion":50}`,
			g.home.Load(),
		),
	)
	for {
		_, b, err := c.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			ID      string `json:"messageId"`
			Command string `json:"command"`
		}
		if json.Unmarshal(b, &m) != nil {
			return
		}
		if m.Command == "start_listening" {
			g.listened.Add(1)
		}
		_ = c.Write(
			r.Context(),
			websocket.MessageText,
			fmt.Appendf(nil, `{"type":"result","success":true,"messageId":%q,"result":{"state":{"nodes":[]}}}`, m.ID),
		)
	}
}

// aliases returns different spellings of the address.
func (g *openGateway) aliases() []string {
	at := func(host string) string { return strings.Replace(g.address, "127.0.0.1", host, 1) }
	return []string{g.address + "/x", at("localhost"), at("[::ffff:127.0.0.1]"), at("LOCALHOST"), g.address + "?x"}
}

// A connected gateway is recognized by its identity, whatever address a login uses.
func TestGateway_RecognizedByIdentity(t *testing.T) {
	t.Parallel()
	g := newOpenGateway(t, 0x7e570010)
	b := newStrangers(t)
	admin := app.Admin{Access: b.s.App.Access}
	account, err := admin.Connect(
		t.Context(),
		b.workspace,
		"The house",
		&zwavejs.Connection{Config: zwavejs.Config{URL: g.address}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, alias := range append(g.aliases(), g.address) {
		if status := b.logIn("zwave_js", url.Values{"url": {alias}}); status != http.StatusConflict {
			t.Errorf("%s: %d", alias, status)
		}
	}
	if got := b.reached(); len(got) > 0 {
		t.Errorf("Mallory reaches %v; the operator has connected %s", got, account)
	}
	// An operator may connect the gateway again.
	second, err := admin.Connect(
		t.Context(),
		b.workspace,
		"The house again",
		&zwavejs.Connection{Config: zwavejs.Config{URL: g.aliases()[1]}},
	)
	if err != nil {
		t.Fatalf("connected twice by the operator: %v", err)
	}
	apptest.Until(t, "both are listened to", func() bool { return g.listened.Load() >= 2 })
	for _, id := range []uuid.UUID{account, second} {
		if problem, err := b.s.App.Access.Accounts.AccountProblem(t.Context(), id); err != nil || problem != "" {
			t.Errorf("account %s: %q %v", id, problem, err)
		}
	}
	// Another network is another gateway, even if all else is equal.
	other := newOpenGateway(t, 0x7e570011)
	if status := b.logIn("zwave_js", url.Values{"url": {other.address}}); status != http.StatusSeeOther {
		t.Errorf("a gateway of one's own: %d", status)
	}
	if got := b.reached(); len(got) != 1 || slices.Contains(got, account.String()) {
		t.Errorf("after that %v is reached", got)
	}
}

// Of two concurrent logins at two addresses of one gateway, one is first.
func TestGateway_ConcurrentLoginsAtTwoAddresses(t *testing.T) {
	t.Parallel()
	b := newStrangers(t)
	for round := range uint32(5) {
		g := newOpenGateway(t, 0x7e570050+round)
		before := len(b.reached())
		pages := []string{b.page(), b.page()}
		var both sync.WaitGroup
		for i, address := range []string{g.address, g.aliases()[1]} {
			both.Go(func() {
				client := http.Client{
					CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
				}
				if res, err := client.PostForm(pages[i]+"/zwave_js", url.Values{"url": {address}}); err != nil {
					t.Error(err)
				} else {
					res.Body.Close()
				}
			})
		}
		both.Wait()
		if n := len(b.reached()) - before; n != 1 {
			t.Errorf("it is connected %d times", n)
		}
	}
}

// The gateway of an account from before gateways were stored is stored once the adapter has reached it.
func TestGateway_StoredForOldAccounts(t *testing.T) {
	t.Parallel()
	g := newOpenGateway(t, 0x7e570020)
	b := newStrangers(t)
	_, err := b.s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID: b.workspace,
			Adapter:     "zwavejs",
			DisplayName: "The house",
			Address:     g.address,
			Config:      fmt.Appendf(nil, `{"url":%q}`, g.address),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	apptest.Until(t, "it is listened to", func() bool { return g.listened.Load() > 0 })
	if status := b.logIn("zwave_js", url.Values{"url": {g.aliases()[1]}}); status != http.StatusConflict {
		t.Errorf("by another address: %d", status)
	}
	if got := b.reached(); len(got) > 0 {
		t.Errorf("Mallory reaches %v", got)
	}
}

// A host name that leads to the attacker's own gateway at the login may lead to another account's gateway later.
func TestGateway_AddressLaterLeadsToAnother(t *testing.T) {
	t.Parallel()
	house, decoy := newOpenGateway(t, 0x7e570030), newOpenGateway(t, 0x7e570031)
	b := newStrangers(t)
	admin := app.Admin{Access: b.s.App.Access}
	if _, err := admin.Connect(
		t.Context(),
		b.workspace,
		"The house",
		&zwavejs.Connection{Config: zwavejs.Config{URL: house.address}},
	); err != nil {
		t.Fatal(err)
	}
	if status := b.logIn("zwave_js", url.Values{"url": {decoy.address}}); status != http.StatusSeeOther {
		t.Fatalf("a gateway of one's own: %d", status)
	}
	mine := uuid.MustParse(b.reached()[0])
	ctx := t.Context()
	if err := b.s.App.Access.Accounts.RecordGateway(ctx, mine, "7e570030", true); err == nil {
		t.Error("an account of a page is assigned the gateway of another account")
	}
	apptest.Until(t, "it is listened to", func() bool { return decoy.listened.Load() > 0 })
	listened := decoy.listened.Load()
	decoy.home.Store(0x7e570030) // as if the host name led to the house
	decoy.hangUp()
	apptest.Until(t, "the server disconnects from it", func() bool { return decoy.greeted.Load() >= 3 })
	if n := decoy.listened.Load(); n != listened {
		t.Errorf("the gateway of another account is listened to %d times", n-listened)
	}
	admin.Connecting.AllowPrefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	all, err := admin.Accounts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a app.ConnectedAccount) bool { return a.ID == mine })
	if err := admin.Reconnect(
		ctx,
		mine,
		"Mine",
		all[i].Connection,
	); err == nil ||
		!strings.Contains(err.Error(), "connected as another account") {
		t.Errorf("a change by the operator that sets no address: %v", err)
	}
	decoy.home.Store(0x7e570031)
	apptest.Until(
		t,
		"the server listens again once the gateway is the original one",
		func() bool { return decoy.listened.Load() > listened },
	)
	if err := b.s.App.Access.Accounts.RecordGateway(ctx, mine, "7e570032", true); err != nil {
		t.Errorf("another stick in one's own gateway: %v", err)
	}
	if err := b.s.App.Access.Accounts.RecordGateway(ctx, mine, "", true); err != nil {
		t.Errorf("one that does not say which it is: %v", err)
	}
}

// Proof of a password at one's own address proves nothing about the gateway, since a server there may claim any
// identity.
func TestGateway_ClaimedIdentityProvesNothing(t *testing.T) {
	t.Parallel()
	house, own := newOpenGateway(t, 0x7e570040), newOpenGateway(t, 0x7e570040)
	proxy := httptest.NewServer(
		http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) { // to the attacker's own gateway; the house stays unchanged
				if _, password, _ := r.BasicAuth(); password != "secret" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				own.ServeHTTP(w, r)
			},
		),
	)
	t.Cleanup(proxy.Close)
	b := newStrangers(t)
	admin := app.Admin{Access: b.s.App.Access}
	if _, err := admin.Connect(
		t.Context(),
		b.workspace,
		"The house",
		&zwavejs.Connection{Config: zwavejs.Config{URL: house.address}},
	); err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"url":      {strings.Replace(proxy.URL, "http", "ws", 1)},
		"username": {"mallory"},
		"password": {"secret"},
	}
	if status := b.logIn("zwave_js", form); status != http.StatusConflict {
		t.Errorf("with a password of one's own: %d", status)
	}
	if got := b.reached(); len(got) > 0 {
		t.Errorf("Mallory reaches %v", got)
	}
	own.home.Store(0x7e570041)
	for range 2 { // the second login finds the same account
		if status := b.logIn("zwave_js", form); status != http.StatusSeeOther {
			t.Errorf("another gateway with a password: %d", status)
		}
	}
	if got := b.reached(); len(got) != 1 {
		t.Errorf("Mallory reaches %v", got)
	}
}

// The same for Zigbee, by its coordinator, behind a broker that everyone may read.
func TestGateway_ZigbeeRecognizedByCoordinator(t *testing.T) {
	t.Parallel()
	broker := zigbee.OpenBroker(t, "operator", "right-secret")
	announce(t, broker, "zigbee2mqtt", "operator", "right-secret", "0x00124B0014D9A1F0")
	b := newStrangers(t)
	admin := app.Admin{Access: b.s.App.Access}
	account, err := admin.Connect(
		t.Context(),
		b.workspace,
		"The house",
		&zigbee2mqtt.Connection{
			Config: zigbee2mqtt.Config{
				Broker:   "mqtt://" + broker,
				Topic:    "zigbee2mqtt",
				Username: "operator",
				Password: "right-secret",
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "[::ffff:127.0.0.1]"} {
		at := "mqtt://" + strings.Replace(broker, "127.0.0.1", host, 1)
		if status := b.logIn(
			"zigbee2mqtt",
			url.Values{"broker": {at}, "topic": {"zigbee2mqtt"}},
		); status != http.StatusConflict {
			t.Errorf("%s: %d", at, status)
		}
	}
	if got := b.reached(); len(got) > 0 {
		t.Errorf("Mallory reaches %v; the operator has connected %s", got, account)
	}
	announce(t, broker, "upstairs", "operator", "right-secret", "0x00124b0014d9a1f1")
	if status := b.logIn(
		"zigbee2mqtt",
		url.Values{"broker": {"mqtt://" + broker}, "topic": {"upstairs"}},
	); status != http.StatusSeeOther {
		t.Errorf("another network behind the same broker: %d", status)
	}
}
