package admission

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
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
	queues  [kinds][]*visit // of those who wait
	lingers bool            // is remembered although there may be no visit
	long    map[string]bool // what has been answered at length

	rooms    int // for large bodies, that are taken
	roomless []*visit
}

// kind of a request, by what it costs. That is told by bytes: those of a body that is there, and those that were answered
// when the same was asked for before.
type kind int

const (
	light kind = iota
	heavy
	kinds
)

// visit is one request. A turn is what it needs to be worked on: it has none while its body is on its way, and none
// once its answer is.
type visit struct {
	crowd  *Crowd
	conn   *conn // nil: not of our listener
	caller *caller
	name   string
	path   string
	kind   kind
	turned bool // has a turn
	over   bool // wants none any more
	inTurn bool // works in turn at all
	room   bool // has one for a large body
	got    int  // bytes of its body
	sent   int  // bytes of its answer
	held   int  // bytes
	unread int  // of these, of an answer
	since  time.Time
	ready  chan struct{}
}

func (c *Crowd) visit(r *http.Request) *visit {
	n, _ := r.Context().Value(connKey{}).(*conn)
	v := c.enroll(c.limits.Address(r), n)
	c.mu.Lock()
	defer c.mu.Unlock()
	v.path = r.URL.Path
	if v.caller.long[v.path] {
		v.kind = heavy
	}
	return v
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
	if v.room {
		v.caller.leaveRoom()
	}
	v.learn()
	v.crowd.forgo(v.name, v.caller)
}

// forgo counts a visit less, and forgets who has none; with c.mu held.
func (c *Crowd) forgo(name string, k *caller) {
	if k.visits--; k.visits == 0 {
		delete(c.callers, name)
	}
}

// learn remembers whether what was asked for has a long answer; with the lock held.
func (v *visit) learn() {
	k := v.caller
	switch {
	case v.sent == 0:
	case v.sent <= large:
		delete(k.long, v.path)
	case len(k.long) < mostLong:
		if k.long == nil {
			k.long = map[string]bool{}
		}
		k.long[v.path] = true
		k.sort()
	}
	if len(k.long) > 0 && !k.lingers {
		k.lingers = true
		v.crowd.later(v, func() { k.lingers = false })
	}
}

// sort puts those who wait where they belong by what is known now; with the lock held.
func (k *caller) sort() {
	var rest []*visit
	for _, v := range k.queues[light] {
		if k.long[v.path] {
			v.kind = heavy
			k.queues[heavy] = append(k.queues[heavy], v)
		} else {
			rest = append(rest, v)
		}
	}
	k.queues[light] = rest
}

// later does what is due to the caller of a visit after a while, and remembers him until then; with c.mu held.
func (c *Crowd) later(v *visit, f func()) {
	name, k := v.name, v.caller
	k.visits++
	time.AfterFunc(StalledAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
		c.next()
		c.forgo(name, k)
	})
}

// take waits for a turn. It fails with ErrBusy, or as ctx does.
func (v *visit) take(ctx context.Context) error {
	c := v.crowd
	c.mu.Lock()
	if v.over || v.turned {
		c.mu.Unlock()
		return nil
	}
	if len(v.caller.queues[v.kind]) == 0 && c.may(v) {
		c.give(v)
		c.mu.Unlock()
		return nil
	}
	return v.wait(ctx, func() *[]*visit { return &v.caller.queues[v.kind] }, &v.turned)
}

// wait is until what is queued for has been given. It is called with the lock, which it lets go.
func (v *visit) wait(ctx context.Context, queue func() *[]*visit, given *bool) error {
	c := v.crowd
	v.ready = make(chan struct{})
	*queue() = append(*queue(), v)
	c.mu.Unlock()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	var gone <-chan struct{}
	if v.conn != nil {
		gone = v.conn.gone
	}
	var err error
	select {
	case <-v.ready:
		return nil
	case <-gone: // nobody else tells of that before the body has been read
		err = net.ErrClosed
	case <-enough.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if *given { // just now
		return nil
	}
	if in := queue(); slices.Contains(*in, v) { // which it may have changed
		i := slices.Index(*in, v)
		*in = slices.Delete(*in, i, i+1)
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

// resume lets a turn be taken once more, after done.
func (v *visit) resume() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.yield()
	v.over, v.kind = false, heavy
}

// yield gives the turn to the next; with the lock held.
func (v *visit) yield() {
	if !v.turned {
		return
	}
	v.turned = false
	v.caller.running--
	v.crowd.free++
	v.crowd.working[v.kind]--
	v.crowd.next()
}

// may says whether there is a turn for v: one caller never has all of them, and none at all while he leaves what he has
// asked for unread. What costs much never has all, and leaves others the processors as long as they have use for them.
// With c.mu held.
func (c *Crowd) may(v *visit) bool {
	if c.free == 0 || v.caller.running >= max(1, c.limits.Turns*3/4) || v.caller.unread > c.limits.Held/8 {
		return false
	}
	if v.kind == light {
		return true
	}
	most := max(1, c.limits.Turns/2)
	if c.modest.others(v.name) {
		most = max(1, min(most, processors()/2))
	}
	return c.working[heavy] < most
}

// processors are those that this process may use: it may have more threads, or a quota.
func processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

func (c *Crowd) give(v *visit) {
	c.free--
	c.working[v.kind]++
	c.served++
	v.turned = true
	v.caller.running++
	v.caller.last = c.served
	if v.kind == light {
		c.modest.seen(v.name)
	}
}

// next gives the turns that are free to those who wait: what costs little first, as long as something that costs much is
// being worked on. With c.mu held.
func (c *Crowd) next() {
	if c.working[heavy] == 0 {
		c.nextOf(heavy)
	}
	for c.nextOf(light) {
		continue
	}
	for c.nextOf(heavy) {
		continue
	}
}

// nextOf gives a turn to whoever has fewest, of these to whoever has waited longest since his last. With c.mu held.
func (c *Crowd) nextOf(what kind) bool {
	var first *caller
	for _, k := range c.callers {
		if len(k.queues[what]) > 0 && c.may(k.queues[what][0]) && (first == nil || k.running < first.running || k.running == first.running && k.last < first.last) {
			first = k
		}
	}
	if first == nil {
		return false
	}
	v := first.queues[what][0]
	first.queues[what] = first.queues[what][1:]
	c.give(v)
	close(v.ready)
	return true
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
			slow.giveWay()
		}
	}
	c.mu.Unlock()
	c.close(out)
}

// giveWay counts what a visit holds as freed, which it is in a moment. Its caller has that counted against him for as long
// as he might have kept it: else he would be at it again at once. With the lock held.
func (v *visit) giveWay() {
	k, unread, rooms := v.caller, v.unread, 0
	if v.room {
		v.room, rooms = false, 1
	}
	v.letGo(v.held)
	if unread+rooms == 0 {
		return
	}
	k.unread += unread
	v.crowd.later(v, func() {
		k.unread -= unread
		for range rooms {
			k.leaveRoom()
		}
	})
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

// heaviest is the request that gives way: the oldest of those whose callers hold most, or nearly as much. With c.mu held.
func (c *Crowd) heaviest() (out *visit) {
	of, most := map[*caller]int{}, 0
	for v := range c.visits {
		if of[v.caller] += v.held; !v.turned {
			most = max(most, of[v.caller])
		}
	}
	for v := range c.visits {
		if !v.turned && of[v.caller] >= most/2 && (out == nil || v.since.Before(out.since)) { // one with a turn is being worked on
			out = v
		}
	}
	return out
}
