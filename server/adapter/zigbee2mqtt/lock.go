package zigbee2mqtt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// What a lock is taken to have that does not tell.
const (
	usualSlots  = 31 // slot 0 and 30 more
	usualMinPIN = 4
	usualMaxPIN = 8
)

// lock is what is known of one lock. All of it is guarded by Adapter.mu, but for turn.
type lock struct {
	listed
	visible   bool  // Zigbee2MQTT publishes its PINs
	masked    bool  // the lock shows none all the same
	available *bool // by what Zigbee2MQTT says; nil: it does not say
	unwatched bool  // it is not to say that any more
	silent    bool  // it did not answer, and has not been heard of since
	locked    *bool
	battery   *float64  // 0 to 1
	jammed    bool      // and that was told, or is from before
	moving    bool      // a command to the bolt waits for its answer
	moved     time.Time // when the last one was sent that has not been answered; zero: all have
	toLocked  bool      // where that was to move it

	learned        bool // what follows was asked for, since we are connected
	slots          int  // from 0 on
	told           bool // the lock itself has said that it has so many
	ends           int  // the first slot that Zigbee2MQTT says it has not, since we are connected; 0: it has not said so
	minPIN, maxPIN int

	last    *wireState                 // the last message
	read    map[int]reading            // slots that are as they were read
	keys    map[string]put             // what PutCode put where, by its key
	put     map[int][sha256.Size]byte  // which PINs, where they are hidden
	refused map[[sha256.Size]byte]bool // which PINs it has answered to but not taken
	ours    map[int]time.Time          // slots that are or have just been written
	waiter  *waiter

	pace *rate.Limiter // of operations
	turn chan struct{} // holds one while nobody speaks to the lock
}

type reading struct {
	slot
	at time.Time
}

func newLock(ref adapter.DeviceRef) *lock {
	l := &lock{listed: listed{ref: ref}, slots: usualSlots, minPIN: usualMinPIN, maxPIN: usualMaxPIN, read: map[int]reading{}, keys: map[string]put{},
		put: map[int][sha256.Size]byte{}, refused: map[[sha256.Size]byte]bool{}, ours: map[int]time.Time{},
		pace: rate.NewLimiter(lockPace, lockBurst), turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

func (l *lock) online() bool {
	return !l.disabled && !l.silent && (l.unwatched || l.available == nil || *l.available)
}

// codes says whether codes can be managed: a code that cannot be asked for cannot be confirmed.
func (l *lock) codes() bool { return l.able.set && l.able.read }

// forget makes all slots be read again.
func (l *lock) forget() {
	if len(l.read) > 0 { // it may be said as often as anybody likes
		l.read = map[int]reading{}
	}
}

// waiter waits for the answer to a command. A message is an answer, may be one, or is none.
type waiter struct {
	verb   string
	keys   []string // as Zigbee2MQTT logs them when it fails
	judge  func(w, before *wireState) verdict
	maybe  *time.Timer
	result chan error // takes one
}

type verdict int

const (
	isNone verdict = iota
	mayBe
	isAnswer
)

const (
	answerWithin = 15 * time.Second        // Zigbee2MQTT gives up after 10 s
	mayBeAfter   = 1500 * time.Millisecond // what may be the answer is it when no better one follows by then
)

func (w *waiter) done(err error) {
	select {
	case w.result <- err:
	default:
	}
}

// fail ends what waits for the lock.
func (l *lock) fail(err error) {
	if l.waiter != nil {
		l.waiter.done(err)
	}
}

// begin waits until nobody else speaks to the lock. What it returns lets the next.
func (l *lock) begin(ctx context.Context) (func(), error) {
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, lost(ctx, adapter.Transient, "the lock is busy with other commands")
	}
}

// command sends one command and waits for its answer; judge is called with a.mu held. It fails with GatewayDown,
// AuthRevoked, NotFound, Unconfirmed, as failure says, and with errNoAnswer.
func (a *Adapter) command(ctx context.Context, l *lock, verb string, payload map[string]any, within time.Duration,
	judge func(w, before *wireState) verdict) (err error) {
	ctx, span := adapter.TraceCommand(ctx, "zigbee2mqtt", a.config.Broker, verb)
	defer func() { adapter.Traced(span, err) }()
	w := &waiter{verb: verb, judge: judge, result: make(chan error, 1)}
	for key := range payload {
		w.keys = append(w.keys, key)
	}
	a.mu.Lock()
	s, gone := a.session, a.locks[l.ref] != l
	if s != nil && !gone {
		l.waiter = w
	}
	failed := a.failed
	a.mu.Unlock()
	switch {
	case gone:
		return adapter.Errorf(adapter.NotFound, "Zigbee2MQTT has no such lock any more")
	case s == nil && failed != nil:
		return failed
	case s == nil:
		return adapter.Errorf(adapter.GatewayDown, "there is no connection to the MQTT broker")
	}
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		l.waiter = nil
		if w.maybe != nil {
			w.maybe.Stop()
		}
	}()
	if err := s.publish(ctx, string(l.ref)+"/"+verb, payload); err != nil {
		return err
	}
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
	case <-timeout.C:
	}
	return errNoAnswer
}

