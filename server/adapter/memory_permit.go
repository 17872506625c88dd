package adapter

import (
	"context"
	"slices"
	"sync"
	"time"
)

type memoryPermitKey struct{}

// memoryPermit holds the semaphores for large responses.
type memoryPermit struct {
	mu         sync.Mutex
	semaphores []chan struct{}
	// expiry releases the semaphores.
	expiry *time.Timer
	final  bool
}

// WithMemoryPermit returns a context for a call whose large response keeps its semaphore until release. What was read
// occupies memory until it is stored, and storing it delays others that wait for the semaphore. Therefore the permit
// is released LargeResponseTimeout after the read, and before anything else is requested with the same context.
func WithMemoryPermit(ctx context.Context) (_ context.Context, release func()) {
	h := &memoryPermit{}
	return context.WithValue(ctx, memoryPermitKey{}, h), func() { h.releaseAll(true) }
}

func memoryPermitOf(ctx context.Context) *memoryPermit {
	h, _ := ctx.Value(memoryPermitKey{}).(*memoryPermit)
	return h
}

func (h *memoryPermit) holds(room chan struct{}) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.semaphores, room)
}

// adopt takes over an acquired semaphore, unless the permit was released.
func (h *memoryPermit) adopt(room chan struct{}) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.final {
		h.semaphores = append(h.semaphores, room)
	}
	return !h.final
}

// startExpiry starts the timeout for storing a response that has been read.
func (h *memoryPermit) startExpiry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.semaphores) == 0 || h.expiry != nil {
		return
	}
	var late *time.Timer
	late = time.AfterFunc(LargeResponseTimeout, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		// Otherwise the timer of another response is running.
		if h.expiry == late {
			h.releaseLocked()
		}
	})
	h.expiry = late
}

// releaseAll releases all semaphores. With final, the permit adopts no more.
func (h *memoryPermit) releaseAll(forGood bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releaseLocked()
	h.final = h.final || forGood
}

// releaseLocked releases all semaphores; h.mu is held.
func (h *memoryPermit) releaseLocked() {
	for _, room := range h.semaphores {
		<-room
	}
	h.semaphores = nil
	if h.expiry != nil {
		h.expiry.Stop()
		h.expiry = nil
	}
}
