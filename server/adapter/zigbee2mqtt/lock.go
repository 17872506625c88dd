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

// Defaults for a lock that does not report its limits.
const (
	usualSlots  = 31 // slot 0 and 30 more
	usualMinPIN = 4
	usualMaxPIN = 8
)

// lock is the state of one lock or thermostat. Adapter.mu guards all of it except turn.
type lock struct {
	listed
	// shown is what a thermostat shows.
	shown climateState
	// writing means that shown is kept while the thermostat is set: Zigbee2MQTT announces a value before the device has it.
	writing bool
	// missed means that changes of a thermostat may have been missed since it was read.
	missed bool
	// refreshing means that a thermostat is read, and that it is not offline if it does not answer.
	refreshing bool
	// visible means that Zigbee2MQTT publishes the PINs.
	visible bool
	// masked means that the lock hides PINs nevertheless.
	masked bool
	// available is the availability that Zigbee2MQTT publishes; nil if none.
	available *bool
	// unwatched means that the availability is switched off in Zigbee2MQTT.
	unwatched bool
	// silent means that the lock did not answer and has not been heard since.
	silent bool
	locked *bool
	// battery is between 0 and 1.
	battery *float64
	// doorOpen is nil if unknown.
	doorOpen *bool
	// jammed means that the jam has been reported, or is older than the connection.
	jammed bool
	// moving means that a command to the bolt waits for its response.
	moving bool
	// moved is when the last unanswered command to the bolt was sent; zero if all are answered.
	moved time.Time
	// toLocked is the direction of that command.
	toLocked bool

	// limitsKnown means that the limits below were read since the connection.
	limitsKnown bool
	// slots is the number of slots, including slot 0.
	slots int
	// stateKnown means that the lock itself has reported slots.
	slotsReported bool
	// slotLimit is the first slot that does not exist according to Zigbee2MQTT since the connection; 0 if unknown.
	slotLimit      int
	minPIN, maxPIN int

	// lastState is the last message.
	lastState *wireState
	// read holds the slots that are unchanged since they were read.
	read map[int]reading
	// keys holds the writes of PutCode by key.
	keys map[string]put
	// put holds the fingerprints of written PINs by slot, for hidden PINs.
	put map[int][sha256.Size]byte
	// refused holds the fingerprints of PINs that the lock has answered but not accepted.
	refused map[[sha256.Size]byte]bool
	// ownWrites holds the times of the last writes by slot.
	ownWrites map[int]time.Time
	waiter    *waiter

	// pace limits the reported operations.
	pace *rate.Limiter
	// turn holds one token while no command to the lock runs.
	turn chan struct{}
}

type reading struct {
	slot
	at time.Time
}

func newLock(ref adapter.DeviceRef) *lock {
	l := &lock{
		listed:    listed{ref: ref},
		slots:     usualSlots,
		minPIN:    usualMinPIN,
		maxPIN:    usualMaxPIN,
		read:      map[int]reading{},
		keys:      map[string]put{},
		put:       map[int][sha256.Size]byte{},
		refused:   map[[sha256.Size]byte]bool{},
		ownWrites: map[int]time.Time{},
		pace:      rate.NewLimiter(operationsPerSecond, operationBurst),
		turn:      make(chan struct{}, 1),
		missed:    true,
	}
	l.turn <- struct{}{}
	return l
}

func (l *lock) online() bool {
	return !l.disabled && !l.silent && (l.unwatched || l.available == nil || *l.available)
}

// codes reports whether codes can be managed. A code that cannot be read cannot be confirmed.
func (l *lock) codes() bool { return l.able.set && l.able.read }

// invalidateSlots discards the slots that were read.
func (l *lock) invalidateSlots() {
	if len(l.read) > 0 { // avoid allocations for repeated messages
		l.read = map[int]reading{}
	}
}

// waiter waits for the response to a command. judge decides whether a message is the response.
type waiter struct {
	verb   string
	keys   []string // as in the log of Zigbee2MQTT on failure
	judge  func(w, before *wireState) verdict
	maybe  *time.Timer
	result chan error // has capacity 1
}

// verdict says whether a message is the response to a command.
type verdict int

const (
	isNone verdict = iota
	mayBe
	isAnswer
)

const (
	// answerTimeout exceeds the 10 s after which Zigbee2MQTT gives up.
	answerTimeout = 15 * time.Second
	// maybeDelay is how long a possible response waits for a better one.
	maybeDelay = 1500 * time.Millisecond
)

func (w *waiter) done(err error) {
	select {
	case w.result <- err:
	default:
	}
}

// fail ends the waiting command with err.
func (l *lock) fail(err error) {
	if l.waiter != nil {
		l.waiter.done(err)
	}
}

// acquire acquires the turn to send commands to the lock.
func (l *lock) acquire(ctx context.Context) (func(), error) {
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, waitError(ctx, adapter.Transient, "the device is busy with other commands")
	}
}