// heardNothing notes that a lock did not answer though there was time.
func (a *Adapter) heardNothing(ctx context.Context, l *lock) {
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := l.online()
	l.silent = true
	a.turned(l, was)
}

// published takes in what a lock publishes; with a.mu held. What the broker has retained was told at some other time: it
// says how the lock was last seen, and is neither a sign of life, nor an answer, nor anything that is done now.
func (a *Adapter) published(l *lock, payload []byte, retained bool) {
	w, ok := readState(payload)
	if !ok {
		return
	}
	if !a.hasRoom(l, w) {
		a.crowded.Do(func() {
			a.log.Warn("the locks have more places for codes than are remembered; those of some are ignored", "lock", l.ref)
		})
		w.Slots = nil
	}
	before := l.last
	l.last = w
	if !retained {
		a.reachable(l, nil)
	}
	a.status(l, w)
	if w.Limits != nil {
		l.limits(*w.Limits)
	}
	if retained {
		l.jammed = w.stuck
		return
	}
	a.follow(l, w, before)
	if programmed(w.Action) {
		a.programmed(l, w)
	}
	a.operated(l, w, before)
	if l.waiter == nil {
		return
	}
	switch waiting := l.waiter; waiting.judge(w, before) {
	case isAnswer:
		waiting.done(nil)
	case mayBe:
		if waiting.maybe == nil {
			waiting.maybe = time.AfterFunc(mayBeAfter, func() { waiting.done(nil) })
		}
	}
}

// hasRoom says whether the slots of a message may be remembered beside those of other locks; with a.mu held.
func (a *Adapter) hasRoom(l *lock, w *wireState) bool {
	n := max(len(w.Slots), len(l.read))
	for _, other := range a.locks {
		if other == l {
			continue
		}
		last := 0
		if other.last != nil {
			last = len(other.last.Slots)
		}
		n += max(last, len(other.read))
	}
	return n <= mostTold
}

// follow takes over slots that have become others: only an answer of the lock does that, whoever asked. So what was
// taken for an answer too early is put right by the real one.
func (a *Adapter) follow(l *lock, w, before *wireState) {
	if before == nil {
		return
	}
	for n := range w.Slots {
		if n >= l.slots {
			continue
		}
		is, _ := w.slot(n, l.visible)
		was, known := before.slot(n, l.visible)
		if known && was == is {
			continue
		}
		r, read := l.read[n]
		l.read[n] = reading{is, time.Now()}
		if read && r.slot != is {
			a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: l.ref, Code: refOf(n)})
		}
	}
}

// status notes the bolt and the battery.
func (a *Adapter) status(l *lock, w *wireState) {
	changed := false
	if w.State == "LOCK" || w.State == "UNLOCK" {
		locked := w.State == "LOCK"
		changed = l.locked == nil || *l.locked != locked
		l.locked = &locked
	}
	if w.Battery != nil {
		level := math.Min(math.Max(*w.Battery/100, 0), 1)
		changed = changed || l.battery == nil || *l.battery != level
		l.battery = &level
	}
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: l.ref})
	}
}

// ownFor is how long the lock's word of a change is taken to be about our own write.
const ownFor = 5 * time.Second

// programmed takes in that codes were changed: ours, or at the keypad.
func (a *Adapter) programmed(l *lock, w *wireState) {
	e := adapter.Event{Kind: adapter.CodesChanged, Device: l.ref}
	switch {
	case w.ActionUser == nil || *w.ActionUser < 0 || *w.ActionUser >= l.slots: // whichever it was
		l.forget()
	default:
		n := *w.ActionUser
		e.Code = refOf(n)
		if w.Source != "rf" || time.Since(l.ours[n]) > ownFor {
			delete(l.read, n)
			delete(l.put, n)
			clear(l.refused)
		}
		if w.Source != "rf" { // what is told late about our own write leaves its key
			l.forgetKeys(n)
		}
	}
	a.hints.Send(e)
}

func refOf(n int) adapter.CodeRef { return adapter.CodeRef(strconv.Itoa(n)) }

// slotOf is the slot of a code's reference, 0 where there is none.
func (l *lock) slotOf(ref adapter.CodeRef) int {
	n := numberOf(ref)
	if n >= l.slots {
		return 0
	}
	return n
}

// numberOf is the slot of a code's reference, whether a lock has it or not; 0: it is none.
func numberOf(ref adapter.CodeRef) int {
	n, err := strconv.Atoi(string(ref))
	if err != nil || n < 1 || n >= mostSlots {
		return 0
	}
	return n
}

// fingerprint tells the PINs that we put apart, where the lock does not show them.
func (l *lock) fingerprint(pin string) [sha256.Size]byte {
	return sha256.Sum256([]byte(string(l.ref) + "/" + pin))
}

// operationID is the same for all who hear of an operation; empty where nothing in the message is its own.
func operationID(l *lock, w *wireState) string {
	if w.seen == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(string(l.ref) + w.Action + w.seen))
	return hex.EncodeToString(sum[:8])
}
