package zigbee2mqtt_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Connections to a broker are retried indefinitely, so a failed one must not be kept.
func TestRejectedWebSocketIsClosed(t *testing.T) {
	t.Parallel()
	opened, ended := make(chan net.Conn, 100), make(chan net.Conn, 100)
	broker := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusForbidden)
	}))
	broker.Config.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened <- c
		case http.StateClosed:
			ended <- c
		}
	}
	broker.Start()
	defer broker.Close()
	err := zigbee2mqtt.Check(t.Context(),
		zigbee2mqtt.Config{Broker: strings.Replace(broker.URL, "http", "ws", 1), Topic: "zigbee2mqtt"})
	if adapter.ClassOf(err) != adapter.GatewayDown {
		t.Errorf("%v", err)
	}
	if len(opened) == 0 {
		t.Fatal("it was not tried")
	}
	for range len(opened) {
		select {
		case <-ended:
		case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
			t.Fatal("an unused connection is kept")
		}
	}
}

// The password must not reach the target of a redirect.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer elsewhere.Close()
	broker := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer broker.Close()
	err := zigbee2mqtt.Check(t.Context(),
		zigbee2mqtt.Config{
			Broker:   strings.Replace(broker.URL, "http", "ws", 1),
			Topic:    "zigbee2mqtt",
			Username: "u",
			Password: "p",
		})
	if n := asked.Load(); n > 0 || err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("the target received %d requests, %v", n, err)
	}
}
