package admission

import (
	"context"
	"time"
)

// maxLargeBodies is the number of large bodies received concurrently from one caller.
const maxLargeBodies = 2

// received counts bytes of a body. A large body makes the request heavy. The request must have no slot.
func (v *request) received(n int) {
	v.crowd.mu.Lock()
	defer v.crowd.mu.Unlock()
	if v.bodyBytes += n; v.bodyBytes > largeBytes && !v.hasSlot {
		v.kind = heavy
	}
}

// sends counts bytes of a response before the client reads them, which may be never.
func (v *request) sends(n int) {
	if v.answerBytes += n; v.answerBytes > largeBytes {
		v.crowd.mu.Lock()
		v.learnCost()
		v.crowd.mu.Unlock()
	}
}

// acquireBody waits until more of a large body may be received. It returns ErrBusy after slotTimeout, net.ErrClosed, or
// the error of ctx.
func (v *request) acquireBody(ctx context.Context) error {
	v.crowd.mu.Lock()
	k := v.caller
	if v.bodyBytes <= largeBytes || v.hasLargeBody {
		v.crowd.mu.Unlock()
		return nil
	}
	if len(k.bodyQueue) == 0 && k.largeBodies < maxLargeBodies {
		k.largeBodies++
		v.hasLargeBody = true
		v.crowd.mu.Unlock()
		return nil
	}
	return v.waitFor(ctx, func() *[]*request { return &k.bodyQueue }, &v.hasLargeBody)
}

// releaseBody lets the caller's next large body in; with the lock held.
func (k *caller) releaseBody() {
	k.largeBodies--
	if len(k.bodyQueue) > 0 {
		v := k.bodyQueue[0]
		k.bodyQueue = k.bodyQueue[1:]
		k.largeBodies++
		v.hasLargeBody = true
		close(v.ready)
	}
}

// lightWindow is how long after a light request its caller is expected to send another.
const lightWindow = 5 * time.Second

// lightCallers are the last two callers with light requests.
type lightCallers [2]struct {
	name string
	at   time.Time
}

func (m *lightCallers) seen(name string) {
	if m[0].name != name {
		m[1] = m[0]
		m[0].name = name
	}
	m[0].at = time.Now()
}

// hasOther reports whether a caller other than name had a light request within lightWindow.
func (m *lightCallers) hasOther(name string) bool {
	for _, one := range m {
		if one.name != name && time.Since(one.at) < lightWindow {
			return true
		}
	}
	return false
}
