package admission

import (
	"net"
	"sync"
	"time"
)

// acceptPacer is a listener that spreads bursts. Otherwise hundreds of simultaneous connections, from any number of
// addresses, would delay every running request. Addresses take turns, so that an address with few connections does not
// wait for another one's many. The pacer rejects no connection: the more wait, the faster it accepts.
type acceptPacer struct {
	net.Listener
	crowd   *Controller
	arrived chan struct{} // buffer of one: connections wait
	failed  chan error    // errors of the listener
	closed  chan struct{}
	ended   chan struct{} // no more connections arrive
	// when the next connection may be accepted; used only by Accept, which one goroutine calls
	nextAt time.Time

	mu      sync.Mutex
	closing bool
	count   int                // waiting connections, including those shed meanwhile
	wait    map[string][]*conn // by origin, in order of arrival
	// origins with waiting connections, the next one first
	order []string
}

// listen returns a pacer for the connections of l.
func (c *Controller) listen(l net.Listener) *acceptPacer {
	d := &acceptPacer{
		Listener: l,
		crowd:    c,
		arrived:  make(chan struct{}, 1),
		failed:   make(chan error),
		closed:   make(chan struct{}),
		ended:    make(chan struct{}),
		wait:     map[string][]*conn{},
	}
	go d.receive()
	return d
}

// receive admits connections until the pacer is closed.
func (d *acceptPacer) receive() {
	defer close(d.ended)
	for {
		inner, err := d.Listener.Accept()
		if err == nil {
			if n := d.crowd.admit(inner); n != nil {
				d.queue(n)
			}
			continue
		}
		select {
		// the server delays its next Accept after temporary errors
		case d.failed <- err:
		case <-d.closed:
			return
		}
	}
}

func (d *acceptPacer) queue(n *conn) {
	d.mu.Lock()
	if len(d.wait[n.origin]) == 0 {
		d.order = append(d.order, n.origin)
	}
	d.wait[n.origin] = append(d.wait[n.origin], n)
	d.count++
	d.mu.Unlock()
	select {
	case d.arrived <- struct{}{}:
	default: // already signaled
	}
}

// Accept returns the next connection, once it may be accepted. After Close, it returns the connections that still wait
// without delay, because the server completes what it has started.
func (d *acceptPacer) Accept() (net.Conn, error) {
	for {
		if d.waiting() > 0 {
			d.pause()
			if n := d.next(); n != nil {
				return n, nil
			}
			continue // all were closed meanwhile
		}
		select {
		case <-d.arrived:
		case err := <-d.failed:
			return nil, err
		case <-d.ended:
			if d.waiting() == 0 {
				return nil, net.ErrClosed
			}
		}
	}
}

// pause delays the accepts of a burst.
func (d *acceptPacer) pause() {
	if d.isProxyNext() {
		return
	}
	usual := time.Second / time.Duration(d.crowd.limits.AcceptsPerSecond)
	if first := time.Now().Add(-acceptBurst * usual); d.nextAt.Before(first) {
		d.nextAt = first
	}
	if left := time.Until(d.nextAt); left > 0 {
		enough := time.NewTimer(left)
		defer enough.Stop()
		select {
		case <-enough.C:
		case <-d.closed:
		}
	}
	if n := d.waiting(); n > 0 {
		d.nextAt = d.nextAt.Add(min(usual, acceptSpread/time.Duration(n)))
	}
}

// waiting returns the number of waiting connections. It drops closed ones at the head of the order.
func (d *acceptPacer) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.order) > 0 && !d.hasWaiting(d.order[0]) {
		d.order = d.order[1:]
	}
	return d.count
}

// isProxyNext reports whether the next connection comes from a proxy.
func (d *acceptPacer) isProxyNext() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.order) > 0 && d.hasWaiting(d.order[0]) && d.wait[d.order[0]][0].proxy
}

// hasWaiting drops closed connections of an origin, and reports whether any waits; with d.mu held.
func (d *acceptPacer) hasWaiting(place string) bool {
	queue := d.wait[place]
	for len(queue) > 0 && queue[0].isClosed() {
		queue = queue[1:]
		d.count--
	}
	if d.wait[place] = queue; len(queue) == 0 {
		delete(d.wait, place)
	}
	return len(queue) > 0
}

// next returns the next connection in order, or nil.
func (d *acceptPacer) next() *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.order) > 0 {
		place := d.order[0]
		d.order = d.order[1:]
		if !d.hasWaiting(place) {
			continue
		}
		n := d.wait[place][0]
		d.count--
		if d.wait[place] = d.wait[place][1:]; d.hasWaiting(place) {
			d.order = append(d.order, place)
		}
		return n
	}
	return nil
}

// Close closes the listener. Accept then returns the waiting connections.
func (d *acceptPacer) Close() error {
	d.mu.Lock()
	if !d.closing {
		d.closing = true
		close(d.closed)
	}
	d.mu.Unlock()
	return d.Listener.Close()
}

// closeWaiting closes the connections that still wait when the server has ended.
func (d *acceptPacer) closeWaiting() {
	<-d.ended
	for n := d.next(); n != nil; n = d.next() {
		n.Close() //nolint:errcheck // nothing was sent
	}
}
