// Package admission is the server's admission control. It limits connections, bytes that clients send or have yet to
// read, and concurrently processed requests, each with fair shares by client address. Under overload it sheds the load
// of the client that uses most. The package must not know what requests ask for.
package admission

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Default limits; server/docs/limits.md explains them.
const (
	// DefaultConnections is the number of connections of all clients.
	DefaultConnections = 1024
	// DefaultHeldBytes bounds the request bodies being received and the responses not read yet.
	DefaultHeldBytes = 16 << 20
	// DefaultSlots is the number of requests processed concurrently.
	DefaultSlots = 12
	// connections accepted per second and processor while few wait.
	acceptsPerSecond = 500
)

const (
	// WriteStallTimeout is how long a client may take to read the next chunk of a response.
	WriteStallTimeout = 15 * time.Second
	writeChunk        = 64 << 10 // size of one write of a response
	// send buffer of a connection in the kernel.
	sendBuffer = 128 << 10
	// bytes of each connection that are not counted.
	freeBytes = 4 << 10
	// bodies and responses above this size count as heavy.
	largeBytes   = 64 << 10
	acceptBurst  = 20                     // connections accepted without delay
	acceptSpread = 400 * time.Millisecond // about how long a burst is spread
	// paths per caller that are remembered to have long responses.
	maxLongPaths = 32
	// connections shed together, because choosing them costs time for each one.
	shedBatch = 128
)

// Limits are the limits of a Controller. A zero field means the default constant of that name, unless it says
// otherwise.
type Limits struct {
	// Connections is the maximum number of connections.
	Connections int
	// HeldBytes is the maximum of held bytes of bodies and responses.
	HeldBytes int
	// Slots is the number of requests processed concurrently.
	Slots int
	// AcceptsPerSecond is the accept rate while few connections wait; 0 means 500 for each processor.
	AcceptsPerSecond int
	// IsProxy reports whether a connection comes from one of our own proxies: these have no share of the connections,
	// and do not wait to be accepted. If nil, there are no proxies.
	IsProxy func(peer net.Addr) bool
	// ClientAddress returns the client address of a request; nil means the peer of its connection.
	ClientAddress func(*http.Request) string
}

// Controller is the admission control of a server. Create it with New.
type Controller struct {
	limits Limits

	mu      sync.Mutex
	conns   map[*conn]struct{}
	origins map[string]*origin // by client address

	held    int // bytes
	holders map[*request]struct{}

	freeSlots int // slots
	working   [kinds]int
	modest    lightCallers
	callers   map[string]*caller
	grants    uint64 // slots granted so far

	shed atomic.Int64
}

// New creates a Controller.
func New(l Limits) *Controller {
	if l.Connections == 0 {
		l.Connections = DefaultConnections
	}
	if l.HeldBytes == 0 {
		l.HeldBytes = DefaultHeldBytes
	}
	if l.Slots == 0 {
		l.Slots = DefaultSlots
	}
	if l.AcceptsPerSecond == 0 {
		l.AcceptsPerSecond = acceptsPerSecond * processors()
	}
	if l.IsProxy == nil {
		l.IsProxy = func(net.Addr) bool { return false }
	}
	if l.ClientAddress == nil {
		l.ClientAddress = func(r *http.Request) string { return addressOf(r.RemoteAddr) }
	}
	return &Controller{
		limits:    l,
		conns:     map[*conn]struct{}{},
		origins:   map[string]*origin{},
		holders:   map[*request]struct{}{},
		freeSlots: l.Slots,
		callers:   map[string]*caller{},
	}
}

// Serve runs s on l until s is stopped, with connections that the Controller limits. With s.TLSConfig, it serves HTTPS.
// It returns the error of s.Serve or s.ServeTLS.
func (c *Controller) Serve(s *http.Server, l net.Listener) error {
	s.ConnState = func(n net.Conn, state http.ConnState) {
		if n := connOf(n); n != nil {
			n.follow(state)
		}
	}
	s.ConnContext = func(ctx context.Context, n net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, connOf(n))
	}
	d := c.listen(l)
	defer d.closeWaiting()
	if s.TLSConfig != nil {
		return s.ServeTLS(d, "", "")
	}
	return s.Serve(d)
}

// connOf returns the connection of the Controller under n, or nil.
func connOf(n net.Conn) *conn {
	if secure, ok := n.(*tls.Conn); ok {
		n = secure.NetConn()
	}
	own, _ := n.(*conn)
	return own
}

// Shed returns the number of connections shed so far.
func (c *Controller) Shed() int64 { return c.shed.Load() }

// addressOf returns a client address without its port. For IPv6 it is the /64 network, because one client gets a whole
// network.
func addressOf(remote string) string {
	port, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := port.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}
