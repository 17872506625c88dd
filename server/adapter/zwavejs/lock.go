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

// looks are when a lock is asked where its bolt is after it was told to move it. Most report it by themselves, but
// some only to some controllers.
var looks = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

// move tells the lock to move its bolt. That it was told is all that the answer says; it is Confirmed once the
// lock has shown the bolt where it is to be.
func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, locked bool) (adapter.State, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	if err := a.awake(ctx, s, n); err != nil {
		return "", err
	}
	mode := modeUnsecured
	if locked {
		mode = modeSecured
	}
	a.mu.Lock()
	n.operated.command(locked)
	a.mu.Unlock()
	var got supervised
	doubtful, err := doubted(a.invoke(ctx, s, n, ccDoorLock, "set", []any{mode}, &got))
	a.mu.Lock()
	n.operated.answered(locked, err)
	a.mu.Unlock()
	switch {
	case err != nil && !doubtful:
		return "", err
	case a.shows(ctx, s, n, mode):
		return adapter.Confirmed, nil
	case err != nil:
		return "", err
	}
	return adapter.Accepted, nil
}

// doubted puts the error of a command to the bolt into the class of those that nobody knows the outcome of, unless the gateway has
// surely not sent it to the lock: it answers so, too, where the lock's acknowledgement is lost, or the stick or the driver has failed
// with the frame on its way.
func doubted(err error) (doubtful bool, _ error) {
	if _, answered := errors.AsType[answerError](err); !answered {
		return false, err
	}
	switch e := adapter.AsError(err); e.Class {
	case adapter.Transient, adapter.Offline:
		return true, adapter.Errorf(adapter.Unconfirmed, "%s", e.Message)
	}
	return false, err
}

// shows asks the lock where its bolt is, and says whether that is where it was told to be. That it does not answer, or is jammed, is no
// matter of this answer: Jammed has told.
func (a *Adapter) shows(ctx context.Context, s *session, n *node, mode int) bool {
	for _, wait := range looks {
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

// operation is what a lock's bolt has last been told to do, and has done. It is guarded by Adapter.mu.
type operation struct {
	told    time.Time          // the last command from here
	to      bool               // to lock
	waiting map[bool]int       // commands to lock, and to unlock, that are not answered yet
	until   map[bool]time.Time // when the last one that was sent is over
	jam     time.Time          //
	noticed map[bool]time.Time // the last notifications that the bolt was locked, and unlocked
}

func (o *operation) command(locked bool) {
	if o.waiting == nil {
		o.waiting, o.until = map[bool]int{}, map[bool]time.Time{}
	}
	o.told, o.to = time.Now(), locked
	o.waiting[locked]++
}

// How long after the answer to a command what the bolt does is the command's doing. Before, it may wait for the radio, and
// without an answer the gateway may still have it waiting.
const commandWithin, unansweredWithin = 15 * time.Second, radioWithin

func (o *operation) answered(locked bool, err error) {
	o.waiting[locked]--
	switch {
	case err == nil:
		o.until[locked] = time.Now().Add(commandWithin)
	case adapter.ClassOf(err) == adapter.Unconfirmed:
		o.until[locked] = time.Now().Add(unansweredWithin)
	}
}

// commanded says whether the bolt was told from here, not long ago, to go there.
func (o *operation) commanded(locked bool) bool {
	return o.waiting[locked] > 0 || time.Now().Before(o.until[locked])
}

func (o *operation) jammed() bool { return o.jam.After(o.told) }

func (o *operation) notice(locked bool) {
	if o.noticed == nil {
		o.noticed = map[bool]time.Time{}
	}
	o.noticed[locked] = time.Now()
}

// moves are the notifications of a moved bolt: where it is then, and what has moved it; empty: what they say was used.
var moves = map[int]struct {
	locked bool
	method adapter.Method
}{
	manualLock: {true, adapter.ByHand}, manualUnlock: {false, adapter.ByHand},
	remoteLock: {true, adapter.Remotely}, remoteUnlock: {false, adapter.Remotely},
	keypadLock: {true, adapter.ByKeycode}, keypadUnlock: {false, adapter.ByKeycode},
	autoLock: {true, adapter.ByItself},
	codeLock: {true, adapter.ByKeycode}, codeUnlock: {false, adapter.ByKeycode},
	credentialLock: {true, ""}, credentialUnlock: {false, ""},
}

// moveTold takes in a notification of a moved bolt, and of who has moved it.
func (a *Adapter) moveTold(n *node, t notification) {
	move := moves[t.Event]
	a.mu.Lock()
	changed := n.locked == nil || *n.locked != move.locked
	n.locked = &move.locked
	n.operated.notice(move.locked)
	a.mu.Unlock()
	e := adapter.Event{Kind: adapter.LockOperated, Device: n.ref, Operation: adapter.Operation{Locked: move.locked, Method: move.method, At: time.Now()}}
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

// codeOf is the code of a user; empty where it is not known.
func (a *Adapter) codeOf(n *node, user int) adapter.CodeRef {
	if !n.named() {
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

// jamTold takes in that the bolt could not be moved, and whether it is told that it was to lock.
func (a *Adapter) jamTold(n *node, locking bool) {
	a.mu.Lock()
	n.operated.jam = time.Now()
	to := locking || n.locked == nil || !*n.locked // whoever has tried wanted it elsewhere
	if last := n.operated.to; !locking && n.operated.commanded(last) {
		to = last
	}
	a.mu.Unlock()
	a.hints.Send(adapter.Event{Kind: adapter.Jammed, Device: n.ref, Operation: adapter.Operation{Locked: to, At: time.Now()}})
}

// noticeWithin is how long after its report of a moved bolt a lock may say what has moved it, and before.
const noticeWithin = 2 * time.Second

// movedSilently tells of a moved bolt where the lock itself does not say what has moved it; with a.mu held.
func (a *Adapter) movedSilently(n *node, locked bool) {
	o := adapter.Operation{Locked: locked, Method: adapter.ByUnknown, At: time.Now()}
	if n.operated.commanded(locked) {
		o.Method = adapter.Remotely
	}
	time.AfterFunc(noticeWithin, func() {
		a.mu.Lock()
		noticed := n.operated.noticed[locked]
		a.mu.Unlock()
		if !noticed.After(o.At.Add(-noticeWithin)) {
			a.hints.Send(adapter.Event{Kind: adapter.LockOperated, Device: n.ref, Operation: o})
		}
	})
}
