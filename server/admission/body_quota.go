package admission

import (
	"context"
	"time"
)

// roomsOfOne is how many large bodies of one caller are received at once.
const roomsOfOne = 2

// received counts bytes of a body, which is heavy once it is large. It is called while the visit has no turn.
func (v *visit) received(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	if v.got += n; v.got > large && !v.turned {
		v.kind = heavy
	}
}

// sends counts bytes of an answer, before they are read: that may be never.
func (v *visit) sends(n int) {
	if v.sent += n; v.sent > large {
		v.crowd.mu.Lock()
		v.learn()
		v.crowd.mu.Unlock()
	}
}

// takeRoom waits until more of a large body may be received. It fails with ErrBusy, or as ctx does.
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

// leaveRoom gives a room to the next; with the lock held.
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

// recently is how long whoever has asked for something that costs little is expected to do so again.
const recently = 5 * time.Second

// modest are the last two who have asked for what costs little.
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

// others says whether somebody else than name was there recently.
func (m *modest) others(name string) bool {
	for _, one := range m {
		if one.name != name && time.Since(one.at) < recently {
			return true
		}
	}
	return false
}
