package adapter

import (
	"net/netip"
	"strings"
)

// Host is a host of a URL, without its port and brackets, as it is compared with others: one host that is written in many
// ways is one. What has several names cannot be told so.
func Host(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().String()
	}
	return name
}
