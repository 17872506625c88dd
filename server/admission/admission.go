// Package admission is the server's admission control. It limits connections, bytes that clients send or have yet to
// read, and concurrently processed requests, each with fair shares by client address. Under overload it sheds the load
// of the client that uses most. The package must not know what requests ask for.
package admission

import (
	"context"
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
	Connections = 1024
	// DefaultHeldBytes bounds the request bodies being received and the responses not read yet.
	Held = 16 << 20
	// DefaultSlots is the number of requests processed concurrently.
	Turns = 12
	// connections accepted per second and processor while few wait
	arrivals = 500
)

const (
	// WriteStallTimeout is how long a client may take to read the next chunk of a response.
	StalledAfter = 15 * time.Second
	part         = 64 << 10 // size of one write of a response
	// send buffer of a connection in the kernel
	unsent = 128 << 10
	// bytes of each connection that are not counted
	ignored = 4 << 10
	// bodies and responses above this size count as heavy
	large          = 64 << 10
	arrivalsAtOnce = 20                     // connections accepted without delay
	spread         = 400 * time.Millisecond // about how long a burst is spread
	// paths per caller that are remembered to have long responses
	mostLong = 32
	// connections shed together, because choosing them costs time for each one
	batch = 128
)

// Limits are the limits of a Controller. A zero field means the default constant of that name, unless it says
// otherwise.
type Limits struct {
	// Connections is the maximum number of connections.
	Connections int
	// HeldBytes is the maximum of held bytes of bodies and responses.
	Held int
	// Slots is the number of requests processed concurrently.
	Turns int
	// AcceptsPerSecond is the accept rate while few connections wait; 0 means 500 for each processor.
	Arrivals int
	// BehindProxy means that all connections come from our own proxies: no address has too many, and none waits to be
	// accepted.
	Proxied bool
	// ClientAddress returns the client address of a request; nil means the peer of its connection.
	Address func(*http.Request) string
}

// Controller is the admission control of a server. Create it with New.
type Crowd struct {
	limits Limits

	mu     sync.Mutex
	conns  map[*conn]struct{}
	places map[string]*place // by client address

	held   int // bytes
	visits map[*visit]struct{}

	free    int // slots
	working [kinds]int
	modest  modest
	callers map[string]*caller
	served  uint64 // slots granted so far

	shed atomic.Int64
}

// New creates a Controller.
func New(l Limits) *Crowd {
	if l.Connections == 0 {
		l.Connections = Connections
	}
	if l.Held == 0 {
		l.Held = Held
	}
	if l.Turns == 0 {
		l.Turns = Turns
	}
	if l.Arrivals == 0 {
		l.Arrivals = arrivals * processors()
	}
	if l.Address == nil {
		l.Address = func(r *http.Request) string { return addressOf(r.RemoteAddr) }
	}
	return &Crowd{
		limits:  l,
		conns:   map[*conn]struct{}{},
		places:  map[string]*place{},
		visits:  map[*visit]struct{}{},
		free:    l.Turns,
		callers: map[string]*caller{},
	}
}

// Serve runs s.Serve on l, with connections that the Controller limits. It returns the error of s.Serve.
func (c *Crowd) Serve(s *http.Server, l net.Listener) error {
	s.ConnState = func(n net.Conn, state http.ConnState) {
		if n, ok := n.(*conn); ok {
			n.is(state)
		}
	}
	s.ConnContext = func(ctx context.Context, n net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, n)
	}
	d := c.listen(l)
	defer d.clear()
	return s.Serve(d)
}

// Shed returns the number of connections shed so far.
func (c *Crowd) Shed() int64 { return c.shed.Load() }

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
