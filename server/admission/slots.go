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

// ErrBusy reports that a request got no slot in time.
var ErrBusy = errors.New("the server is busy with other requests of the same address")

// slotTimeout is how long a request waits for a slot.
const patience = 20 * time.Second

// caller is a client address with its requests.
type caller struct {
	visits  int
	running int
	unread  int // bytes of responses
	last    uint64
	queues  [kinds][]*visit // waiting requests
	lingers bool            // kept although it may have no request
	long    map[string]bool // paths with long responses

	rooms    int // large bodies being received
	roomless []*visit
}

// kind is the cost class of a request. Its size in bytes decides: of the body received so far, or of the earlier
// response to the same path.
type kind int

const (
	light kind = iota
	heavy
	kinds
)

// request is one request. It needs a slot to be processed. It has none while its body is being received, nor once its
// response is being sent.
type visit struct {
	crowd  *Crowd
	conn   *conn // nil: not from our listener
	caller *caller
	name   string
	path   string
	kind   kind
	turned bool // has a turn
	over   bool // needs no slot any more
	inTurn bool // uses slots at all
	room   bool // may receive a large body
	got    int  // bytes of its body
	sent   int  // bytes of its response
	held   int  // bytes
	unread int  // part of held that is response
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

// register creates a request, which must end with end.
func (c *Crowd) enroll(name string, n *conn) *visit {
	v := &visit{
		crowd: c,
		conn:  n,
		name:  name,
		since: time.Now(),
	}
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

// end ends the request.
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

// unref drops a reference to a caller, and forgets a caller without any; with c.mu held.
func (c *Crowd) forgo(name string, k *caller) {
	if k.visits--; k.visits == 0 {
		delete(c.callers, name)
	}
}

// learnCost remembers whether the path has a long response; with the lock held.
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

// requeue moves waiting requests to the queue of their kind as known now; with the lock held.
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

// afterStall runs f after WriteStallTimeout and remembers the caller until then; with c.mu held.
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

// acquire waits for a slot. It returns ErrBusy, net.ErrClosed, or the error of ctx.
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

// waitFor queues the request until *given is true. It is called with the lock and releases it.
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
	// no other code detects this while the body is not read
	case <-gone:
		err = net.ErrClosed
	case <-enough.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if *given { // granted meanwhile
		return nil
	}
	if in := queue(); slices.Contains(*in, v) { // the queue may have changed
		i := slices.Index(*in, v)
		*in = slices.Delete(*in, i, i+1)
	}
	return err
}

// suspend releases the slot until the next acquire.
func (v *visit) pass() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.yield()
}

// finish releases the slot finally.
func (v *visit) done() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.over = true
	v.yield()
}

// resume allows another acquire after finish, as a heavy request.
func (v *visit) resume() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.yield()
	v.over, v.kind = false, heavy
}

// release passes the slot on; with the lock held.
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

// canGrant reports whether v may have a slot. One caller never has all slots, and gets none while it leaves too much
// unread. Heavy requests never have all slots, and use few processors while other callers send light ones. With c.mu
// held.
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

// processors returns the number of processors that this process may use. It may have fewer threads, or a quota.
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

// grantNext grants the free slots to waiting requests: light ones first while a heavy one is being processed. With c.mu
// held.
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

// grantNextOf grants a slot to the caller with fewest slots, and among equals to the one whose last grant is oldest.
// With c.mu held.
func (c *Crowd) nextOf(what kind) bool {
	var first *caller
	for _, k := range c.callers {
		if len(k.queues[what]) > 0 && c.may(k.queues[what][0]) &&
			(first == nil || k.running < first.running || k.running == first.running && k.last < first.last) {
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

// holdBytes counts bytes that are held for a request. If there are too many, it sheds the oldest request of the callers
// that hold most.
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

// shed counts the bytes that a request holds as freed, which they are in a moment. They count against its caller for as
// long as the caller might have held them. Otherwise the caller could fill them again immediately. With the lock held.
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

// unholdBytes ends holdBytes for n bytes.
func (v *visit) release(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.letGo(min(n, v.held))
}

// dropBytes subtracts n bytes; with the lock held.
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

// pickVictim returns the request to shed: the oldest of the callers that hold most, or at least half of that. With c.mu
// held.
func (c *Crowd) heaviest() (out *visit) {
	of, most := map[*caller]int{}, 0
	for v := range c.visits {
		if of[v.caller] += v.held; !v.turned {
			most = max(most, of[v.caller])
		}
	}
	for v := range c.visits {
		// requests with a slot are being processed
		if !v.turned && of[v.caller] >= most/2 && (out == nil || v.since.Before(out.since)) {
			out = v
		}
	}
	return out
}
