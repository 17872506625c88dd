package zwavejs_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
)

// greet is a WebSocket server that sends one frame.
func greet(frame string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(frame))
		_, _, _ = conn.Read(r.Context())
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		url    string           // default: that of the server
		config zwavejs.Config   // other than the URL
		server http.HandlerFunc // response at the URL
		class  adapter.Class
		says   string
	}{
		"no URL":           {url: "gateway:3000", class: adapter.Invalid, says: "ws://host:3000"},
		"the wrong scheme": {url: "http://gateway:3000", class: adapter.Invalid, says: "ws://host:3000"},
		"no server":        {url: "ws://127.0.0.1:1", class: adapter.GatewayDown, says: "connection refused"},
		"no PEM": {
			url:    "wss://127.0.0.1:1",
			config: zwavejs.Config{CA: "pem"},
			class:  adapter.Invalid,
			says:   "PEM",
		},
		"no time zone": {
			url:    "ws://127.0.0.1:1",
			config: zwavejs.Config{TimeZone: "Europe/Nowhere"},
			class:  adapter.Invalid,
			says:   "Europe/Berlin",
		},
		"a web page": {
			server: func(http.ResponseWriter, *http.Request) {}, class: adapter.GatewayDown,
			says: "200 OK",
		},
		"a password": {
			server: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			class:  adapter.AuthRevoked, says: "user or password",
		},
		"a header without an end": {server: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 100_000))
			w.WriteHeader(http.StatusOK)
		}, class: adapter.GatewayDown, says: "exceeded"},
		"another WebSocket": {
			server: greet(`{"type":"auth_required"}`), class: adapter.GatewayDown,
			says: "not a zwave-js-server",
		},
		"an old server": {
			server: greet(
				`{"type":"version","homeId":1,"serverVersion":"1.20.0","minSchemaVersion":0,"maxSchemaVersion":20}`,
			),
			class: adapter.NotSupported,
			says:  "schema 0 to 20",
		},
		"a driver that is not ready": {server: func(w http.ResponseWriter, r *http.Request) {
			if conn, err := websocket.Accept(w, r, nil); err == nil {
				_ = conn.Close(websocket.StatusTryAgainLater, "Driver is not ready")
			}
		}, class: adapter.GatewayDown, says: "not ready"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := test.config
			config.URL = test.url
			if test.server != nil {
				server := httptest.NewServer(test.server)
				t.Cleanup(server.Close)
				config.URL = "ws://user:hunter22@" + strings.TrimPrefix(server.URL, "http://")
			}
			err := zwavejs.Check(t.Context(), config)
			if err == nil || adapter.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v, want %s saying %q", err, test.class, test.says)
			}
			if strings.Contains(err.Error(), "hunter22") {
				t.Fatal("the error contains the password")
			}
		})
	}
}

// Each failed attempt would otherwise leave a connection with two goroutines until the gateway closes it.
func TestRefusedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	failsAs(t, zwavejs.Check(t.Context(), zwavejs.Config{URL: "ws://" + server.Listener.Addr().String()}),
		adapter.AuthRevoked)
	select {
	case <-closed:
	case <-time.After(within):
		t.Fatalf("its connection is still open after %s", within)
	}
}
