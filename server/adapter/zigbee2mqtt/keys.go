package zigbee2mqtt

import (
	"crypto/sha256"
	"maps"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// put is a code that was sent to a lock. A repeated write finds its slot by the key if the response was lost.
type put struct {
	slot     int
	was, pin [sha256.Size]byte // fingerprints of the previous and of the sent PIN
}

// lateWriteWindow is how long after sending a write may reach the lock: Zigbee2MQTT gives up after 10 s.
const lateWriteWindow = answerTimeout

// note records the key of a write, even if its outcome remains unknown; Adapter.mu is held.
func (l *lock) note(key string, n int, was, pin string) {
	if key == "" {
		return
	}
	l.forgetKeys(n)
	l.keys[key] = put{slot: n, was: l.fingerprint(was), pin: l.fingerprint(pin)}
}

// has reports whether the content of a slot may come from the write with the key; Adapter.mu is held.
func (l *lock) has(key string, n int, is slot) bool {
	p, ok := l.keys[key]
	if key == "" || !ok || p.slot != n || !is.taken() {
		return false
	}
	mark := l.fingerprint(is.PIN)
	return is.PIN == "" || mark == p.pin || mark == p.was
}

// empty records that a slot was read as empty; Adapter.mu is held.
func (l *lock) empty(n int) {
	delete(l.put, n)
	if time.Since(l.ownWrites[n]) > lateWriteWindow {
		l.forgetKeys(n)
	}
}

// forgetKeys removes the key of a slot, because the next code in the slot is another one; Adapter.mu is held.
func (l *lock) forgetKeys(n int) {
	maps.DeleteFunc(l.keys, func(_ string, p put) bool { return p.slot == n })
}

// isOurs reports whether the content of a slot that was just read may be overwritten.
func (a *Adapter) isOurs(l *lock, spec adapter.CodeSpec, n int, now slot) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return spec.Ref != "" || l.has(spec.Key, n, now)
}
