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
const slotTimeout = 20 * time.Second

// caller is a client address with its requests.
type caller struct {
	refs       int
	running    int
	unread     int // bytes of responses
	last       uint64
	queues     [kinds][]*request // waiting requests
	remembered bool              // kept although it may have no request
	longPaths  map[string]bool   // paths with long responses

	largeBodies int // large bodies being received
	bodyQueue   []*request
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
type request struct {
	crowd        *Controller
	conn         *conn // nil: not from our listener
	caller       *caller
	name         string
	path         string
	kind         kind
	hasSlot      bool // has a turn
	finished     bool // needs no slot any more
	usesSlots    bool // uses slots at all
	hasLargeBody bool // may receive a large body
	bodyBytes    int  // bytes of its body
	answerBytes  int  // bytes of its response
	held         int  // bytes
	unread       int  // part of held that is response
	since        time.Time
	ready        chan struct{}
}

func (c *Controller) newRequest(r *http.Request) *request {
	n, _ := r.Context().Value(connKey{}).(*conn)
	v := c.register(c.limits.ClientAddress(r), n)
	c.mu.Lock()
	defer c.mu.Unlock()
	v.path = r.URL.Path
	if v.caller.longPaths[v.path] {
		v.kind = heavy
	}
	return v
}

// register creates a request, which must end with end.
func (c *Controller) register(name string, n *conn) *request {
	v := &request{
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
	v.caller.refs++
	return v
}

// end ends the request.
func (v *request) end() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.release()
	v.dropBytes(v.held)
	if v.hasLargeBody {
		v.caller.releaseBody()
	}
	v.learnCost()
	v.crowd.unref(v.name, v.caller)
}

// unref drops a reference to a caller, and forgets a caller without any; with c.mu held.
func (c *Controller) unref(name string, k *caller) {
	if k.refs--; k.refs == 0 {
		delete(c.callers, name)
	}
}

// learnCost remembers whether the path has a long response; with the lock held.
func (v *request) learnCost() {
	k := v.caller
	switch {
	case v.answerBytes == 0:
	case v.answerBytes <= largeBytes:
		delete(k.longPaths, v.path)
	case len(k.longPaths) < maxLongPaths:
		if k.longPaths == nil {
			k.longPaths = map[string]bool{}
		}
		k.longPaths[v.path] = true
		k.requeue()
	}
	if len(k.longPaths) > 0 && !k.remembered {
		k.remembered = true
		v.crowd.afterStall(v, func() { k.remembered = false })
	}
}

// requeue moves waiting requests to the queue of their kind as known now; with the lock held.
func (k *caller) requeue() {
	var rest []*request
	for _, v := range k.queues[light] {
		if k.longPaths[v.path] {
			v.kind = heavy
			k.queues[heavy] = append(k.queues[heavy], v)
		} else {
			rest = append(rest, v)
		}
	}
	k.queues[light] = rest
}

// afterStall runs f after WriteStallTimeout and remembers the caller until then; with c.mu held.
func (c *Controller) afterStall(v *request, f func()) {
	name, k := v.name, v.caller
	k.refs++
	time.AfterFunc(WriteStallTimeout, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
		c.grantNext()
		c.unref(name, k)
	})
}

// acquire waits for a slot. It returns ErrBusy, net.ErrClosed, or the error of ctx.
func (v *request) acquire(ctx context.Context) error {
	c := v.crowd
	c.mu.Lock()
	if v.finished || v.hasSlot {
		c.mu.Unlock()
		return nil
	}
	if len(v.caller.queues[v.kind]) == 0 && c.canGrant(v) {
		c.grant(v)
		c.mu.Unlock()
		return nil
	}
	return v.waitFor(ctx, func() *[]*request { return &v.caller.queues[v.kind] }, &v.hasSlot)
}

// waitFor queues the request until *given is true. It is called with the lock and releases it.
func (v *request) waitFor(ctx context.Context, queue func() *[]*request, given *bool) error {
	c := v.crowd
	v.ready = make(chan struct{})
	*queue() = append(*queue(), v)
	c.mu.Unlock()
	enough := time.NewTimer(slotTimeout)
	defer enough.Stop()
	var gone <-chan struct{}
	if v.conn != nil {
		gone = v.conn.closed
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
func (v *request) suspend() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.release()
}

// finish releases the slot finally.
func (v *request) finish() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.finished = true
	v.release()
}

// resume allows another acquire after finish, as a heavy request.
func (v *request) resume() {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.release()
	v.finished, v.kind = false, heavy
}

