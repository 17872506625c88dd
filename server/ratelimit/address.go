package ratelimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// AddressOf returns the client address of a request: for IPv6, the /64 network. Behind a trusted proxy it is the last
// address in X-Forwarded-For, because clients can forge the others, or the proxy's own if the header is unreadable.
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

// networkOf parses an address, with or without brackets and a port. It returns an empty string if the address is
// invalid.
func networkOf(text string) string {
	address, err := netip.ParseAddr(text)
	if inner, is := strings.CutPrefix(text, "["); is && strings.HasSuffix(inner, "]") {
		address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	}
	if err != nil {
		port, err := netip.ParseAddrPort(text)
		if err != nil {
			return ""
		}
		address = port.Addr()
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}
