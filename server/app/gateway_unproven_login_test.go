package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A holder of the publishable key, which is no secret, guesses the address of a gateway without a password in a network
// that only the server reaches. The login must not give access to the workspace's account or change its connection.
func TestGateway_UnprovenLoginGetsNoAccess(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.Write(
			r.Context(),
			websocket.MessageText,
			[]byte(
				`{"type":"version","homeId":2119630849,"driverVersion":"15.29.0","serverVersion":"3.10.2","minSchemaVersion":0,"maxSchemaVersion":50}`,
			),
		)
		for {
			_, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			var m struct {
				ID string `json:"messageId"`
			}
			json.Unmarshal(b, &m)
			c.Write(
				r.Context(),
				websocket.MessageText,
				fmt.Appendf(
					nil,
					`{"type":"result","success":true,"messageId":%q,"result":{"state":{"nodes":[]}}}`,
					m.ID,
				),
			)
		}
	}))
	t.Cleanup(gateway.Close)
	address := strings.Replace(gateway.URL, "http", "ws", 1)
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithConnecting(
			app.Connecting{Gateways: true, AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		),
	)
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
	account, err := s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID: w.ID,
			Adapter:     "zwavejs",
			DisplayName: "The house",
			Address:     address,
			Config:      fmt.Appendf(nil, `{"url":%q,"time_zone":"Europe/Berlin"}`, address),
		},
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
	token := mallory.ClientSession.Token
	var page api.ConnectWebviewResponse
	if status := s.PostAs(t, token, "/connect_webviews/create", map[string]any{}, &page); status != http.StatusOK {
		t.Fatal(status)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(page.ConnectWebview.URL+"/zwave_js", url.Values{"url": {address}})
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusConflict {
		t.Errorf("the login: %d", res.StatusCode)
	}
	res.Body.Close()
	var now api.ClientSessionResponse
	s.PostAs(t, token, "/client_sessions/get", map[string]any{}, &now)
	if got := now.ClientSession.ConnectedAccountIds; len(got) != 0 {
		t.Errorf("mallory reaches %v; the operator has connected %s", got, account)
	}
	kept, err := s.App.Access.Accounts.GetAccount(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(kept.Config), "Berlin") {
		t.Errorf("the operator's account is reached by %s", kept.Config)
	}
}
