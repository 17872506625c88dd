package app_test

import (
	"context"
	"net"
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
)

// A login whose page is closed before the gateway answers does not count as rejected.
func TestGateway_AbandonedLoginIsNotRejected(t *testing.T) {
	t.Parallel()
	gateway, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gateway.Close() })
	answered := make(chan struct{}, 1)
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithConnecting(
			app.Connecting{Gateways: true, AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		),
		func(c *app.Config) {
			c.Wrap = func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r)
					if strings.HasSuffix(r.URL.Path, "/zwave_js") {
						answered <- struct{}{}
					}
				})
			}
		},
	)
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
	var page api.ConnectWebviewResponse
	if status := s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, &page); status != http.StatusOK {
		t.Fatalf("create a webview: %d", status)
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		if conn, err := gateway.Accept(); err == nil {
			leave()
			t.Cleanup(func() { conn.Close() })
		}
	}()
	body := url.Values{
		"url":      {"ws://" + gateway.Addr().String()},
		"username": {"jane"},
		"password": {"secret"},
	}.Encode()
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		page.ConnectWebview.URL+"/zwave_js",
		strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Fatalf("the login is answered %d", res.StatusCode)
	}
	<-answered
	var now api.ConnectWebviewResponse
	s.PostAs(
		t,
		key,
		"/connect_webviews/get",
		map[string]any{"connect_webview_id": page.ConnectWebview.ConnectWebviewID},
		&now,
	)
	if now.ConnectWebview.Status != "pending" {
		t.Errorf("the webview is %s", now.ConnectWebview.Status)
	}
}
