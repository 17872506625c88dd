package ratelimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// AddressOf returns the client address of a request: for IPv6, the /64 network. With trustForwarded it is the last
// address in X-Forwarded-For, which Proxies has made safe, or the peer's own if the header is unreadable.
// It is empty, and thus shared, if neither is known.
func AddressOf(r *http.Request, trustForwarded bool) string {
	if forwarded := r.Header.Values("X-Forwarded-For"); trustForwarded && len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		if network := networkOf(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); network != "" {
			return network
		}
	}
	return networkOf(r.RemoteAddr)
}

// networkOf returns an address, or the /64 network of an IPv6 address. It returns an empty string for invalid text.
func networkOf(text string) string {
	address, ok := parseAddress(text)
	if !ok {
		return ""
	}
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}

// parseAddress parses an address, with or without brackets and a port.
func parseAddress(text string) (_ netip.Addr, ok bool) {
	address, err := netip.ParseAddr(text)
	if inner, is := strings.CutPrefix(text, "["); is && strings.HasSuffix(inner, "]") {
		address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	}
	if err != nil {
		port, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		address = port.Addr()
	}
	return address.Unmap().WithZone(""), true
}
