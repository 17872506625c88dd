package zwavejs

import (
	"strings"
	"testing"
)

func TestAddress_IsNormalized(t *testing.T) {
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
			if got := (Connection{Config: Config{URL: url}}).Address(); got != want {
				t.Errorf("%s is %s, want %s", url, got, want)
			}
		}
	}
}

// The stranger differs from the login only in the password, so that only the password can be why it is rejected.
func TestStranger_DiffersInPasswordOnly(t *testing.T) {
	t.Parallel()
	for _, entered := range []struct{ url, user, password string }{
		{"ws://gateway", "jane", "secret"},
		{"ws://gateway", "jane", ""},
		{"ws://jane:secret@gateway", "", ""},
		{"ws://:secret@gateway", "", ""},
		{"ws://old:one@gateway", "jane", "secret"},
	} {
		text := withUser(entered.url, entered.user, entered.password)
		user, _, ok := userOf(text)
		strange, other, is := userOf(withStranger(text))
		if !ok || !is || user != strange || strings.Contains(text, other) {
			t.Errorf("%+v is sent as %s, a stranger's as %s", entered, text, withStranger(text))
		}
	}
	for url, want := range map[string]bool{
		"ws://gateway":             false,
		"ws://jane@gateway":        false,
		"ws://jane:@gateway":       false,
		"ws://jane:secret@gateway": true,
		"ws://:secret@gateway":     true,
		"::":                       false,
	} {
		if _, password, _ := userOf(url); (password != "") != want {
			t.Errorf("%s has a password: %t", url, !want)
		}
	}
}
