package sandbox

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// action is a lock or unlock command.
type action struct{ id, customID, name string }

// keptActions is the number of commands per lock whose custom_id is remembered.
const keptActions = 64

// runCommand accepts a lock or unlock command, or returns the earlier one with the same custom_id.
func (l *lock) runCommand(name, customID string) (action, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.actions, func(a action) bool { return a.customID == customID }); i >= 0 &&
		customID != "" {
		return l.actions[i], nil
	}
	if !l.mem.reachable() {
		return action{}, refuse(deviceOffline, "The device is offline and cannot accept commands.")
	}
	a := action{id: "act_" + uuid.NewString(), customID: customID, name: name}
	l.actions = append(l.actions[max(0, len(l.actions)-keptActions+1):], a)
	e := event{
		Type:         "lock.action_completed",
		ActionID:     a.id,
		CustomID:     customID,
		Action:       name,
		PerformedVia: "remote_api",
	}
	at := time.Now().Add(l.drawLatency())
	if at.Before(l.actedAt) {
		at = l.actedAt
	}
	l.actedAt = at
	l.box.sched.at(at, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mem.reachable() {
			l.move(e, name == "lock")
		}
	})
	return a, nil
}

// move moves the bolt and announces the outcome; l.mu is held.
func (l *lock) move(e event, locked bool) *problem {
	p := l.commit(func(m *memory) *problem {
		if m.Jammed {
			return refuse(lockJammed, "The bolt is jammed.")
		}
		m.Locked = locked
		return nil
	})
	e.Status = "success"
	if p != nil {
		e.Status, e.ErrorCode, e.Message = "failed", p.kind.code, p.message
	}
	l.announce(e)
	if p == nil {
		l.autoLock()
	}
	return p
}

// setAutoLock accepts a change of the auto-lock setting.
func (l *lock) setAutoLock(on bool, seconds float64) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.prof.AutoLock:
		return refuse(notSupported, "The lock cannot lock itself.")
	case on && (seconds < 1 || seconds > 60):
		return refuse(invalidRequest, "delay_seconds must be 1 to 60.")
	case !l.mem.reachable():
		return refuse(deviceOffline, "The device is offline and cannot accept commands.")
	}
	l.box.sched.at(time.Now().Add(l.drawLatency()), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.mem.reachable() || l.mem.Removed {
			return
		}
		p := l.commit(func(m *memory) *problem {
			if m.AutoLock = on; on {
				m.AutoLockSecs = seconds
			}
			return nil
		})
		if p == nil {
			l.autoLock()
			l.announce(event{Type: "lock.settings_changed"})
		}
	})
	return nil
}

// autoLock starts the timer that locks an unlocked lock. It works even if the cloud cannot reach the lock; l.mu is
// held.
func (l *lock) autoLock() {
	l.autoLockTimer++
	if l.mem.Locked || !l.mem.AutoLock {
		return
	}
	turn := l.autoLockTimer
	after := l.box.scaled(time.Duration(l.mem.AutoLockSecs * float64(time.Second)))
	l.box.sched.at(time.Now().Add(after), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if turn == l.autoLockTimer && !l.mem.Removed {
			// a jam is announced
			_ = l.move(event{Type: "lock.action_completed", Action: "lock", PerformedVia: "auto_lock"}, true)
		}
	})
}
