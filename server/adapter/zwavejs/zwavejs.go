// Package zwavejs implements adapter.Adapter for the Z-Wave locks and thermostats behind a zwave-js-server, the
// WebSocket server of Z-Wave JS UI and Home Assistant's Z-Wave JS app (github.com/zwave-js/zwave-js-server, its README
// and docs). It must not know who owns a code.
//
// Where the protocol leaves a choice, the package decides:
//
//   - A code is a slot of a lock. A new code uses the lowest slot that the lock itself has just reported as free.
//     Slot 0, the master code of some locks, is never touched.
//   - Radio traffic drains the battery of a lock. A lock is read in full once after each connection, and after it
//     was dead. After that, the lock and the gateway report changed slots, and only those are read. A lock that
//     does not report changes at its keypad is read in full on each call.
//   - A write is confirmed when the lock has shown it. Locks reject a duplicate PIN only by a notification, which
//     may follow the response; the adapter waits for it.
//   - A lock that returns asterisks instead of PINs permanently counts as hiding PINs. A slot with another PIN is
//     cleared before a write, because a lock that rejects the new PIN looks like one that accepted it.
//   - Named users without a PIN, cards, and fingerprints do not belong to the adapter. A user for a new code is
//     added, which the lock rejects if the number is in use. The user is deleted only if the lock shows that it
//     has no other credential.
//   - What a lock with named users has not answered is read again, and never counts as absent.
//   - The gateway announces what it writes to a thermostat before the thermostat has applied it. The adapter reads each
//     written value from the device, and ignores announcements meanwhile. Otherwise a thermostat is not read, because it
//     reports its changes.
//   - A lock that the gateway has not reached since its start, or not interviewed completely, keeps its
//     properties and waits.
//   - The identifier of an excluded node is reused for another lock; the old device counts as removed
//     permanently. If the event was missed, a missing node or another serial number shows the removal. A lock of
//     the same model without a serial number cannot be distinguished then.
package zwavejs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Adapter accesses one gateway. It stays connected from New to Close.
type Adapter struct {
	gateway
	log    *slog.Logger
	hints  *adapter.EventQueue
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	session *session      // nil without a connection
	failed  error         // error of the last attempt to connect; nil while it runs
	tried   chan struct{} // closed when the attempt ends
	nodes   map[int]*node // locks and thermostats of the network by node identifier

	// otherNodes holds the nodes that show neither, with the reference that each would have; empty while the gateway has
	// not identified the node.
	otherNodes map[int]adapter.DeviceRef
}

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Locker  = (*Adapter)(nil)

	_ adapter.ThermostatController = (*Adapter)(nil)
)

// New connects in the background, and retries until Close. It fails with Invalid.
func New(c Config) (*Adapter, error) {
	g, err := c.gateway()
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Adapter{
		gateway: g,
		log:     c.Log,
		hints:   adapter.NewEventQueue(),
		cancel:  cancel,
		done:    make(chan struct{}),
		tried:   make(chan struct{}),
		nodes:   map[int]*node{},
	}
	go a.run(ctx)
	return a, nil
}

// Check connects to the gateway once and returns what is wrong. It fails with Invalid, GatewayDown, AuthRevoked, or
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
	defer s.conn.CloseNow() //nolint:errcheck // no call is pending
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

// run connects and reconnects until ctx ends.
func (a *Adapter) run(ctx context.Context) {
	defer close(a.done)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		err := a.serve(ctx)
		a.markDown(err)
		if time.Since(began) > time.Minute {
			n = 0
		}
		select {
		case <-time.After(pause(n)):
		case <-ctx.Done():
		}
	}
}

// serve handles one connection from dialing to its end.
func (a *Adapter) serve(ctx context.Context) error {
	s, err := a.dial(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	defer s.conn.CloseNow() //nolint:errcheck // pending calls fail
	listed := make(chan struct{})
	ended := make(chan error, 2)
	end := func(err error) {
		s.end(err)
		ended <- err
	}
	parts.Go(func() {
		end(s.read(ctx, func(e *wireEvent) {
			select {
			case <-listed: // events refer to the listed state
				a.handleEvent(s, e)
			case <-ctx.Done():
			}
		}))
	})
	listing, cancelListing := context.WithTimeout(ctx, listTimeout)
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
	a.markUp(s, network.State.Nodes)
	close(listed)
	parts.Go(func() { end(s.pingLoop(ctx)) })
	return <-ended
}

// markUp processes the list of the network. The codes on the locks may have changed while disconnected.
func (a *Adapter) markUp(s *session, nodes []*wireNode) {
	a.mu.Lock()
	known := a.nodes
	a.nodes, a.otherNodes = map[int]*node{}, map[int]adapter.DeviceRef{}
	hints := []adapter.Event{{Kind: adapter.Resync}}
	unfit := 0
	for _, w := range nodes {
		if n := a.adoptNode(s, known[w.NodeID], w); n != nil {
			if s.tooOld(n) {
				unfit++
			}
			hints = append(hints, n.relisted())
		}
	}
	a.session, a.failed = s, nil
	a.endAttempt()
	a.mu.Unlock()
	a.log.Info("connected to the gateway", "server", s.serverVersion, "schema", s.schema, "devices", len(hints)-1)
	if unfit > 0 {
		a.log.Warn("codes of locks with named users wait: the gateway's zwave-js-server does not support them; "+
			"bring it up to date", "schema", s.schema, "needed", accessControlSchema, "locks", unfit)
	}
	for _, h := range hints {
		a.hints.Send(h)
	}
}

// adoptNode processes the description of a node, whose codes become uncertain. It returns nil if the node is not an
// identifiable lock or thermostat; a.mu is held.
func (a *Adapter) adoptNode(s *session, known *node, w *wireNode) *node {
	switch {
	case w.NodeID < 1 || w.NodeID > maxNodeID:
		return nil
	case len(a.nodes) >= maxLocks && a.nodes[w.NodeID] == nil:
		a.otherNodes[w.NodeID] = "" // it may be a known lock
		return nil
	}
	other := w.ref(s)
	if w.unknown() {
		other = ""
	}
	n := a.node(s, known, w)
	if n == nil {
		a.otherNodes[w.NodeID] = other
		return nil
	}
	delete(a.otherNodes, w.NodeID)
	n.codes.markAllUncertain()
	a.nodes[w.NodeID] = n
	return n
}

// markDown records the loss of the connection, or the error of the last attempt.
func (a *Adapter) markDown(err error) {
	a.mu.Lock()
	lost := a.session != nil
	told := adapter.ClassOf(a.failed)
	if lost {
		a.session, a.failed, a.tried = nil, nil, make(chan struct{})
	} else {
		a.failed = err
		a.endAttempt()
	}
	a.mu.Unlock()
	switch {
	case lost:
		a.log.Warn("the connection to the gateway is lost; the server reconnects", "error", adapter.Reason(err))
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed}) // listing fails until the connection is reestablished
	case adapter.ClassOf(err) == adapter.AuthRevoked && told != adapter.AuthRevoked:
		a.hints.Send(adapter.Event{Kind: adapter.AccountRevoked})
	default:
		a.log.Debug("no connection to the gateway", "error", adapter.Reason(err))
	}
}

// endAttempt ends the attempt to connect and wakes the waiting calls.
func (a *Adapter) endAttempt() {
	select {
	case <-a.tried:
	default:
		close(a.tried)
	}
}

// connected returns the connection, if necessary after the running attempt. It fails like that attempt.
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
			return nil, contextError(ctx, adapter.GatewayDown, "no connection to the gateway yet")
		}
	}
}
