package admission

import (
	"context"
	"time"
)

// maxLargeBodies is the number of large bodies received concurrently from one caller.
const roomsOfOne = 2

// received counts bytes of a body. A large body makes the request heavy. The request must have no slot.
func (v *visit) received(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	if v.got += n; v.got > large && !v.turned {
		v.kind = heavy
	}
}

// sends counts bytes of a response before the client reads them, which may be never.
func (v *visit) sends(n int) {
	if v.sent += n; v.sent > large {
		v.crowd.mu.Lock()
		v.learn()
		v.crowd.mu.Unlock()
	}
}

// acquireBody waits until more of a large body may be received. It returns ErrBusy after slotTimeout, net.ErrClosed, or
// the error of ctx.
func (v *visit) takeRoom(ctx context.Context) error {
	v.crowd.mu.Lock()
	k := v.caller
	if v.got <= large || v.room {
		v.crowd.mu.Unlock()
		return nil
	}
	if len(k.roomless) == 0 && k.rooms < roomsOfOne {
		k.rooms++
		v.room = true
		v.crowd.mu.Unlock()
		return nil
	}
	return v.wait(ctx, func() *[]*visit { return &k.roomless }, &v.room)
}

// releaseBody lets the caller's next large body in; with the lock held.
func (k *caller) leaveRoom() {
	k.rooms--
	if len(k.roomless) > 0 {
		v := k.roomless[0]
		k.roomless = k.roomless[1:]
		k.rooms++
		v.room = true
		close(v.ready)
	}
}

// lightWindow is how long after a light request its caller is expected to send another.
const recently = 5 * time.Second

// lightCallers are the last two callers with light requests.
type modest [2]struct {
	name string
	at   time.Time
}

func (m *modest) seen(name string) {
	if m[0].name != name {
		m[1] = m[0]
		m[0].name = name
	}
	m[0].at = time.Now()
}

// hasOther reports whether a caller other than name had a light request within lightWindow.
func (m *modest) others(name string) bool {
	for _, one := range m {
		if one.name != name && time.Since(one.at) < recently {
			return true
		}
	}
	return false
}
