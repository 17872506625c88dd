package zigbee2mqtt

import (
	"crypto/sha256"
	"maps"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// put is a code that was sent to a lock. By its key a put whose answer was lost finds its own slot when it is repeated.
type put struct {
	slot     int
	was, pin [sha256.Size]byte // of the PIN that was there before, and of the one that was sent
}

// lateFor is how long what was sent to a lock may still arrive: Zigbee2MQTT gives up after 10 s.
const lateFor = answerWithin

// note keeps by which key a slot is written, with Adapter.mu held: also where nobody will know what became of that.
func (l *lock) note(key string, n int, was, pin string) {
	if key == "" {
		return
	}
	l.forgetKeys(n)
	l.keys[key] = put{slot: n, was: l.fingerprint(was), pin: l.fingerprint(pin)}
}

// has says whether what is in a slot was put there by that key, as far as the slot shows; with Adapter.mu held.
func (l *lock) has(key string, n int, is slot) bool {
	p, ok := l.keys[key]
	if key == "" || !ok || p.slot != n || !is.taken() {
		return false
	}
	mark := l.fingerprint(is.PIN)
	return is.PIN == "" || mark == p.pin || mark == p.was
}

// empty takes in that a slot was read as empty; with Adapter.mu held.
func (l *lock) empty(n int) {
	delete(l.put, n)
	if time.Since(l.ours[n]) > lateFor {
		l.forgetKeys(n)
	}
}

// forgetKeys drops the key of what a slot had, with Adapter.mu held: what is there next is another code.
func (l *lock) forgetKeys(n int) {
	maps.DeleteFunc(l.keys, func(_ string, p put) bool { return p.slot == n })
}

// isOurs says whether what is in a slot that was just read is to be written over.
func (a *Adapter) isOurs(l *lock, spec adapter.CodeSpec, n int, now slot) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return spec.Ref != "" || l.has(spec.Key, n, now)
}
