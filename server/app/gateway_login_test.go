package app_test

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// Connecting a gateway on a page twice gives the same account.
func TestGateway_ConnectedOnPageTwice(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Plain)
	g.Lease(t, zigbee.Plain)
	allowed := app.Connecting{
		Gateways:      true,
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(allowed))
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	user, password := g.User(t)
	logIn := func(password string) (api.ConnectWebview, int, string) {
		t.Helper()
		var page api.ConnectWebviewResponse
		if status := s.PostAs(
			t,
			key,
			"/connect_webviews/create",
			map[string]any{"wait_for_device_creation": true},
			&page,
		); status != http.StatusOK {
			t.Fatalf("create a webview: %d", status)
		}
		client := http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		res, err := client.PostForm(
			page.ConnectWebview.URL+"/zigbee2mqtt",
			url.Values{"broker": {g.Broker}, "topic": {zigbee.Topic}, "username": {user}, "password": {password}},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return page.ConnectWebview, res.StatusCode, string(body)
	}
	authorized := func(page api.ConnectWebview) string {
		t.Helper()
		var now api.ConnectWebviewResponse
		apptest.Until(t, "the gateway's locks are there", func() bool {
			s.PostAs(t, key, "/connect_webviews/get", map[string]any{"connect_webview_id": page.ConnectWebviewID}, &now)
			return now.ConnectWebview.Status == "authorized"
		})
		return *now.ConnectWebview.ConnectedAccountID
	}
	if _, status, body := logIn(
		"mistyped-secret",
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "rejects this user and password") {
		t.Fatalf("a wrong password: %d %s", status, body)
	}
	page, status, body := logIn(password)
	if status != http.StatusSeeOther {
		t.Fatalf("the right password: %d %s", status, body)
	}
	account := authorized(page)
	var devices api.DevicesResponse
	if s.PostAs(
		t,
		key,
		"/devices/list",
		map[string]any{"connect_webview_id": page.ConnectWebviewID},
		&devices,
	); len(devices.Devices) != 1 ||
		devices.Devices[0].ConnectedAccountID != account {
		t.Fatalf("its devices are %+v", devices.Devices)
	}
	page, status, body = logIn(password)
	if status != http.StatusSeeOther {
		t.Fatalf("again: %d %s", status, body)
	}
	if again := authorized(page); again != account {
		t.Errorf("the same gateway is another account, %s", again)
	}
}
