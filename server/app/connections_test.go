package app_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func TestZWaveJSAddress_IsNormalized(t *testing.T) {
	t.Parallel()
	for want, urls := range map[string][]string{
		"wss://gateway.example.com": {
			"wss://Gateway.example.com",
			"wss://gateway.example.com:443",
			"wss://gateway.example.com/",
			"wss://u:p@gateway.example.com:443//",
		},
		"ws://[2001:db8::1]/zwave": {"ws://[2001:DB8::1]:80/zwave/", "WS://[2001:db8::1]/zwave"},
		"ws://gateway:443":         {"ws://GATEWAY:443", "ws://gateway.:443"},
		"ws://192.0.2.1:3000":      {"ws://[::ffff:192.0.2.1]:3000", "ws://192.0.2.1.:3000/"},
		"ws://[2001:db8::2]:3000":  {"ws://[2001:DB8:0:0:0:0:0:2]:3000"},
		"wss://proxy/house1":       {"wss://proxy/house1"}, // another gateway than wss://proxy/house2
	} {
		for _, url := range urls {
			if got := (app.ZWaveJS{Config: zwavejs.Config{URL: url}}).Address(); got != want {
				t.Errorf("%s is %s, want %s", url, got, want)
			}
		}
	}
}
