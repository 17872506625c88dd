package adapter

import "testing"

func TestNormalizeHost(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Gateway.Example.COM": "gateway.example.com", "gateway.": "gateway", "127.0.0.1": "127.0.0.1",
		"127.0.0.1.":       "127.0.0.1",
		"::ffff:127.0.0.1": "127.0.0.1", "::FFFF:7f00:1": "127.0.0.1", "2001:DB8:0:0:0:0:0:1": "2001:db8::1",
		"fe80::1%eth0": "fe80::1%eth0", "": "",
	} {
		if got := NormalizeHost(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
