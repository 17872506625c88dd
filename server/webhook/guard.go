package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

// maxUnsentBytes is the send buffer of a connection. It limits what the kernel holds for an
// endpoint that does not read.
const maxUnsentBytes = 64 << 10

// newGuard allows public addresses and the prefixes in allow. The registries of IANA define which
// addresses are not public: loopback, private, link-local with the metadata services of clouds,
// shared, NAT64, mapped, multicast, and documentation.
func newGuard(allow []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Refuses reports whether the server sends nothing to an address because it is neither public nor
// allowed.
func (o Options) Refuses(address netip.Addr) bool {
	address = address.Unmap() // as the dialer would use it
	network := "tcp6"
	if address.Is4() {
		network = "tcp4"
	}
	return newGuard(o.AllowPrefixes).Safe(network, netip.AddrPortFrom(address, 443).String(), nil) != nil
}

// newClient creates a client behind a guard that checks the dialed address. Checking a name earlier
// would be unsafe, because it may resolve differently later. A nil resolver means the system's
// resolver.
func newClient(allow []netip.Prefix, resolver *net.Resolver) *http.Client {
	dialer := &net.Dialer{
		Resolver:  resolver,
		Timeout:   10 * time.Second,
		KeepAlive: 30 * time.Second,
		Control:   newGuard(allow).Safe,
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // a proxy would dial in place of the guard
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dialer.DialContext(ctx, network, address)
				if tcp, ok := c.(*net.TCPConn); ok {
					// Best effort: the default only costs memory if the endpoint does not read.
					_ = tcp.SetWriteBuffer(maxUnsentBytes)
				}
				return c, err
			},
			ForceAttemptHTTP2: true,
			// By default, net/http buffers up to 4 MiB of each unread response, and keeps using a
			// dead connection.
			HTTP2: &http.HTTP2Config{
				MaxReadFrameSize:              16 << 10,
				MaxReceiveBufferPerStream:     drainSize,
				MaxReceiveBufferPerConnection: 64 << 10,
				// A ping and its timeout end before the request does.
				SendPingTimeout: 10 * time.Second,
				PingTimeout:     4 * time.Second,
			},
			DisableCompression:     true, // short bodies stay short
			MaxResponseHeaderBytes: 16 << 10,
			// A request has about this size, and hundreds wait when endpoints hang.
			WriteBufferSize:     2 << 10,
			ReadBufferSize:      1 << 10,
			MaxIdleConns:        1024,
			MaxIdleConnsPerHost: healthyWidth,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
