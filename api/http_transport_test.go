package api

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// clientOf is a client of a real server, which net/http sends requests to in this way.
func clientOf(t *testing.T, endpoint string, way *http.Transport) *Client {
	t.Helper()
	t.Cleanup(way.CloseIdleConnections)
	client, err := New(Config{Endpoint: endpoint, Credential: testKey, Transport: sending{way}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// net/http resends requests that have an Idempotency-Key automatically.
func TestCreationsAreSentOnce(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		var created, keyless atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isCreation(r.URL.Path) {
				if r.Header.Get(keyHeader) == "" {
					keyless.Add(1)
				}
				_, _ = io.ReadAll(r.Body)
				created.Add(1)
				panic(http.ErrAbortHandler) // closes the connection
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, webhookJSON)
		}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		way := newTransport()
		way.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		client := clientOf(t, server.URL, way)

		if err := read(t.Context(), client); err != nil { // whose connection is kept
			t.Fatal(err)
		}
		err := write(t.Context(), client)
		if created.Load() != 1 || keyless.Load() != 0 || err == nil || !MayHaveHappened(err) {
			t.Errorf("HTTP/2 %v: created %d times, %d without a key: %v", http2, created.Load(), keyless.Load(), err)
		}
	}
}

func TestIsNotConnected(t *testing.T) {
	t.Parallel()
	answering := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }
	plain := httptest.NewServer(http.HandlerFunc(answering))
	t.Cleanup(plain.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	mutual := func(version uint16) *httptest.Server {
		server := httptest.NewUnstartedServer(http.HandlerFunc(answering))
		server.TLS = &tls.Config{
			ClientAuth: tls.RequireAnyClientCert,
			MaxVersion: version,
		} //nolint:gosec // older ones are served, too
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	refusing := func(status int) *httptest.Server {
		proxy := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
		)
		t.Cleanup(proxy.Close)
		return proxy
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, c := range map[string]struct {
		server *httptest.Server
		url    string // else
		proxy  string
		kind   string
		says   string
	}{
		"server closed":                     {server: closed, says: "connect"},
		"a server that speaks no TLS":       {url: strings.Replace(plain.URL, "http:", "https:", 1), kind: "untrusted", says: "HTTP response to HTTPS client"},
		"a certificate that is not trusted": {server: mutual(0), kind: "untrusted", says: "certificate"},
		"a client certificate, TLS 1.3":     {server: mutual(tls.VersionTLS13), kind: "turned away", says: "certificate required"},
		"a client certificate, TLS 1.2":     {server: mutual(tls.VersionTLS12), kind: "turned away", says: "remote error"},
		"a handshake that does not end":     {url: "https://" + silent.Addr().String(), says: "handshake timeout"},
		"no proxy there": {
			server: plain,
			proxy:  closed.URL,
			kind:   "proxy",
			says:   "proxyconnect",
		},
		"no SOCKS proxy there": {
			server: plain,
			proxy:  "socks5" + strings.TrimPrefix(closed.URL, "http"),
			kind:   "proxy",
			says:   "connect",
		},
		"a proxy that wants a password": {
			url:   "https://server.example",
			proxy: refusing(407).URL,
			kind:  "proxy",
			says:  "407 Proxy Authentication Required",
		},
		"a proxy that does not let through": {
			url:   "https://server.example",
			proxy: refusing(403).URL,
			kind:  "proxy",
			says:  "403 Forbidden",
		},
		"a proxy that does not reach anyone": {
			url:   "https://server.example",
			proxy: refusing(502).URL,
			kind:  "proxy",
			says:  "502 Bad Gateway",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way := newTransport()
			if strings.HasPrefix(name, "a handshake") {
				way.TLSHandshakeTimeout = 200 * time.Millisecond
			}
			if c.proxy != "" {
				address, err := url.Parse(c.proxy)
				if err != nil {
					t.Fatal(err)
				}
				way.Proxy = http.ProxyURL(address)
			}
			endpoint := c.url
			if endpoint == "" {
				endpoint = c.server.URL
			}
			if strings.HasPrefix(name, "a client") {
				way.TLSClientConfig = c.server.Client().Transport.(*http.Transport).TLSClientConfig
			}
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout)) // it may be repeated
			defer cancel()
			err := write(ctx, clientOf(t, endpoint, way))
			if err == nil || MayHaveHappened(err) || !IsNotConnected(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("may have happened %v, not connected %v: %v", MayHaveHappened(err), IsNotConnected(err), err)
			}
			for kind, is := range map[string]bool{"untrusted": IsUntrusted(err), "turned away": IsTLSRejected(err), "proxy": IsAboutProxy(err)} {
				if is != (kind == c.kind) {
					t.Errorf("%s: %v, of %v", kind, is, err)
				}
			}
		})
	}
}
