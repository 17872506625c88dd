package ratelimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestProxies_Clean(t *testing.T) {
	t.Parallel()
	p := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for _, c := range []struct {
		peer      string
		forwarded string // lines of X-Forwarded-For, separated by |
		want      string // X-Forwarded-For afterwards
		host      string // X-Forwarded-Host afterwards
	}{
		{peer: "10.0.0.1:1", forwarded: "192.0.2.9", want: "192.0.2.9", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "198.51.100.1, 192.0.2.9", want: "192.0.2.9", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "198.51.100.1, 192.0.2.9, 10.0.0.2", want: "192.0.2.9", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "198.51.100.1, 192.0.2.9|10.0.0.2,10.0.0.3", want: "192.0.2.9", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "10.0.0.3, 10.0.0.2", want: "10.0.0.3", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "192.0.2.9, unknown, 10.0.0.2", want: "10.0.0.2", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "unknown", want: "10.0.0.1:1", host: "api.example"},
		{peer: "10.0.0.1:1", forwarded: "[2001:db8:2::9]:80, [2001:db8:1::1]:80", want: "[2001:db8:2::9]:80", host: "api.example"},
		{peer: "[2001:db8:1::1]:1", forwarded: "192.0.2.9", want: "192.0.2.9", host: "api.example"},
		{peer: "[::ffff:10.0.0.1]:1", forwarded: "192.0.2.9", want: "192.0.2.9", host: "api.example"},
		{peer: "10.0.0.1:1", host: "api.example"},
		{peer: "11.0.0.1:1", forwarded: "192.0.2.9"},
		{peer: "@", forwarded: "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-Host", "api.example, inner")
		r.Header.Set("X-Forwarded-Proto", "https")
		for line := range strings.SplitSeq(c.forwarded, "|") {
			if line != "" {
				r.Header.Add("X-Forwarded-For", line)
			}
		}
		p.clean(r)
		if got := r.Header.Get("X-Forwarded-For"); got != c.want || r.Header.Get("X-Forwarded-Host") != c.host ||
			(r.Header.Get("X-Forwarded-Proto") == "https") != (c.host != "") {
			t.Errorf("%+v: client %q, %v", c, got, r.Header)
		}
	}
}
