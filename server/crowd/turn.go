package crowd

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ErrBusy says that a request has not had its turn in time.
var ErrBusy = errors.New("the server is busy with what others of the same address ask")

// patience is how long a request waits for its turn.
const patience = 20 * time.Second

// caller is who makes requests.
type caller struct {
	visits  int
	running int
	unread  int // bytes of answers
	last    uint64
	queue   []*visit
}

// visit is one request. A turn is what it needs to be worked on: it has none while its body is on its way, and none
// once its answer is.
type visit struct {
	crowd  *Crowd
	conn   *conn // nil: not of our listener
	caller *caller
	name   string
	turned bool // has a turn
	over   bool // wants none any more
	inTurn bool // works in turn at all
	held   int  // bytes
	unread int  // of these, of an answer
	since  time.Time
	ready  chan struct{}
}

func (c *Crowd) visit(r *http.Request) *visit {
	n, _ := r.Context().Value(connKey{}).(*conn)
	return c.enroll(c.limits.Address(r), n)
}

// enroll begins a visit, which has to leave.
func (c *Crowd) enroll(name string, n *conn) *visit {
	v := &visit{crowd: c, conn: n, name: name, since: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	v.caller = c.callers[v.name]
	if v.caller == nil {
		v.caller = &caller{}
		c.callers[v.name] = v.caller
	}
	v.caller.visits++
	return v
}

// leave ends the visit.
func (v *visit) leave() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.yield()
	v.letGo(v.held)
	if v.caller.visits--; v.caller.visits == 0 {
		delete(v.crowd.callers, v.name)
	}
}

// take waits for a turn. It fails with ErrBusy, or as ctx does.
func (v *visit) take(ctx context.Context) error {
	c := v.crowd
	c.mu.Lock()
	if v.over || v.turned {
		c.mu.Unlock()
		return nil
	}
	if len(v.caller.queue) == 0 && c.may(v) {
		c.give(v)
		c.mu.Unlock()
		return nil
	}
	v.ready = make(chan struct{})
	v.caller.queue = append(v.caller.queue, v)
	c.mu.Unlock()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	var err error
	select {
	case <-v.ready:
		return nil
	case <-enough.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.turned { // just now
		return nil
	}
	for i, other := range v.caller.queue {
		if other == v {
			v.caller.queue = append(v.caller.queue[:i], v.caller.queue[i+1:]...)
			break
		}
	}
	return err
}

// pass gives the turn back until it is taken again.
func (v *visit) pass() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.yield()
}

// done gives the turn back for good.
func (v *visit) done() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.over = true
	v.yield()
}

// yield gives the turn to the next; with the lock held.
func (v *visit) yield() {
	if !v.turned {
		return
	}
	v.turned = false
	v.caller.running--
	v.crowd.free++
	v.crowd.next()
}

// may says whether there is a turn for v: one caller never has all of them, and none at all while he leaves what he has
// asked for unread. With c.mu held.
func (c *Crowd) may(v *visit) bool {
	return c.free > 0 && v.caller.running < max(1, c.limits.Turns*3/4) && v.caller.unread <= c.limits.Held/8
}

func (c *Crowd) give(v *visit) {
	c.free--
	c.served++
	v.turned = true
	v.caller.running++
	v.caller.last = c.served
}

// next gives the turns that are free to those who wait: first to whoever has fewest, then to whoever has waited longest
// since his last. With c.mu held.
func (c *Crowd) next() {
	for c.free > 0 {
		var first *caller
		for _, k := range c.callers {
			if len(k.queue) > 0 && c.may(k.queue[0]) && (first == nil || k.running < first.running || k.running == first.running && k.last < first.last) {
				first = k
			}
		}
		if first == nil {
			return
		}
		v := first.queue[0]
		first.queue = first.queue[1:]
		c.give(v)
		close(v.ready)
	}
}

// hold counts bytes that are kept for a request. When there are too many, the request gives way that has been at it
// longest of those of whoever has most.
func (v *visit) hold(n int, unread bool) {
	c := v.crowd
	c.mu.Lock()
	v.held += n
	c.held += n
	if unread {
		v.unread += n
		v.caller.unread += n
	}
	c.visits[v] = struct{}{}
	var out []*conn
	if c.held > c.limits.Held {
		if slow := c.heaviest(); slow != nil && slow.conn != nil {
			out = append(out, slow.conn)
			c.forget(slow.conn)
			slow.letGo(slow.held) // it is freed in a moment
		}
	}
	c.mu.Unlock()
	c.close(out)
}

// release is the end of hold.
func (v *visit) release(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.letGo(min(n, v.held))
}

// letGo counts n bytes less; with the lock held.
func (v *visit) letGo(n int) {
	v.held -= n
	v.crowd.held -= n
	fewer := min(n, v.unread)
	v.unread -= fewer
	v.caller.unread -= fewer
	if v.held == 0 {
		delete(v.crowd.visits, v)
	}
	if fewer > 0 {
		v.crowd.next()
	}
}

// heaviest is the request that gives way; with c.mu held.
func (c *Crowd) heaviest() (out *visit) {
	of := map[*caller]int{}
	for v := range c.visits {
		of[v.caller] += v.held
	}
	for v := range c.visits {
		if v.turned { // it is being worked on
			continue
		}
		if out == nil || of[v.caller] > of[out.caller] || v.caller == out.caller && v.since.Before(out.since) {
			out = v
		}
	}
	return out
}
