package adapter

import (
	"context"
	"slices"
	"sync"
)

type holdKey struct{}

// hold is what keeps rooms for large answers.
type hold struct {
	mu    sync.Mutex
	rooms []chan struct{}
	over  bool
}

// Hold is the context for a call whose answer, if it is a large one, keeps its room until release: what was read takes
// memory until it is taken in, and what is written down of it takes others' time. Whatever is asked with the same context has
// the same room.
func Hold(ctx context.Context) (_ context.Context, release func()) {
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), h.release
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

func (h *hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, room := range h.rooms {
		<-room
	}
	h.rooms, h.over = nil, true
}
