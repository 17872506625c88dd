// Package crowd keeps clients from taking one another's place: it bounds how many connections there are, how much of
// what they send and do not read is kept, and how many requests are worked on at once, each of them fairly by address.
// Whoever takes most gives way first. It must not know what is asked for.
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

// The limits unless a Crowd is told otherwise. server/docs/limits.md explains them.
const (
	Connections = 1024     // of all clients together
	Held        = 16 << 20 // bytes of bodies that are being received and of answers that are not read yet
	Turns       = 12       // requests that are worked on at once
	arrivals    = 500      // connections that are let in each second, for each processor, while few wait
)

const (
	// StalledAfter is how long a client may take to read the next part of an answer.
	StalledAfter   = 15 * time.Second
	part           = 64 << 10               // of an answer that is sent
	unsent         = 128 << 10              // of an answer that the system keeps until it is read
	ignored        = 4 << 10                // bytes that every connection has room for anyway
	large          = 64 << 10               // of a body or an answer: what is beyond costs much
	arrivalsAtOnce = 20                     // connections that are let in as they come
	spread         = 400 * time.Millisecond // for how long what comes at once is let in, about
	mostLong       = 32                     // answers of which is remembered that they are long, of one caller
	batch          = 128                    // connections that give way at once: to choose them costs as much as there are
)

// Limits of a Crowd. A zero field is the constant of its name, but where it says otherwise.
type Limits struct {
	Connections int
	Held        int
	Turns       int
	// Arrivals are the connections that are let in each second while few wait; zero: 500 for each processor.
	Arrivals int
	// Proxied says that connections are those of proxies of ours: then no address has too many, and none waits to be let in.
	Proxied bool
	// Address says whose a request is; nil: the other end of its connection.
	Address func(*http.Request) string
}

// Crowd is all clients of a server. Its zero value is of no use: see New.
type Crowd struct {
	limits Limits

	mu     sync.Mutex
	conns  map[*conn]struct{}
	places map[string]*place // by the address of connections

	held   int // bytes
	visits map[*visit]struct{}

	free    int // turns
	working [kinds]int
	modest  modest
	callers map[string]*caller
	served  uint64 // turns given so far

	shed atomic.Int64
}

// New makes a Crowd of nobody.
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
	return &Crowd{limits: l, conns: map[*conn]struct{}{}, places: map[string]*place{}, visits: map[*visit]struct{}{}, free: l.Turns, callers: map[string]*caller{}}
}

// Serve serves with s on l until it is stopped, as s.Serve does.
func (c *Crowd) Serve(s *http.Server, l net.Listener) error {
	s.ConnState = func(n net.Conn, state http.ConnState) {
		if n, ok := n.(*conn); ok {
			n.is(state)
		}
	}
	s.ConnContext = func(ctx context.Context, n net.Conn) context.Context { return context.WithValue(ctx, connKey{}, n) }
	d := c.listen(l)
	defer d.clear()
	return s.Serve(d)
}

// Shed counts the connections that had to give way.
func (c *Crowd) Shed() int64 { return c.shed.Load() }

// addressOf is an address without its port: the network of 64 bits where that is how addresses are given out.
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