// release passes the slot on; with the lock held.
func (v *request) release() {
	if !v.hasSlot {
		return
	}
	v.hasSlot = false
	v.caller.running--
	v.crowd.freeSlots++
	v.crowd.working[v.kind]--
	v.crowd.grantNext()
}

// canGrant reports whether v may have a slot. One caller never has all slots, and gets none while it leaves too much
// unread. Heavy requests never have all slots, and use few processors while other callers send light ones. With c.mu
// held.
func (c *Controller) canGrant(v *request) bool {
	if c.freeSlots == 0 || v.caller.running >= max(1, c.limits.Slots*3/4) || v.caller.unread > c.limits.HeldBytes/8 {
		return false
	}
	if v.kind == light {
		return true
	}
	most := max(1, c.limits.Slots/2)
	if c.modest.hasOther(v.name) {
		most = max(1, min(most, processors()/2))
	}
	return c.working[heavy] < most
}

// processors returns the number of processors that this process may use. It may have fewer threads, or a quota.
func processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

func (c *Controller) grant(v *request) {
	c.freeSlots--
	c.working[v.kind]++
	c.grants++
	v.hasSlot = true
	v.caller.running++
	v.caller.last = c.grants
	if v.kind == light {
		c.modest.seen(v.name)
	}
}

// grantNext grants the free slots to waiting requests: light ones first while a heavy one is being processed. With c.mu
// held.
func (c *Controller) grantNext() {
	if c.working[heavy] == 0 {
		c.grantNextOf(heavy)
	}
	for c.grantNextOf(light) {
		continue
	}
	for c.grantNextOf(heavy) {
		continue
	}
}

// grantNextOf grants a slot to the caller with fewest slots, and among equals to the one whose last grant is oldest.
// With c.mu held.
func (c *Controller) grantNextOf(what kind) bool {
	var first *caller
	for _, k := range c.callers {
		if len(k.queues[what]) > 0 && c.canGrant(k.queues[what][0]) &&
			(first == nil || k.running < first.running || k.running == first.running && k.last < first.last) {
			first = k
		}
	}
	if first == nil {
		return false
	}
	v := first.queues[what][0]
	first.queues[what] = first.queues[what][1:]
	c.grant(v)
	close(v.ready)
	return true
}

// holdBytes counts bytes that are held for a request. If there are too many, it sheds the oldest request of the callers
// that hold most.
func (v *request) holdBytes(n int, unread bool) {
	c := v.crowd
	c.mu.Lock()
	v.held += n
	c.held += n
	if unread {
		v.unread += n
		v.caller.unread += n
	}
	c.holders[v] = struct{}{}
	var out []*conn
	if c.held > c.limits.HeldBytes {
		if slow := c.pickVictim(); slow != nil && slow.conn != nil {
			out = append(out, slow.conn)
			c.forget(slow.conn)
			slow.shed()
		}
	}
	c.mu.Unlock()
	c.closeAll(out)
}

// shed counts the bytes that a request holds as freed, which they are in a moment. They count against its caller for as
// long as the caller might have held them. Otherwise the caller could fill them again immediately. With the lock held.
func (v *request) shed() {
	k, unread, rooms := v.caller, v.unread, 0
	if v.hasLargeBody {
		v.hasLargeBody, rooms = false, 1
	}
	v.dropBytes(v.held)
	if unread+rooms == 0 {
		return
	}
	k.unread += unread
	v.crowd.afterStall(v, func() {
		k.unread -= unread
		for range rooms {
			k.releaseBody()
		}
	})
}

// unholdBytes ends holdBytes for n bytes.
func (v *request) unholdBytes(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	v.dropBytes(min(n, v.held))
}

// dropBytes subtracts n bytes; with the lock held.
func (v *request) dropBytes(n int) {
	v.held -= n
	v.crowd.held -= n
	fewer := min(n, v.unread)
	v.unread -= fewer
	v.caller.unread -= fewer
	if v.held == 0 {
		delete(v.crowd.holders, v)
	}
	if fewer > 0 {
		v.crowd.grantNext()
	}
}

// pickVictim returns the request to shed: the oldest of the callers that hold most, or at least half of that. With c.mu
// held.
func (c *Controller) pickVictim() (out *request) {
	of, most := map[*caller]int{}, 0
	for v := range c.holders {
		if of[v.caller] += v.held; !v.hasSlot {
			most = max(most, of[v.caller])
		}
	}
	for v := range c.holders {
		// requests with a slot are being processed
		if !v.hasSlot && of[v.caller] >= most/2 && (out == nil || v.since.Before(out.since)) {
			out = v
		}
	}
	return out
}
