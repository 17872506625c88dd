// Package zwavejs reaches the Z-Wave locks behind a zwave-js-server, the WebSocket that Z-Wave JS UI and Home
// Assistant's Z-Wave JS app serve (github.com/zwave-js/zwave-js-server, its README and docs). It must not know
// who owns a code.
//
// Where the protocol leaves a choice, this is decided:
//
//   - A code is a slot of a lock. A new one goes into the lowest slot that the lock itself, asked just before,
//     says is free; slot 0, the master code of some locks, is never touched.
//   - Radio costs a lock its battery. What is on it is read in full once after each connection, and when the
//     lock was dead; after that the lock and the gateway tell which slots have changed, and only those are
//     read. A lock that does not tell what is done at its keypad is read in full whenever it is asked.
//   - A write counts once the lock has shown it. Locks refuse a PIN that they have already with nothing but
//     a notification, which may follow the answer: it is waited for.
//   - A lock that shows stars instead of PINs has hidden ones, for good. A slot with another PIN is cleared before it is
//     written, because a lock that refuses the new one looks like one that took it.
//   - Of users with names, those who have no PIN, and cards and fingerprints, are nobody's here. A user for a new code is
//     added, which the lock refuses where there is one, and is only removed once the lock has shown that it has nothing else.
//   - What a lock with such users has not answered is asked again, and never taken for nothing.
//   - A lock that the gateway has not reached since it started, or has not interviewed in full, is what it was, and waits.
//   - The identifier of an excluded node is given again, to another lock: whoever had it has left for good. Where
//     nobody has listened, a node that is no longer there tells, and a serial number that is another one; a lock of
//     the same model without a serial number cannot be told apart then.
package zwavejs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Adapter is one gateway. It is connected all the time, from New to Close.
type Adapter struct {
	gateway
	log    *slog.Logger
	hints  *adapter.Hints
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	session *session      // nil while there is no connection
	failed  error         // why the last try to connect failed; nil while it is not over
	tried   chan struct{} // closed when it is over
	nodes   map[int]*node // of the network with the session's home identifier

	others map[int]adapter.DeviceRef // nodes that show no lock, as they are called if they are one; empty: the gateway has yet to find out what they are
}

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Locker  = (*Adapter)(nil)
)

// New starts to connect to the gateway, and goes on trying until Close. It fails with Invalid.
func New(c Config) (*Adapter, error) {
	g, err := c.gateway()
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Adapter{gateway: g, log: c.Log, hints: adapter.NewHints(), cancel: cancel, done: make(chan struct{}),
		tried: make(chan struct{}), nodes: map[int]*node{}}
	go a.run(ctx)
	return a, nil
}

// Check connects to the gateway once, and says what is wrong. It fails with Invalid, GatewayDown, AuthRevoked or
// NotSupported.
func Check(ctx context.Context, c Config) error {
	g, err := c.gateway()
	if err != nil {
		return err
	}
	s, err := g.dial(ctx)
	if err != nil {
		return err
	}
	defer s.conn.CloseNow() //nolint:errcheck // nothing is on its way
	reading, cancel := context.WithCancel(ctx)
	var reads sync.WaitGroup
	defer reads.Wait()
	defer cancel()
	reads.Go(func() { s.end(s.read(reading, func(*wireEvent) {})) })
	return s.initialize(ctx)
}

// Events implements adapter.Adapter.
func (a *Adapter) Events() <-chan adapter.Event { return a.hints.Events() }

// Close implements adapter.Adapter.
func (a *Adapter) Close() error {
	a.cancel()
	<-a.done
	a.hints.Close()
	return nil
}

// run connects again and again.
func (a *Adapter) run(ctx context.Context) {
	defer close(a.done)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		err := a.serve(ctx)
		a.down(err)
		if time.Since(began) > time.Minute {
			n = 0
		}
		select {
		case <-time.After(pause(n)):
		case <-ctx.Done():
		}
	}
}

