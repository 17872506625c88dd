package zwavejs

import (
	"context"
	"errors"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	modeSecured   = 255
	modeUnknown   = 254
	modeUnsecured = 0
)

// boltPollDelays are the delays before the reads of the bolt after a command. Most locks report a move, but some only
// to some controllers.
var boltPollDelays = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

// move sends the command to the lock. The response only means that the lock received it. The state is Confirmed when
// the lock has shown the bolt in the target position.
func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, locked bool) (adapter.State, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	if n.climate != nil {
		return "", adapter.Errorf(adapter.NotSupported, "a thermostat has no bolt")
	}
	if err := a.ensureAwake(ctx, s, n); err != nil {
		return "", err
	}
	mode := modeUnsecured
	if locked {
		mode = modeSecured
	}
	a.mu.Lock()
	n.operated.noteCommand(locked)
	a.mu.Unlock()
	var got supervised
	doubtful, err := asUnconfirmed(a.invoke(ctx, s, n, ccDoorLock, "set", []any{mode}, &got))
	a.mu.Lock()
	n.operated.noteResponse(locked, err)
	a.mu.Unlock()
	switch {
	case err != nil && !doubtful:
		return "", err
	case a.awaitBolt(ctx, s, n, mode):
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	}
	return adapter.Accepted, nil
}

// asUnconfirmed converts the error of a command to the bolt to Unconfirmed unless the gateway certainly has not sent
// it to the lock. The gateway responds with the same errors when the acknowledgment of the lock is lost, or when the
// stick or the driver fails with the frame on its way.
func asUnconfirmed(err error) (doubtful bool, _ error) {
	if _, answered := errors.AsType[answerError](err); !answered {
		return false, err
	}
	switch e := adapter.AsError(err); e.Class {
	case adapter.Transient, adapter.Offline:
		return true, adapter.Errorf(adapter.Unconfirmed, "%s", e.Message)
	}
	return false, err
}

// awaitBolt reads the bolt and reports whether it reaches the target position. A lock that does not answer or is
// jammed is not an error here, because a jam is reported as an event.
func (a *Adapter) awaitBolt(ctx context.Context, s *session, n *node, mode int) bool {
	for _, wait := range boltPollDelays {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
		a.mu.Lock()
		jammed := n.operated.jammed()
		a.mu.Unlock()
		if jammed {
			return false
		}
		var is struct {
			Response *struct {
				Mode int `json:"currentMode"`
			} `json:"response"`
		}
		if a.invoke(ctx, s, n, ccDoorLock, "get", []any{}, &is) != nil {
			return false
		}
		if is.Response != nil && is.Response.Mode == mode {
			return true
		}
	}
	return false
}

// operation records the last commands to the bolt and its reports. Adapter.mu guards it.
type operation struct {
	commandedAt time.Time          // time of the last command
	toLocked    bool               // target of the last command; true: locked
	waiting     map[bool]int       // unanswered commands by target
	until       map[bool]time.Time // when the effect of the last command ends, by target
	jammedAt    time.Time          // time of the last jam
	noticed     map[bool]time.Time // times of the last notifications by position
}

func (o *operation) noteCommand(locked bool) {
	if o.waiting == nil {
		o.waiting, o.until = map[bool]int{}, map[bool]time.Time{}
	}
	o.commandedAt, o.toLocked = time.Now(), locked
	o.waiting[locked]++
}

// How long after the response a move is attributed to a command. Until the response, the command may wait for the
// radio; without a response, the gateway may still hold it.
const commandWindow, unansweredWindow = 15 * time.Second, radioTimeout

func (o *operation) noteResponse(locked bool, err error) {
	o.waiting[locked]--
	switch {
	case err == nil:
		o.until[locked] = time.Now().Add(commandWindow)
	case adapter.ClassOf(err) == adapter.Unconfirmed:
		o.until[locked] = time.Now().Add(unansweredWindow)
	}
}

// commanded reports whether a recent command moves the bolt to the position.
func (o *operation) commanded(locked bool) bool {
	return o.waiting[locked] > 0 || time.Now().Before(o.until[locked])
}

func (o *operation) jammed() bool { return o.jammedAt.After(o.commandedAt) }

func (o *operation) noteReport(locked bool) {
	if o.noticed == nil {
		o.noticed = map[bool]time.Time{}
	}
	o.noticed[locked] = time.Now()
}

// moves maps the notifications of a moved bolt to its position and the cause; an empty method is determined by the
// used credential.
var moves = map[int]struct {
	locked bool
	method adapter.Method
}{
	manualLock: {true, adapter.ByHand}, manualUnlock: {false, adapter.ByHand},
	remoteLock: {true, adapter.Remotely}, remoteUnlock: {false, adapter.Remotely},
	keypadLock: {true, adapter.ByKeycode}, keypadUnlock: {false, adapter.ByKeycode},
	autoLock: {true, adapter.Automatically},
	codeLock: {true, adapter.ByKeycode}, codeUnlock: {false, adapter.ByKeycode},
	credentialLock: {true, ""}, credentialUnlock: {false, ""},
}

// handleMove processes a notification of a moved bolt and its cause.
func (a *Adapter) handleMove(n *node, t notification) {
	move := moves[t.Event]
	a.mu.Lock()
	changed := n.locked == nil || *n.locked != move.locked
	n.locked = &move.locked
	n.operated.noteReport(move.locked)
	a.mu.Unlock()
	e := adapter.Event{
		Kind:      adapter.LockOperated,
		Device:    n.ref,
		Operation: adapter.Operation{Locked: move.locked, Method: move.method, At: time.Now()},
	}
	if slot := t.slot(); slot > 0 && move.method == adapter.ByKeycode {
		e.Code = a.codeOf(n, slot)
	}
	if move.method == "" {
		e.Operation.Method, e.Code = t.used()
	}
	a.hints.Send(e)
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
}

// codeOf returns the code of a user, or empty if unknown.
func (a *Adapter) codeOf(n *node, user int) adapter.CodeRef {
	if !n.hasUsers() {
		return codeRef(user)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, slot := range n.codes.occupied() {
		if n.codes.slots[slot].user == user {
			return codeRef(slot)
		}
	}
	return ""
}

// handleJam processes a jam. locking means that the report says that the bolt was to lock.
func (a *Adapter) handleJam(n *node, locking bool) {
	a.mu.Lock()
	n.operated.jammedAt = time.Now()
	to := locking || n.locked == nil || !*n.locked // the target differs from the position
	if last := n.operated.toLocked; !locking && n.operated.commanded(last) {
		to = last
	}
	a.mu.Unlock()
	a.hints.Send(adapter.Event{
		Kind: adapter.Jammed, Device: n.ref,
		Operation: adapter.Operation{Locked: to, At: time.Now()},
	})
}

// noticeWindow is how long before or after the report of a moved bolt the lock may report the cause.
const noticeWindow = 2 * time.Second

// reportUnexplainedMove reports a moved bolt when the lock itself does not report the cause; a.mu is held.
func (a *Adapter) reportUnexplainedMove(n *node, locked bool) {
	o := adapter.Operation{Locked: locked, Method: adapter.ByUnknown, At: time.Now()}
	if n.operated.commanded(locked) {
		o.Method = adapter.Remotely
	}
	time.AfterFunc(noticeWindow, func() {
		a.mu.Lock()
		noticed := n.operated.noticed[locked]
		a.mu.Unlock()
		if !noticed.After(o.At.Add(-noticeWindow)) {
			a.hints.Send(adapter.Event{Kind: adapter.LockOperated, Device: n.ref, Operation: o})
		}
	})
}
