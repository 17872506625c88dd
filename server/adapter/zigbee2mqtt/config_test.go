package zigbee2mqtt_test

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
)

func TestNew_InvalidConfig(t *testing.T) {
	t.Parallel()
	const secret = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n"
	for _, c := range []struct {
		config zigbee2mqtt.Config
		want   string
	}{
		{zigbee2mqtt.Config{Broker: "broker:1883", Topic: "t"}, "must look like"},
		{zigbee2mqtt.Config{Broker: "http://broker", Topic: "t"}, "must look like"},
		{zigbee2mqtt.Config{Broker: "mqtt://broker/path", Topic: "t"}, "must look like"},
		{zigbee2mqtt.Config{Broker: "wss://broker/mqtt?token=1", Topic: "t"}, "must look like"},
		{zigbee2mqtt.Config{Broker: "mqtt://user:geheim@broker", Topic: "t"}, "give them in their own settings"},
		{zigbee2mqtt.Config{Broker: "mqtt://broker"}, "base_topic"},
		{zigbee2mqtt.Config{Broker: "mqtt://broker", Topic: "t/#"}, "base_topic"},
		{zigbee2mqtt.Config{Broker: "mqtt://broker", Topic: strings.Repeat("t", 251)}, "base_topic"},
		{zigbee2mqtt.Config{Broker: "mqtt://broker", Topic: "t", CA: "x"}, "mqtts:// and wss:// only"},
		{zigbee2mqtt.Config{
			Broker: "ws://broker",
			Topic:  "t",
			Cert:   "x",
			Key:    secret,
		}, "mqtts:// and wss:// only"},
		{zigbee2mqtt.Config{Broker: "wss://broker", Topic: "t", CA: "x"}, "not a certificate"},
		{zigbee2mqtt.Config{Broker: "mqtts://broker", Topic: "t", Key: secret}, "must both be set"},
		{zigbee2mqtt.Config{
			Broker: "mqtts://broker",
			Topic:  "t",
			Cert:   secret,
			Key:    secret,
		}, "must both be set"},
	} {
		_, err := zigbee2mqtt.New(c.config)
		if err == nil || adapter.ClassOf(err) != adapter.Invalid || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "MC4CAQ") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s %s: %v", c.config.Broker, c.config.Topic, err)
		}
	}
}

func TestOneGatewayHasOneAddress(t *testing.T) {
	t.Parallel()
	for broker, want := range map[string]string{
		"mqtt://Broker":         "mqtt://broker:1883 t",
		"mqtts://broker/":       "mqtts://broker:8883 t",
		"wss://broker/mqtt/":    "wss://broker:443/mqtt t",
		"ws://broker:9001":      "ws://broker:9001 t",
		"mqtt://[2001:db8::1]/": "mqtt://[2001:db8::1]:1883 t",

		"mqtt://broker.:1883":           "mqtt://broker:1883 t",
		"mqtt://[::ffff:192.0.2.1]":     "mqtt://192.0.2.1:1883 t",
		"mqtt://[2001:DB8:0:0:0:0:0:1]": "mqtt://[2001:db8::1]:1883 t",
	} {
		if got := (zigbee2mqtt.Config{
			Broker:   broker,
			Topic:    "t",
			Username: "u",
			Password: "secret",
		}).Address(); got != want {
			t.Errorf("%s: %s, want %s", broker, got, want)
		}
	}
}
