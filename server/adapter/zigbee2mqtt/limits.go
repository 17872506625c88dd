package zigbee2mqtt

import (
	"context"
	"errors"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// limits takes in how much the lock itself says it holds.
func (l *lock) limits(w wireLimits) {
	if n := min(w.Users, mostSlots); n > 1 && (l.ends == 0 || n <= l.ends) {
		l.slots, l.told = n, true
	}
	if least, most := w.MinPIN, w.MaxPIN; least > 0 && most >= least && most <= 16 {
		l.minPIN, l.maxPIN = least, most
	}
}

// anew has a lock be asked again how much it holds: another converter, or firmware, may say otherwise.
func (l *lock) anew() {
	l.learned, l.ends = false, 0
	if !l.told {
		l.slots = usualSlots
	}
}

// lacks says whether it is certain that a lock has no code in a slot.
func (l *lock) lacks(n int) bool {
	r, known := l.read[n]
	return n == 0 || n >= l.slots && l.told || known && r.free()
}

// learn asks the lock, once after each connection, how many slots it has and how long PINs may be. What it does not tell stays as usual.
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
	f, err := a.exactly(ctx, l, generalFrame, "read", []map[string]int{{"attrId": mostPINUsers}, {"attrId": longestPIN}, {"attrId": shortestPIN}})
	if limits, ok := f.limits(); err == nil && ok {
		a.mu.Lock()
		l.limits(limits)
		l.learned = true
		a.mu.Unlock()
		return
	}
	if err != nil && !errors.Is(err, errPlain) {
		a.log.Debug("a lock has not told its limits", "lock", l.ref, "error", err)
		return
	}
	err = a.command(ctx, l, "set", map[string]any{"read": map[string]any{
		"cluster": doorLock, "attributes": []string{"numOfPinUsersSupported", "minPinLen", "maxPinLen"}, "state_property": limitsProperty,
	}}, answerWithin, func(w, before *wireState) verdict {
		switch {
		case w.Limits == nil:
			return isNone
		case before != nil && before.Limits == nil:
			return isAnswer
		}
		// They were asked for before. The answer must not be taken for that of the next question.
		return mayBe
	})
	if errors.Is(err, errNoAnswer) && a.alive(ctx) == nil {
		a.heardNothing(ctx, l)
	}
	if err != nil && adapter.ClassOf(err).Retryable() {
		a.log.Debug("a lock has not told its limits", "lock", l.ref, "error", err)
		return
	}
	a.mu.Lock()
	l.learned = true
	a.mu.Unlock()
}
