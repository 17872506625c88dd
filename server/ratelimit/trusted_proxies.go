package ratelimit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the proxies in front of the server. Only their X-Forwarded headers are believed.
type Proxies []netip.Prefix

// Trusts reports whether peer is one of the proxies.
func (p Proxies) Trusts(peer net.Addr) bool {
	return peer != nil && p.trustsText(peer.String())
}

// trustsText is Trusts for an address with or without a port.
func (p Proxies) trustsText(text string) bool {
	address, ok := parseAddress(text)
	return ok && slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// Middleware makes the X-Forwarded headers of requests safe for next. From a proxy, X-Forwarded-For becomes the address
// of the client, and the other two their first value. From other peers, the three headers are removed.
func (p Proxies) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.clean(r)
		next.ServeHTTP(w, r)
	})
}

func (p Proxies) clean(r *http.Request) {
	trusted := p.trustsText(r.RemoteAddr)
	for _, name := range []string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		first, _, _ := strings.Cut(r.Header.Get(name), ",")
		if first = strings.TrimSpace(first); !trusted || first == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, first)
	}
	hops := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	r.Header.Del("X-Forwarded-For")
	if trusted && hops != "" {
		r.Header.Set("X-Forwarded-For", p.client(r.RemoteAddr, strings.Split(hops, ",")))
	}
}

// client returns the address of the client. It walks the hops from the right, past the proxies. Clients can forge what
// is left of the first other address. Behind an unreadable hop, the client is the last proxy before it.
func (p Proxies) client(peer string, hops []string) string {
	client := peer
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if _, ok := parseAddress(hop); !ok {
			break
		}
		client = hop
		if !p.trustsText(hop) {
			break
		}
	}
	return client
}
