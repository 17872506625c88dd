package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// maxUnsentBytes is the send buffer of a connection. It limits what the kernel holds for an
// endpoint that does not read.
const maxUnsentBytes = 64 << 10

// platformAddresses are addresses of cloud platforms that IANA's registries count as public. Only machines in the
// cloud reach them. 168.63.129.16 is the platform service of Azure:
// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
var platformAddresses = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

// guard refuses connections to addresses that are neither public nor allowed.
type guard struct {
	allow  []netip.Prefix
	public *ssrf.Guardian
	own    func() ([]net.Addr, error) // the addresses of this machine's interfaces
}

// newGuard allows public addresses and the prefixes in allow. The registries of IANA define which
// addresses are not public: loopback, private, link-local with the metadata services of clouds,
// shared, NAT64, mapped, multicast, and documentation. The public addresses of this machine and
// those of cloud platforms are refused, too.
func newGuard(allow []netip.Prefix) *guard {
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &guard{
		allow: allow,
		public: ssrf.New(
			ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(v4...),
			ssrf.WithAllowedV6Prefixes(v6...),
			ssrf.WithDeniedV4Prefixes(platformAddresses...),
		),
		own: net.InterfaceAddrs,
	}
}

// Safe is the Control of a net.Dialer. It fails with ssrf.ErrProhibitedIP for an address that is neither public nor
// allowed. It also fails where the addresses of this machine cannot be listed.
func (g *guard) Safe(network, address string, c syscall.RawConn) error {
	if err := g.public.Safe(network, address, c); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	own, err := g.own()
	if err != nil {
		return fmt.Errorf("list the addresses of this machine, which get no requests: %w", err)
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap().WithZone("") == ip {
			return fmt.Errorf("%w: %s is an address of this machine", ssrf.ErrProhibitedIP, ip)
		}
	}
	return nil
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
			MaxIdleConnsPerHost: healthyConcurrency,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
