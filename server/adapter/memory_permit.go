package adapter

import (
	"context"
	"slices"
	"sync"
	"time"
)

type holdKey struct{}

// hold is what keeps rooms for large answers.
type hold struct {
	mu    sync.Mutex
	rooms []chan struct{}
	late  *time.Timer // gives them up
	over  bool
}

// Hold is the context for a call whose answer, if it is a large one, keeps its room until release: what was read takes
// memory until it is taken in, and what is written down of it takes others' time. Others wait for that room, so it is given
// up LargeWithin after it was read, and before anything else is asked with the same context.
func Hold(ctx context.Context) (_ context.Context, release func()) {
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), func() { h.giveUp(true) }
}

func holdOf(ctx context.Context) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	return h
}

func (h *hold) has(room chan struct{}) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.rooms, room)
}

// keep takes over a room that was entered, unless that is over.
func (h *hold) keep(room chan struct{}) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.rooms = append(h.rooms, room)
	}
	return !h.over
}

// read says that the answer is read: from now on it is being written down.
func (h *hold) read() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.rooms) == 0 || h.late != nil {
		return
	}
	var late *time.Timer
	late = time.AfterFunc(LargeWithin, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.late == late { // otherwise it is another answer by now
			h.empty()
		}
	})
	h.late = late
}

// giveUp leaves all rooms; for good: none is kept any more.
func (h *hold) giveUp(forGood bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.empty()
	h.over = h.over || forGood
}

// empty leaves all rooms; with h.mu held.
func (h *hold) empty() {
	for _, room := range h.rooms {
		<-room
	}
	h.rooms = nil
	if h.late != nil {
		h.late.Stop()
		h.late = nil
	}
}
