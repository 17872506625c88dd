package devicecloud

import (
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// eventsKept is how many hints wait for their reader.
const eventsKept = 256

// events is the one sender of the channel: it never blocks, and never sends after close.
type events struct {
	mu     sync.Mutex
	closed bool
	out    chan adapter.Event
}

func newEvents() *events { return &events{out: make(chan adapter.Event, eventsKept)} }

// send offers the hint and says whether anybody may still read it. Where there is no room, one Resync takes
// the place of all that wait.
func (e *events) send(hint adapter.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	select {
	case e.out <- hint:
		return true
	default:
	}
	for drained := false; !drained; {
		select {
		case <-e.out:
		default:
			drained = true
		}
	}
	e.out <- adapter.Event{Kind: adapter.Resync}
	return true
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		close(e.out)
	}
}