// command sends one command and waits for its response; judge is called with a.mu held. It fails with GatewayDown,
// AuthRevoked, NotFound, Unconfirmed, like failure, and with errNoAnswer.
func (a *Adapter) command(ctx context.Context, l *lock, verb string, payload map[string]any, within time.Duration,
	judge func(w, before *wireState) verdict,
) (err error) {
	ctx, span := adapter.StartCommandSpan(ctx, "zigbee2mqtt", a.config.Broker, verb)
	defer func() { adapter.EndSpan(span, err) }()
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
		return adapter.Errorf(adapter.NotFound, "Zigbee2MQTT has no such device")
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

// heardNothing records that a lock did not answer before the timeout.
func (a *Adapter) heardNothing(ctx context.Context, l *lock) {
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := l.online()
	l.silent = true
	a.onAvailabilityChange(l, was)
}

// published processes the state that a lock publishes; a.mu is held. A retained message has an unknown age: it shows
// the last known state, but it is not a sign of life, a response, or a new operation.
func (a *Adapter) published(l *lock, payload []byte, retained bool) {
	w, ok := readState(payload)
	if !ok {
		return
	}
	if !a.hasRoom(l, w) {
		a.slotsWarning.Do(func() {
			a.log.Warn("the locks have more slots than the server can store; some are ignored", "lock", l.ref)
		})
		w.Slots = nil
	}
	before := l.lastState
	l.lastState = w
	if !retained {
		a.reachable(l, nil)
	}
	a.status(l, w)
	if l.climate != nil {
		w.climate = l.climate.read(payload)
		a.showClimate(l, w.climate)
	}
	if w.Limits != nil {
		l.applyLimits(*w.Limits)
	}
	if retained {
		l.jammed = w.stuck
		return
	}
	a.follow(l, w, before)
	if programmed(w.Action) {
		a.programmed(l, w)
	}
	a.reportOperation(l, w, before)
	if l.waiter == nil {
		return
	}
	switch waiting := l.waiter; waiting.judge(w, before) {
	case isAnswer:
		waiting.done(nil)
	case mayBe:
		if waiting.maybe == nil {
			waiting.maybe = time.AfterFunc(maybeDelay, func() { waiting.done(nil) })
		}
	}
}

// hasRoom reports whether the slots of a message fit into the limit in addition to those of other locks; a.mu is
// held.
func (a *Adapter) hasRoom(l *lock, w *wireState) bool {
	n := max(len(w.Slots), len(l.read))
	for _, other := range a.locks {
		if other == l {
			continue
		}
		last := 0
		if other.lastState != nil {
			last = len(other.lastState.Slots)
		}
		n += max(last, len(other.read))
	}
	return n <= maxStoredSlots
}

// follow adopts changed slots: only a response of the lock changes them, whatever caused it. This corrects a message
// that was mistaken for a response.
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

// status updates the bolt, the battery, and the door.
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
	if open, ok := doorStates[w.door]; ok {
		changed = changed || l.doorOpen == nil || *l.doorOpen != open
		l.doorOpen = &open
	}
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: l.ref})
	}
}

// doorStates maps the values of door_state (zigbee-herdsman-converters, lib/exposes.js) to whether the door is open.
// The others say nothing about the door.
var doorStates = map[string]bool{`"open"`: true, `"error_forced_open"`: true, `"closed"`: false}

// ownWriteWindow is how long after a write the lock's report of a change is attributed to that write.
const ownWriteWindow = 5 * time.Second

// programmed processes a report that codes were changed, by this adapter or at the keypad.
func (a *Adapter) programmed(l *lock, w *wireState) {
	e := adapter.Event{Kind: adapter.CodesChanged, Device: l.ref}
	switch {
	case w.ActionUser == nil || *w.ActionUser < 0 || *w.ActionUser >= l.slots:
		l.invalidateSlots()
	default:
		n := *w.ActionUser
		e.Code = refOf(n)
		if w.Source != "rf" || time.Since(l.ownWrites[n]) > ownWriteWindow {
			delete(l.read, n)
			delete(l.put, n)
			clear(l.refused)
		}
		if w.Source != "rf" { // a late report about an own write keeps its key
			l.forgetKeys(n)
		}
	}
	a.hints.Send(e)
}

func refOf(n int) adapter.CodeRef { return adapter.CodeRef(strconv.Itoa(n)) }

// slotOf returns the slot of a reference, or 0 if the lock has no such slot.
func (l *lock) slotOf(ref adapter.CodeRef) int {
	n := numberOf(ref)
	if n >= l.slots {
		return 0
	}
	return n
}

// numberOf returns the slot of a reference, whether the lock has it or not, or 0 if the reference is invalid.
func numberOf(ref adapter.CodeRef) int {
	n, err := strconv.Atoi(string(ref))
	if err != nil || n < 1 || n >= maxSlots {
		return 0
	}
	return n
}

// fingerprint identifies a written PIN on locks that hide PINs.
func (l *lock) fingerprint(pin string) [sha256.Size]byte {
	return sha256.Sum256([]byte(string(l.ref) + "/" + pin))
}

// operationID returns an identifier that is equal in all servers; empty if the message has no timestamp.
func operationID(l *lock, w *wireState) string {
	if w.seen == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(string(l.ref) + w.Action + w.seen))
	return hex.EncodeToString(sum[:8])
}
