package crowd

import (
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// door is a listener that lets in so many connections a second, after the first few. What hundreds cost that come at once,
// from however many addresses, would otherwise be in the way of every request that is worked on. Addresses take turns, so
// that one from which few come does not wait for the many of another.
type door struct {
	net.Listener
	crowd  *Crowd
	pace   *rate.Limiter
	came   chan struct{} // room for one: somebody waits
	failed chan error    // what the listener says
	closed chan struct{}

	mu    sync.Mutex
	shut  bool
	wait  map[string][]*conn // by place, those that came first first
	turns []string           // the places that somebody waits from, the next one first
}

// listen has connections of l come in through a door.
func (c *Crowd) listen(l net.Listener) net.Listener {
	d := &door{Listener: l, crowd: c, pace: rate.NewLimiter(rate.Limit(c.limits.Arrivals), arrivalsAtOnce),
		came: make(chan struct{}, 1), failed: make(chan error), closed: make(chan struct{}), wait: map[string][]*conn{}}
	go d.receive()
	return d
}

// receive takes in who comes until the door is shut.
func (d *door) receive() {
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
	shut := d.shut
	if !shut {
		if len(d.wait[n.place]) == 0 {
			d.turns = append(d.turns, n.place)
		}
		d.wait[n.place] = append(d.wait[n.place], n)
	}
	d.mu.Unlock()
	if shut {
		n.Close() //nolint:errcheck // nothing was said
		return
	}
	select {
	case d.came <- struct{}{}:
	default: // it is known
	}
}

// Accept waits for the next connection, and until there have not been too many.
func (d *door) Accept() (net.Conn, error) {
	for {
		if !d.somebody() {
			select {
			case <-d.came:
				continue
			case err := <-d.failed:
				return nil, err
			case <-d.closed:
				return nil, net.ErrClosed
			}
		}
		enough := time.NewTimer(d.pace.Reserve().Delay())
		select {
		case <-enough.C:
		case <-d.closed:
			enough.Stop()
			return nil, net.ErrClosed
		}
		if n := d.next(); n != nil { // nil: all have left meanwhile
			return n, nil
		}
	}
}

// somebody says whether a connection waits, and forgets those before it that have given way.
func (d *door) somebody() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.turns) > 0 {
		if place := d.turns[0]; d.present(place) {
			return true
		}
		d.turns = d.turns[1:]
	}
	return false
}

// present forgets those of a place that have given way, and says whether there is one left; with d.mu held.
func (d *door) present(place string) bool {
	queue := d.wait[place]
	for len(queue) > 0 && queue[0].left() {
		queue = queue[1:]
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
		if d.wait[place] = d.wait[place][1:]; d.present(place) {
			d.turns = append(d.turns, place)
		}
		return n
	}
	return nil
}

// Close shuts the door. Who waits before it is sent away, and so is who comes later.
func (d *door) Close() error {
	d.mu.Lock()
	var out []*conn
	if !d.shut {
		d.shut = true
		close(d.closed)
		for _, queue := range d.wait {
			out = append(out, queue...)
		}
		d.wait, d.turns = nil, nil
	}
	d.mu.Unlock()
	err := d.Listener.Close()
	for _, n := range out {
		err = errors.Join(err, n.Close())
	}
	return err
}