// serve is one connection, from dialling to its end.
func (a *Adapter) serve(ctx context.Context) error {
	s, err := a.dial(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	defer s.conn.CloseNow() //nolint:errcheck // whatever was on its way is lost
	listed := make(chan struct{})
	ended := make(chan error, 2)
	end := func(err error) {
		s.end(err)
		ended <- err
	}
	parts.Go(func() {
		end(s.read(ctx, func(e *wireEvent) {
			select {
			case <-listed: // events are about the state that was listed
				a.event(s, e)
			case <-ctx.Done():
			}
		}))
	})
	listing, cancelListing := context.WithTimeout(ctx, listWithin)
	defer cancelListing()
	if err := s.initialize(listing); err != nil {
		return err
	}
	var network struct {
		State struct {
			Nodes adapter.List[*wireNode] `json:"nodes"`
		} `json:"state"`
	}
	if err := s.call(listing, startListening, nil, &network); err != nil {
		return err
	}
	a.up(s, network.State.Nodes)
	close(listed)
	parts.Go(func() { end(s.alive(ctx)) })
	return <-ended
}

// up takes in the network as the gateway lists it. What is on the locks may have changed while nobody listened.
func (a *Adapter) up(s *session, nodes []*wireNode) {
	a.mu.Lock()
	known := a.nodes
	a.nodes, a.others = map[int]*node{}, map[int]adapter.DeviceRef{}
	hints := []adapter.Event{{Kind: adapter.Resync}}
	unfit := 0
	for _, w := range nodes {
		if n := a.take(s, known[w.NodeID], w); n != nil {
			if s.unfit(n) {
				unfit++
			}
			hints = append(hints, adapter.Event{Kind: adapter.CodesChanged, Device: n.ref})
		}
	}
	a.session, a.failed = s, nil
	a.over()
	a.mu.Unlock()
	a.log.Info("connected to the gateway", "server", s.log, "schema", s.schema, "locks", len(hints)-1)
	if unfit > 0 {
		a.log.Warn("codes of locks whose users have names wait: the gateway's zwave-js-server cannot speak of them; bring it up to date", "schema", s.schema, "needed", unifiedFrom, "locks", unfit)
	}
	for _, h := range hints {
		a.hints.Send(h)
	}
}

// take takes in a node as it is described, whose codes may be others by now; nil: it is no lock that can be told apart yet. The caller holds a.mu.
func (a *Adapter) take(s *session, known *node, w *wireNode) *node {
	switch {
	case w.NodeID < 1 || w.NodeID > mostNode:
		return nil
	case len(a.nodes) >= mostLocks && a.nodes[w.NodeID] == nil:
		a.others[w.NodeID] = "" // it may be a lock that is known
		return nil
	}
	other := w.ref(s)
	if w.unknown() {
		other = ""
	}
	n := a.node(s, known, w)
	if n == nil {
		a.others[w.NodeID] = other
		return nil
	}
	delete(a.others, w.NodeID)
	n.codes.doubtAll()
	a.nodes[w.NodeID] = n
	return n
}

// down notes that there is no connection: until the next try is over where there was one, and why where there
// was none.
func (a *Adapter) down(err error) {
	a.mu.Lock()
	lost := a.session != nil
	told := adapter.ClassOf(a.failed)
	if lost {
		a.session, a.failed, a.tried = nil, nil, make(chan struct{})
	} else {
		a.failed = err
		a.over()
	}
	a.mu.Unlock()
	switch {
	case lost:
		a.log.Warn("the connection to the gateway is lost; it is made again", "reason", adapter.Reason(err))
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // which fails unless it is made again
	case adapter.ClassOf(err) == adapter.AuthRevoked && told != adapter.AuthRevoked:
		a.hints.Send(adapter.Event{Kind: adapter.AccountRevoked})
	default:
		a.log.Debug("no connection to the gateway", "reason", adapter.Reason(err))
	}
}

// over lets those go on who wait for the try to connect.
func (a *Adapter) over() {
	select {
	case <-a.tried:
	default:
		close(a.tried)
	}
}

// connected is the connection, if need be after the try that is on its way. It fails as that does.
func (a *Adapter) connected(ctx context.Context) (*session, error) {
	for {
		a.mu.Lock()
		s, err, tried := a.session, a.failed, a.tried
		a.mu.Unlock()
		switch {
		case s != nil:
			return s, nil
		case err != nil:
			return nil, unavailable(err)
		}
		select {
		case <-tried:
		case <-a.done:
			return nil, adapter.Errorf(adapter.GatewayDown, "the adapter is closed")
		case <-ctx.Done():
			return nil, late(ctx, adapter.GatewayDown, "no connection to the gateway yet")
		}
	}
}
