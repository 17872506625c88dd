package admission

import (
	"net"
	"sync"
	"time"
)

// acceptPacer is a listener that spreads bursts. Otherwise hundreds of simultaneous connections, from any number of
// addresses, would delay every running request. Addresses take turns, so that an address with few connections does not
// wait for another one's many. The pacer rejects no connection: the more wait, the faster it accepts.
type door struct {
	net.Listener
	crowd  *Crowd
	came   chan struct{} // buffer of one: connections wait
	failed chan error    // errors of the listener
	closed chan struct{}
	ended  chan struct{} // no more connections arrive
	// when the next connection may be accepted; used only by Accept, which one goroutine calls
	free time.Time

	mu    sync.Mutex
	shut  bool
	count int                // waiting connections, including those shed meanwhile
	wait  map[string][]*conn // by origin, in order of arrival
	// origins with waiting connections, the next one first
	turns []string
}

// listen returns a pacer for the connections of l.
func (c *Crowd) listen(l net.Listener) *door {
	d := &door{
		Listener: l,
		crowd:    c,
		came:     make(chan struct{}, 1),
		failed:   make(chan error),
		closed:   make(chan struct{}),
		ended:    make(chan struct{}),
		wait:     map[string][]*conn{},
	}
	go d.receive()
	return d
}

// receive admits connections until the pacer is closed.
func (d *door) receive() {
	defer close(d.ended)
	for {
		inner, err := d.Listener.Accept()
		if err == nil {
			if n := d.crowd.enter(inner); n != nil {
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

func (d *door) queue(n *conn) {
	d.mu.Lock()
	if len(d.wait[n.place]) == 0 {
		d.turns = append(d.turns, n.place)
	}
	d.wait[n.place] = append(d.wait[n.place], n)
	d.count++
	d.mu.Unlock()
	select {
	case d.came <- struct{}{}:
	default: // already signaled
	}
}

// Accept returns the next connection, once it may be accepted. After Close, it returns the connections that still wait
// without delay, because the server completes what it has started.
func (d *door) Accept() (net.Conn, error) {
	for {
		if d.waiting() > 0 {
			d.pause()
			if n := d.next(); n != nil {
				return n, nil
			}
			continue // all were closed meanwhile
		}
		select {
		case <-d.came:
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
func (d *door) pause() {
	if d.crowd.limits.Proxied {
		return
	}
	usual := time.Second / time.Duration(d.crowd.limits.Arrivals)
	if first := time.Now().Add(-arrivalsAtOnce * usual); d.free.Before(first) {
		d.free = first
	}
	if left := time.Until(d.free); left > 0 {
		enough := time.NewTimer(left)
		defer enough.Stop()
		select {
		case <-enough.C:
		case <-d.closed:
		}
	}
	if n := d.waiting(); n > 0 {
		d.free = d.free.Add(min(usual, spread/time.Duration(n)))
	}
}

// waiting returns the number of waiting connections. It drops closed ones at the head of the order.
func (d *door) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.turns) > 0 && !d.present(d.turns[0]) {
		d.turns = d.turns[1:]
	}
	return d.count
}

// hasWaiting drops closed connections of an origin, and reports whether any waits; with d.mu held.
func (d *door) present(place string) bool {
	queue := d.wait[place]
	for len(queue) > 0 && queue[0].left() {
		queue = queue[1:]
		d.count--
	}
	if d.wait[place] = queue; len(queue) == 0 {
		delete(d.wait, place)
	}
	return len(queue) > 0
}

// next returns the next connection in order, or nil.
func (d *door) next() *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.turns) > 0 {
		place := d.turns[0]
		d.turns = d.turns[1:]
		if !d.present(place) {
			continue
		}
		n := d.wait[place][0]
		d.count--
		if d.wait[place] = d.wait[place][1:]; d.present(place) {
			d.turns = append(d.turns, place)
		}
		return n
	}
	return nil
}

// Close closes the listener. Accept then returns the waiting connections.
func (d *door) Close() error {
	d.mu.Lock()
	if !d.shut {
		d.shut = true
		close(d.closed)
	}
	d.mu.Unlock()
	return d.Listener.Close()
}

// closeWaiting closes the connections that still wait when the server has ended.
func (d *door) clear() {
	<-d.ended
	for n := d.next(); n != nil; n = d.next() {
		n.Close() //nolint:errcheck // nothing was sent
	}
}
