package app_test

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/eclipse/paho.golang/paho"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// strangers is a server that lets people connect gateways, and an attacker with its publishable key, which is no
// secret.
type strangers struct {
	*testing.T
	s         *apptest.Server
	workspace uuid.UUID
	mallory   string // token of a client session without access
}

func newStrangers(t *testing.T) strangers {
	t.Helper()
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(app.Connecting{
		Gateways:      true,
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}))
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	public, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PublishableKey, WorkspaceIDs: []uuid.UUID{w.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var mallory api.ClientSessionResponse
	s.Send(
		t,
		http.MethodPost,
		"/client_sessions/create",
		http.Header{"Seam-Publishable-Key": {public}},
		`{"user_identifier_key":"mallory"}`,
		&mallory,
	)
	return strangers{t, s, w.ID, mallory.ClientSession.Token}
}

// page creates a webview of the attacker.
func (b strangers) page() string {
	b.Helper()
	var page api.ConnectWebviewResponse
	if status := b.s.PostAs(
		b,
		b.mallory,
		"/connect_webviews/create",
		map[string]any{},
		&page,
	); status != http.StatusOK {
		b.Fatalf("create a webview: %d", status)
	}
	return page.ConnectWebview.URL
}

// logIn tries a login on a new page.
func (b strangers) logIn(vendor string, form url.Values) int {
	b.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(b.page()+"/"+vendor, form)
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// reached returns the accounts that the attacker can access.
func (b strangers) reached() []string {
	b.Helper()
	var now api.ClientSessionResponse
	b.s.PostAs(b, b.mallory, "/client_sessions/get", map[string]any{}, &now)
	return now.ClientSession.ConnectedAccountIds
}

// kept returns the stored connection of an account.
func (b strangers) kept(account uuid.UUID) string {
	b.Helper()
	a, err := b.s.App.Access.Accounts.GetAccount(b.Context(), account)
	if err != nil {
		b.Fatal(err)
	}
	return string(a.Config)
}

// announce publishes the retained messages of a Zigbee2MQTT without locks below a topic.
func announce(t *testing.T, broker, topic, user, password, coordinator string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", broker)
	if err != nil {
		t.Fatal(err)
	}
	client := paho.NewClient(paho.ClientConfig{ClientID: rand.Text(), Conn: conn})
	if _, err := client.Connect(
		t.Context(),
		&paho.Connect{
			ClientID:     client.ClientID(),
			CleanStart:   true,
			KeepAlive:    30,
			Username:     user,
			UsernameFlag: true,
			Password:     []byte(password),
			PasswordFlag: true,
		},
	); err != nil {
		t.Fatal(err)
	}
	info := map[string]any{
		"version":     "2.1.0",
		"coordinator": map[string]any{"ieee_address": coordinator},
		"config":      map[string]any{"advanced": map[string]any{"output": "json"}},
	}
	for name, v := range map[string]any{
		"bridge/state":   map[string]any{"state": "online"},
		"bridge/devices": []any{},
		"bridge/info":    info,
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Publish(
			t.Context(),
			&paho.Publish{
				Topic:   topic + "/" + name,
				Retain:  true,
				QoS:     1,
				Payload: b,
			},
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Disconnect(&paho.Disconnect{}); err != nil {
		t.Fatal(err)
	}
}
