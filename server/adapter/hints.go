package adapter

import "sync"

// hintsKept is how many hints wait for their reader.
const hintsKept = 256

// Hints is what adapters send their events with: it never blocks, and never sends after Close.
type Hints struct {
	mu     sync.Mutex
	closed bool
	out    chan Event
}

// NewHints makes the channel that Adapter.Events gives.
func NewHints() *Hints { return &Hints{out: make(chan Event, hintsKept)} }

// Events is the channel; Close closes it.
func (h *Hints) Events() <-chan Event { return h.out }

// Send offers the hint and says whether anybody may still read it. Where there is no room, one Resync takes
// the place of all that wait.
func (h *Hints) Send(hint Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	select {
	case h.out <- hint:
		return true
	default:
	}
	for drained := false; !drained; {
		select {
		case <-h.out:
		default:
			drained = true
		}
	}
	h.out <- Event{Kind: Resync}
	return true
}

// Close ends the events; it may be repeated.
func (h *Hints) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.out)
	}
}
