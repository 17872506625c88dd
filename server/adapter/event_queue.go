package adapter

import (
	"slices"
	"sync"
)

// eventBufferSize is the number of events that wait for their reader.
const eventBufferSize = 256

// EventQueue is the channel through which an adapter sends events. It never blocks and sends nothing after Close.
type EventQueue struct {
	mu     sync.Mutex
	closed bool
	out    chan Event
}

// NewEventQueue returns an open queue.
func NewEventQueue() *EventQueue { return &EventQueue{out: make(chan Event, eventBufferSize)} }

// Events returns the channel, which Close closes.
func (h *EventQueue) Events() <-chan Event { return h.out }

// mustDeliver reports whether reading the devices would not reveal the event.
func (e Event) mustDeliver() bool {
	return e.Kind == DeviceRemoved || e.Kind == LockOperated || e.Kind == AccessDenied || e.Kind == Jammed
}

// Send enqueues an event and reports whether the queue is open. When the queue is full, one Resync replaces the
// waiting events, except those that must be delivered. Of too many of these, the oldest are dropped; operations at
// doors are dropped before removals of devices.
func (h *EventQueue) Send(hint Event) bool {
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
		if e.mustDeliver() {
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
	// Keep one place free for the Resync.
	for len(lasting) >= eventBufferSize {
		first := slices.IndexFunc(lasting, func(e Event) bool { return e.Kind != DeviceRemoved })
		lasting = slices.Delete(lasting, max(first, 0), max(first, 0)+1)
	}
	for _, e := range append(lasting, Event{Kind: Resync}) {
		h.out <- e
	}
	return true
}

// Close closes the channel of events. It may be called repeatedly.
func (h *EventQueue) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.out)
	}
}
