package zigbee2mqtt

import (
	"context"
	"errors"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// applyLimits applies the limits that the lock reports.
func (l *lock) applyLimits(w wireLimits) {
	if n := min(w.Users, maxSlots); n > 1 && (l.slotLimit == 0 || n <= l.slotLimit) {
		l.slots, l.slotsReported = n, true
	}
	if least, most := w.MinPIN, w.MaxPIN; least > 0 && most >= least && most <= 16 {
		l.minPIN, l.maxPIN = least, most
	}
}

// resetLimits makes the next call read the limits again: a new converter or firmware may report others.
func (l *lock) resetLimits() {
	l.limitsKnown, l.slotLimit = false, 0
	if !l.slotsReported {
		l.slots = usualSlots
	}
}

// knownEmpty reports whether the slot certainly contains no code.
func (l *lock) knownEmpty(n int) bool {
	r, known := l.read[n]
	return n == 0 || n >= l.slots && l.slotsReported || known && r.free()
}

// readLimits reads the limits of the lock, once per connection. Limits that the lock does not report keep their
// defaults.
func (a *Adapter) readLimits(ctx context.Context, l *lock) {
	a.mu.Lock()
	learned := l.limitsKnown || !l.online() || !l.codes()
	a.mu.Unlock()
	if learned {
		return
	}
	release, err := l.acquire(ctx)
	if err != nil {
		return
	}
	defer release()
	a.mu.Lock()
	learned = l.limitsKnown
	a.mu.Unlock()
	if learned {
		return
	}
	attributes := []map[string]int{{"attrId": maxPINUsers}, {"attrId": longestPIN}, {"attrId": shortestPIN}}
	f, err := a.exactRequest(ctx, l, generalFrame, "read", attributes)
	if limits, ok := f.limits(); err == nil && ok {
		a.mu.Lock()
		l.applyLimits(limits)
		l.limitsKnown = true
		a.mu.Unlock()
		return
	}
	if err != nil && !errors.Is(err, errNoExactRead) {
		a.log.Debug("a lock has not reported its limits", "lock", l.ref, "error", err)
		return
	}
	err = a.command(ctx, l, "set", map[string]any{"read": map[string]any{
		"cluster": doorLock, "attributes": []string{"numOfPinUsersSupported", "minPinLen", "maxPinLen"},
		"state_property": limitsProperty,
	}}, answerTimeout, func(w, before *wireState) verdict {
		switch {
		case w.Limits == nil:
			return isNone
		case before != nil && before.Limits == nil:
			return isAnswer
		}
		// They have been read earlier. The response must not be mistaken for the response to the next request.
		return mayBe
	})
	if errors.Is(err, errNoAnswer) && a.checkHealth(ctx) == nil {
		a.heardNothing(ctx, l)
	}
	if err != nil && adapter.ClassOf(err).Retryable() {
		a.log.Debug("a lock has not reported its limits", "lock", l.ref, "error", err)
		return
	}
	a.mu.Lock()
	l.limitsKnown = true
	a.mu.Unlock()
}
