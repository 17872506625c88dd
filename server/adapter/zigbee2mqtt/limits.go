package zigbee2mqtt

import (
	"context"
	"errors"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// applyLimits applies the limits that the lock reports.
func (l *lock) limits(w wireLimits) {
	if n := min(w.Users, mostSlots); n > 1 && (l.ends == 0 || n <= l.ends) {
		l.slots, l.told = n, true
	}
	if least, most := w.MinPIN, w.MaxPIN; least > 0 && most >= least && most <= 16 {
		l.minPIN, l.maxPIN = least, most
	}
}

// resetLimits makes the next call read the limits again: a new converter or firmware may report others.
func (l *lock) anew() {
	l.learned, l.ends = false, 0
	if !l.told {
		l.slots = usualSlots
	}
}

// knownEmpty reports whether the slot certainly contains no code.
func (l *lock) lacks(n int) bool {
	r, known := l.read[n]
	return n == 0 || n >= l.slots && l.told || known && r.free()
}

// readLimits reads the limits of the lock, once per connection. Limits that the lock does not report keep their
// defaults.
func (a *Adapter) learn(ctx context.Context, l *lock) {
	a.mu.Lock()
	learned := l.learned || !l.online() || !l.codes()
	a.mu.Unlock()
	if learned {
		return
	}
	release, err := l.begin(ctx)
	if err != nil {
		return
	}
	defer release()
	a.mu.Lock()
	learned = l.learned
	a.mu.Unlock()
	if learned {
		return
	}
	attributes := []map[string]int{{"attrId": mostPINUsers}, {"attrId": longestPIN}, {"attrId": shortestPIN}}
	f, err := a.exactly(ctx, l, generalFrame, "read", attributes)
	if limits, ok := f.limits(); err == nil && ok {
		a.mu.Lock()
		l.limits(limits)
		l.learned = true
		a.mu.Unlock()
		return
	}
	if err != nil && !errors.Is(err, errPlain) {
		a.log.Debug("a lock has not reported its limits", "lock", l.ref, "error", err)
		return
	}
	err = a.command(ctx, l, "set", map[string]any{"read": map[string]any{
		"cluster": doorLock, "attributes": []string{"numOfPinUsersSupported", "minPinLen", "maxPinLen"},
		"state_property": limitsProperty,
	}}, answerWithin, func(w, before *wireState) verdict {
		switch {
		case w.Limits == nil:
			return isNone
		case before != nil && before.Limits == nil:
			return isAnswer
		}
		// They have been read earlier. The response must not be mistaken for the response to the next request.
		return mayBe
	})
	if errors.Is(err, errNoAnswer) && a.alive(ctx) == nil {
		a.heardNothing(ctx, l)
	}
	if err != nil && adapter.ClassOf(err).Retryable() {
		a.log.Debug("a lock has not reported its limits", "lock", l.ref, "error", err)
		return
	}
	a.mu.Lock()
	l.learned = true
	a.mu.Unlock()
}
