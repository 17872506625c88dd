package zigbee2mqtt

import (
	"context"
	"errors"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// movedWithin is how long a bolt is waited for.
const movedWithin = 5 * time.Second

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
		return "", adapter.Errorf(adapter.NotSupported, "the lock cannot be locked or unlocked from afar")
	}
	release, err := l.begin(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	word := "UNLOCK"
	if locked {
		word = "LOCK"
	}
	err = a.command(ctx, l, "set", map[string]any{"state": word}, movedWithin, func(w, before *wireState) verdict {
		switch {
		case w.State != word:
			return isNone
		case w.stuck: // it may be on its way
			return mayBe
		case before == nil || before.State != word:
			return isAnswer
		}
		return mayBe
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case l.jammed && (err == nil || errors.Is(err, errNoAnswer)):
		return "", adapter.Errorf(adapter.Transient, "the bolt is jammed")
	case err != nil:
		return "", late(ctx, err, adapter.Unconfirmed)
	}
	return adapter.Confirmed, nil
}

// operations say what a lock's action means (zigbee-herdsman-converters, lock_operation_event).
var operations = map[string]struct {
	kind   adapter.EventKind
	locked bool
	method adapter.Method // empty: the source tells
}{
	"lock":            {adapter.LockOperated, true, ""},
	"unlock":          {adapter.LockOperated, false, ""},
	"one_touch_lock":  {adapter.LockOperated, true, adapter.ByHand},
	"key_lock":        {adapter.LockOperated, true, adapter.ByHand},
	"manual_lock":     {adapter.LockOperated, true, adapter.ByHand},
	"key_unlock":      {adapter.LockOperated, false, adapter.ByHand},
	"manual_unlock":   {adapter.LockOperated, false, adapter.ByHand},
	"auto_lock":       {adapter.LockOperated, true, adapter.ByItself},
	"schedule_lock":   {adapter.LockOperated, true, adapter.ByItself},
	"schedule_unlock": {adapter.LockOperated, false, adapter.ByItself},

	"unlock_failure_invalid_pin_or_id": {adapter.AccessDenied, false, ""},
	"unlock_failure_invalid_schedule":  {adapter.AccessDenied, false, ""},
	"lock_failure_invalid_pin_or_id":   {adapter.AccessDenied, true, ""},
	"lock_failure_invalid_schedule":    {adapter.AccessDenied, true, ""},
}

var sources = map[string]adapter.Method{"keypad": adapter.ByKeycode, "rf": adapter.Remotely, "manual": adapter.ByHand, "rfid": adapter.ByCard}

// operated tells what was done at the lock; with a.mu held.
func (a *Adapter) operated(l *lock, w *wireState) {
	if w.stuck && !l.jammed {
		a.tell(l, adapter.Event{Kind: adapter.Jammed, Device: l.ref, Operation: adapter.Operation{ID: operationID(l, w), Locked: true}})
	}
	l.jammed = w.stuck
	o, ok := operations[w.Action]
	if !ok {
		return
	}
	e := adapter.Event{Kind: o.kind, Device: l.ref, Operation: adapter.Operation{ID: operationID(l, w), Locked: o.locked, Method: o.method}}
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
			} else if o.locked { // the keypad's own button
				e.Operation.Method = adapter.ByHand
			}
		}
	} else {
		e.Operation.Method = ""
	}
	a.tell(l, e)
}

// How many operations of a lock are told, a second and at once. Each is stored, and told to others.
const lockPace, lockBurst = 5, 100

// saidAgain is after how long that something is left out is logged again.
const saidAgain = time.Hour

// tell tells of an operation, unless there are more than people make; with a.mu held.
func (a *Adapter) tell(l *lock, e adapter.Event) {
	if !l.pace.Allow() {
		a.hurried.Do(func() {
			a.log.Warn("more operations are published than people make; those beyond are not told", "lock", l.ref)
		})
		return
	}
	a.hints.Send(e)
}
