package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

const unsent = 64 << 10 // bytes that the system keeps of a request which its endpoint does not read

// newGuard lets public addresses pass, and those of allow. What is not public is listed by IANA: loopback,
// private, link-local with the metadata services of clouds, shared, NAT64, mapped, multicast, documentation.
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

// Refuses says whether nothing is sent to an address, since it is neither public nor allowed.
func (o Options) Refuses(address netip.Addr) bool {
	address = address.Unmap() // as it would be dialled
	network := "tcp6"
	if address.Is4() {
		network = "tcp4"
	}
	return newGuard(o.AllowPrefixes).Safe(network, netip.AddrPortFrom(address, 443).String(), nil) != nil
}

// newClient makes a client behind a guard, which judges the address that is really dialled: a name cannot be
// made to point elsewhere after it was looked at. A nil resolver is the machine's own.
func newClient(allow []netip.Prefix, resolver *net.Resolver) *http.Client {
	dialer := &net.Dialer{Resolver: resolver, Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: newGuard(allow).Safe}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // it would dial in the guard's place
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dialer.DialContext(ctx, network, address)
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetWriteBuffer(unsent) // the system's choice is as good, until somebody does not read
				}
				return c, err
			},
			ForceAttemptHTTP2: true,
			HTTP2: &http.HTTP2Config{ // net/http would keep 4 MiB of each response that is not read yet, and send on over a connection that is dead
				MaxReadFrameSize:              16 << 10,
				MaxReceiveBufferPerStream:     drainSize,
				MaxReceiveBufferPerConnection: 64 << 10,
				SendPingTimeout:               10 * time.Second, // and its answer come before a request is given up
				PingTimeout:                   4 * time.Second,
			},
			DisableCompression:     true, // a short body stays short
			MaxResponseHeaderBytes: 16 << 10,
			WriteBufferSize:        2 << 10, // a request has about as much, and hundreds wait for an answer when endpoints hang
			ReadBufferSize:         1 << 10,
			MaxIdleConns:           1024,
			MaxIdleConnsPerHost:    healthyWidth,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
