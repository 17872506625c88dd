package adapter

import (
	"net/netip"
	"strings"
)

// NormalizeHost returns the canonical form of a URL's host, without port and brackets. Different spellings of one
// host become equal; different names of one host do not.
func NormalizeHost(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().String()
	}
	return name
}
