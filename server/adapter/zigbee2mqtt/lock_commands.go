package zigbee2mqtt

import (
	"context"
	"errors"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// moveTimeout is how long a command waits for the bolt.
const moveTimeout = 5 * time.Second

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, locked bool) (adapter.State, error) {
	l, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	able := l.able.bolt
	a.mu.Unlock()
	if !able {
		return "", adapter.Errorf(adapter.NotSupported, "the lock cannot be locked or unlocked remotely")
	}
	release, err := l.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	word := "UNLOCK"
	if locked {
		word = "LOCK"
	}
	a.mu.Lock()
	connected := a.session != nil
	// An earlier jam does not belong to this command.
	l.moving, l.moved, l.toLocked, l.jammed = true, time.Now(), locked, false
	a.mu.Unlock()
	stuck := false // reported since the command
	err = a.command(ctx, l, "set", map[string]any{"state": word}, moveTimeout, func(w, before *wireState) verdict {
		stuck = w.stuck && (stuck || w.reportsJam(before))
		switch {
		case w.stuck, w.State != word: // the bolt may be moving
			return isNone
		case before == nil || before.stuck || before.State != word:
			return isAnswer
		}
		return mayBe
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	l.moving = false
	switch {
	case stuck && (err == nil || errors.Is(err, errNoAnswer)):
		a.reportJam(l)
		return adapter.Accepted, nil
	case err != nil && connected: // it may have been sent, so it must not be repeated
		return "", asUnconfirmed(ctx, noAnswerAs(ctx, err, adapter.Unconfirmed))
	case err != nil:
		return "", err
	}
	l.moved = time.Time{}
	return adapter.Confirmed, nil
}

// jamWindow is how long after a command a jam is attributed to that command.
const jamWindow = 30 * time.Second

// reportJam reports that the bolt is jammed; a.mu is held. The lock does not report the direction. Without a command,
// most jams occur while locking.
func (a *Adapter) reportJam(l *lock) {
	l.jammed = true
	locked := l.toLocked || l.moved.IsZero() || time.Since(l.moved) > jamWindow
	operation := adapter.Operation{ID: operationID(l, l.lastState), Locked: locked}
	a.sendOperation(l, adapter.Event{Kind: adapter.Jammed, Device: l.ref, Operation: operation})
}

// reportsJam reports whether the message is about a bolt that is halfway. Messages about other changes repeat the
// jam.
func (w *wireState) reportsJam(before *wireState) bool {
	return w.stuck && (before == nil || !before.stuck || !w.reportsOther(before))
}

// operations maps the actions of a lock (zigbee-herdsman-converters, lock_operation_event).
var operations = map[string]struct {
	kind   adapter.EventKind
	locked bool
	method adapter.Method // empty: determined by the source
}{
	"lock":            {adapter.LockOperated, true, ""},
	"unlock":          {adapter.LockOperated, false, ""},
	"one_touch_lock":  {adapter.LockOperated, true, adapter.ByHand},
	"key_lock":        {adapter.LockOperated, true, adapter.ByHand},
	"manual_lock":     {adapter.LockOperated, true, adapter.ByHand},
	"key_unlock":      {adapter.LockOperated, false, adapter.ByHand},
	"manual_unlock":   {adapter.LockOperated, false, adapter.ByHand},
	"auto_lock":       {adapter.LockOperated, true, adapter.Automatically},
	"schedule_lock":   {adapter.LockOperated, true, adapter.Automatically},
	"schedule_unlock": {adapter.LockOperated, false, adapter.Automatically},

	"unlock_failure_invalid_pin_or_id": {adapter.AccessDenied, false, ""},
	"unlock_failure_invalid_schedule":  {adapter.AccessDenied, false, ""},
	"lock_failure_invalid_pin_or_id":   {adapter.AccessDenied, true, ""},
	"lock_failure_invalid_schedule":    {adapter.AccessDenied, true, ""},
}

var sources = map[string]adapter.Method{
	"keypad": adapter.ByKeycode,
	"rf":     adapter.Remotely,
	"manual": adapter.ByHand,
	"rfid":   adapter.ByCard,
}

// reportOperation sends the events for an operation at the lock; a.mu is held.
func (a *Adapter) reportOperation(l *lock, w, before *wireState) {
	switch {
	case !w.stuck:
		l.jammed = false
	case !l.jammed && !l.moving && w.reportsJam(before): // while a command runs, the bolt may be moving
		a.reportJam(l)
	}
	if w.tamper && before != nil && !before.tamper {
		a.sendOperation(l, adapter.Event{Kind: adapter.Tampered, Device: l.ref})
	}
	o, ok := operations[w.Action]
	if !ok {
		return
	}
	e := adapter.Event{
		Kind:      o.kind,
		Device:    l.ref,
		Operation: adapter.Operation{ID: operationID(l, w), Locked: o.locked, Method: o.method},
	}
	if o.kind == adapter.LockOperated {
		if e.Operation.Method == "" {
			e.Operation.Method = adapter.ByUnknown
			if m, ok := sources[w.Source]; ok {
				e.Operation.Method = m
			}
		}
		if w.ActionUser != nil && e.Operation.Method == adapter.ByKeycode {
			if n := *w.ActionUser; n >= 1 && n < l.slots {
				e.Code = refOf(n)
			} else if o.locked { // the lock button of the keypad
				e.Operation.Method = adapter.ByHand
			}
		}
	} else {
		e.Operation.Method = ""
	}
	a.sendOperation(l, e)
}

// Rate per second and burst of the reported operations of one lock. Each one is stored and delivered to webhooks.
const operationsPerSecond, operationBurst = 5, 100

// warnInterval is the minimum interval between equal warnings.
const warnInterval = time.Hour

// sendOperation sends the event of an operation unless the rate limit is exceeded; a.mu is held.
func (a *Adapter) sendOperation(l *lock, e adapter.Event) {
	if !l.pace.Allow() {
		a.operationsWarning.Do(func() {
			a.log.Warn("too many operations are published; some are not reported", "lock", l.ref)
		})
		return
	}
	a.hints.Send(e)
}
