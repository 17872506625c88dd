package admission

import (
	"net"
	"sync"
	"time"
)

// door is a listener that spreads what comes at once: hundreds of connections in one moment, from however many addresses,
// would otherwise be in the way of every request that is worked on. Addresses take turns, so that one from which few come
// does not wait for the many of another. It turns nobody away: the more wait, the faster they are let in.
type door struct {
	net.Listener
	crowd  *Crowd
	came   chan struct{} // room for one: somebody waits
	failed chan error    // what the listener says
	closed chan struct{}
	ended  chan struct{} // nobody comes any more
	free   time.Time     // when the next one may come in; of Accept, which one goroutine calls

	mu    sync.Mutex
	shut  bool
	count int                // of those who wait, with those that have given way meanwhile
	wait  map[string][]*conn // by place, those that came first first
	turns []string           // the places that somebody waits from, the next one first
}

// listen has connections of l come in through a door.
func (c *Crowd) listen(l net.Listener) *door {
	d := &door{Listener: l, crowd: c, came: make(chan struct{}, 1), failed: make(chan error), closed: make(chan struct{}), ended: make(chan struct{}), wait: map[string][]*conn{}}
	go d.receive()
	return d
}

// receive takes in who comes until the door is shut.
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
		case d.failed <- err: // which the server waits after, where that helps
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
	default: // it is known
	}
}

// Accept waits for the next connection, and until it may come in. Those that wait when the door is shut are let in at once,
// as the server ends what it has begun.
func (d *door) Accept() (net.Conn, error) {
	for {
		if d.waiting() > 0 {
			d.pause()
			if n := d.next(); n != nil {
				return n, nil
			}
			continue // all have left meanwhile
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

// pause is what keeps those apart that come at once.
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

// waiting is how many wait, and forgets those whose turn it would be and that have given way.
func (d *door) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.turns) > 0 && !d.present(d.turns[0]) {
		d.turns = d.turns[1:]
	}
	return d.count
}

// present forgets those of a place that have given way, and says whether there is one left; with d.mu held.
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

// next is the connection whose turn it is; nil: there is none.
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

// Close shuts the door.
func (d *door) Close() error {
	d.mu.Lock()
	if !d.shut {
		d.shut = true
		close(d.closed)
	}
	d.mu.Unlock()
	return d.Listener.Close()
}

// clear sends away who waits at a door whose server has ended.
func (d *door) clear() {
	<-d.ended
	for n := d.next(); n != nil; n = d.next() {
		n.Close() //nolint:errcheck // nothing was said
	}
}
