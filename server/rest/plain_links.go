package rest

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// privateSuffixes end the names of hosts of private networks.
var privateSuffixes = []string{".localhost", ".local", ".internal", ".lan", ".home.arpa", ".test"}

// isPlainPublic reports whether people would open a link over the Internet without encryption.
func isPlainPublic(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if address, err := netip.ParseAddr(host); err == nil {
		address = address.Unmap()
		return !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast()
	}
	return strings.Contains(host, ".") &&
		!slices.ContainsFunc(privateSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// warnPlainLink warns once if the links of connect webviews are not encrypted. The owners of devices enter passwords
// there.
func (h *handlers) warnPlainLink(ctx context.Context) {
	if u := h.pager.base(exchangeOf(ctx).request); isPlainPublic(u) {
		h.plainLinks.Do(func() {
			h.logger.WarnContext(
				ctx,
				"links to connect pages start with http://, so passwords that people enter there are not "+
					"encrypted: set --public-url to the https address of the server, and --tls-cert or a proxy for it",
				"host",
				u.Host,
			)
		})
	}
}
