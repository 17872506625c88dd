package zigbee2mqtt_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/paho"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// request sends a request to Zigbee2MQTT, as its user would.
func (b *bed) request(what string, payload any) {
	b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.gateway.Broker, "mqtt://"))
	if err != nil {
		b.Fatal(err)
	}
	client := paho.NewClient(paho.ClientConfig{Conn: conn, ClientID: "by-hand-" + b.user})
	if _, err := client.Connect(b.Context(),
		&paho.Connect{
			ClientID:     "by-hand-" + b.user,
			CleanStart:   true,
			KeepAlive:    30,
			UsernameFlag: true,
			Username:     b.config.Username,
			PasswordFlag: true,
			Password:     []byte(b.config.Password),
		}); err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.Publish(b.Context(),
		&paho.Publish{Topic: zigbee.Topic + "/bridge/request/" + what, QoS: 1, Payload: body}); err != nil {
		b.Fatal(err)
	}
	_ = client.Disconnect(&paho.Disconnect{})
}

func TestARenamedLockIsTheSame(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	ref := b.put("kept", "60216021")
	d, err := b.Device(t.Context(), b.ref)
	if err != nil {
		t.Fatal(err)
	}
	b.request("device/rename", map[string]string{"from": d.Name, "to": "ground floor/front door"})
	b.until("the name has changed", func() bool {
		now, err := b.Device(t.Context(), b.ref)
		return err == nil && now.Name == "ground floor/front door" && now.Online
	})
	b.lock.Program(t, 9, "70317031")
	b.until("its changes are received", func() bool { return b.codes()["9"] == "70317031" })
	if b.codes()[ref] != "60216021" {
		t.Error("the code is another one")
	}
	b.put("new", "81428142")
	b.request("device/rename", map[string]string{"from": "ground floor/front door", "to": d.Name})
	b.until("it has its old name", func() bool {
		now, err := b.Device(t.Context(), b.ref)
		return err == nil && now.Name == d.Name
	})
}

func TestExposePINCanBeChanged(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	expose := func(on bool) {
		b.request("device/options", map[string]any{"id": b.lock.Ref, "options": map[string]bool{"expose_pin": on}})
	}
	expose(false)
	b.until("PINs are hidden", func() bool {
		d, err := b.Device(t.Context(), b.ref)
		return err == nil && !d.Capabilities.PINVisible
	})
	for ref, pin := range b.codes() { // Zigbee2MQTT continues to publish known PINs
		if pin != "" {
			t.Errorf("the PIN of %s is shown", ref)
		}
	}
	expose(true)
	b.until("PINs are shown again", func() bool { return b.codes()["1"] == "471147" })
}
