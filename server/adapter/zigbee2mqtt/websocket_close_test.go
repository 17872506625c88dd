package zigbee2mqtt_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
)

// A WebSocket is closed with a close frame (RFC 6455, section 7), because Mosquitto 2.0.11 may enter an endless loop
// without one. A broker that does not respond is disconnected nevertheless.
func TestWebSocketIsClosedWithCloseFrame(t *testing.T) {
	t.Parallel()
	for name, hears := range map[string]bool{"one that hears": true, "one that hears nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, over := make(chan error, 1), make(chan struct{})
			broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mqtt"}})
				if err != nil {
					ended <- err
					return
				}
				defer c.CloseNow()
				if _, _, err = c.Read(r.Context()); err == nil { // CONNECT
					// CONNACK: bad user name or password
					err = c.Write(r.Context(), websocket.MessageBinary, []byte{0x20, 3, 0, 0x86, 0})
				}
				for err == nil && hears { // DISCONNECT arrives first
					_, _, err = c.Read(r.Context())
				}
				if !hears {
					<-over
				}
				ended <- err
			}))
			t.Cleanup(broker.Close)
			err := zigbee2mqtt.Check(t.Context(),
				zigbee2mqtt.Config{
					Broker:   strings.Replace(broker.URL, "http:", "ws:", 1),
					Topic:    "zigbee2mqtt",
					Username: "u",
					Password: "p",
				})
			if adapter.ClassOf(err) != adapter.AuthRevoked {
				t.Errorf("%v", err)
			}
			close(over)
			if err := <-ended; hears && websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("the broker receives %v", err)
			}
		})
	}
}

// The size of the broker's response header is limited.
func TestResponseHeaderIsLimited(t *testing.T) {
	t.Parallel()
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("a", 100_000))
		w.WriteHeader(http.StatusOK)
	}))
	defer broker.Close()
	err := zigbee2mqtt.Check(t.Context(),
		zigbee2mqtt.Config{Broker: strings.Replace(broker.URL, "http", "ws", 1), Topic: "zigbee2mqtt"})
	if err == nil || !strings.Contains(err.Error(), "exceeded") {
		t.Errorf("got %v", err)
	}
}
