package app_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

// createWebview creates a connect webview over a connection from a local address.
func createWebview(t *testing.T, s *apptest.Server, peer string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(peer)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/connect_webviews/create",
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.APIKey)
	return do(t, client, req)
}

// Only the headers of trusted proxies choose the links to connect pages. The server warns once about links without TLS.
func TestTrustedProxies_Links(t *testing.T) {
	t.Parallel()
	log := &lines{}
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.TrustProxy = ratelimit.Proxies{netip.MustParsePrefix("127.0.0.2/32")}
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	const warning = "links to connect pages start with http://"
	for _, c := range []struct {
		peer, proto, want string
	}{
		{"127.0.0.1", "https", s.URL},
		{"127.0.0.2", "https", "https://locks.example.com"},
		{"127.0.0.2", "http", "http://locks.example.com"},
		{"127.0.0.2", "http", "http://locks.example.com"},
	} {
		if c.proto == "https" && log.count(warning) > 0 {
			t.Errorf("%+v: there is a warning already", c)
		}
		res, raw := createWebview(t, s, c.peer, http.Header{
			"X-Forwarded-Proto": {c.proto},
			"X-Forwarded-Host":  {"locks.example.com"},
		})
		if res.StatusCode != http.StatusOK || !strings.Contains(string(raw), `"`+c.want+`/connect/`) {
			t.Errorf("%+v: %s %s", c, res.Status, raw)
		}
	}
	if n := log.count(warning); n != 1 {
		t.Errorf("%d warnings about links without TLS, want 1", n)
	}
}
