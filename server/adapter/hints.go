package adapter

import (
	"slices"
	"sync"
)

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

// history says whether no look would find out what the event tells.
func (e Event) history() bool {
	return e.Kind == DeviceRemoved || e.Kind == LockOperated || e.Kind == AccessDenied || e.Kind == Jammed
}

// Send offers the hint and says whether anybody may still read it. Where there is no room, one Resync takes
// the place of all that wait, except of those that no look would find out. Of too many of these the oldest give way, and
// what was done at doors before devices that have left.
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
	var lasting []Event
	keep := func(e Event) {
		if e.history() {
			lasting = append(lasting, e)
		}
	}
	for drained := false; !drained; {
		select {
		case e := <-h.out:
			keep(e)
		default:
			drained = true
		}
	}
	keep(hint)
	for len(lasting) >= hintsKept { // the Resync is to have a place
		first := slices.IndexFunc(lasting, func(e Event) bool { return e.Kind != DeviceRemoved })
		lasting = slices.Delete(lasting, max(first, 0), max(first, 0)+1)
	}
	for _, e := range append(lasting, Event{Kind: Resync}) {
		h.out <- e
	}
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
