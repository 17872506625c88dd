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
// up after LargeWithin, and before anything else is asked with the same context.
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
	if h.over {
		return false
	}
	if h.late == nil {
		h.late = time.AfterFunc(LargeWithin, func() { h.giveUp(false) })
	}
	h.rooms = append(h.rooms, room)
	return true
}

// giveUp leaves all rooms; for good: none is kept any more.
func (h *hold) giveUp(forGood bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, room := range h.rooms {
		<-room
	}
	h.rooms, h.over = nil, h.over || forGood
	if h.late != nil {
		h.late.Stop()
		h.late = nil
	}
}
