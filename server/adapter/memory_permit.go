package adapter

import (
	"context"
	"slices"
	"sync"
	"time"
)

type holdKey struct{}

// memoryPermit holds the semaphores for large responses.
type hold struct {
	mu    sync.Mutex
	rooms []chan struct{}
	// expiry releases the semaphores.
	late *time.Timer
	over bool
}

// WithMemoryPermit returns a context for a call whose large response keeps its semaphore until release. What was read
// occupies memory until it is stored, and storing it delays others that wait for the semaphore. Therefore the permit
// is released LargeResponseTimeout after the read, and before anything else is requested with the same context.
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

// adopt takes over an acquired semaphore, unless the permit was released.
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

// startExpiry starts the timeout for storing a response that has been read.
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
		// Otherwise the timer of another response is running.
		if h.late == late {
			h.empty()
		}
	})
	h.late = late
}

// releaseAll releases all semaphores. With final, the permit adopts no more.
func (h *hold) giveUp(forGood bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.empty()
	h.over = h.over || forGood
}

// releaseLocked releases all semaphores; h.mu is held.
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
