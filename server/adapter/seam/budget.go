package seam

import (
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// window is the time that the limits count: docs.seam.co, "rate limits", on 2026-08-26.
const window = time.Minute

// writeKind is a kind of write that the hosted API limits for each device.
type writeKind int

const (
	creates writeKind = iota
	updates
	deletes
	locks
	unlocks
)

// perWindow are the writes of one device in a window. The limits of conversions are not published.
var perWindow = map[writeKind]int{creates: 10, updates: 10, deletes: 20, locks: 15, unlocks: 15}

type budgetKey struct {
	device adapter.DeviceRef
	kind   writeKind
}

// budget counts the writes of each device in the last window. The zero value is ready.
type budget struct {
	mu   sync.Mutex
	sent map[budgetKey][]time.Time // ascending
}

// maxCounted bounds the devices that are counted. Beyond it, old counts are dropped.
const maxCounted = 10_000

// spend counts a write at a time. If the limit is reached, it returns how long to wait instead.
func (b *budget) spend(device adapter.DeviceRef, kind writeKind, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := budgetKey{device, kind}
	sent := b.sent[key]
	for len(sent) > 0 && now.Sub(sent[0]) >= window {
		sent = sent[1:]
	}
	if len(sent) >= perWindow[kind] {
		return max(window-now.Sub(sent[0]), time.Millisecond)
	}
	if b.sent == nil || len(b.sent) >= maxCounted {
		b.sent = map[budgetKey][]time.Time{}
	}
	b.sent[key] = append(sent, now)
	return 0
}

// mayWrite counts a write of the device. It fails with Transient when the limit of the hosted API is reached.
func (a *Adapter) mayWrite(device adapter.DeviceRef, kind writeKind) error {
	wait := a.writes.spend(device, kind, time.Now())
	if wait == 0 {
		return nil
	}
	e := adapter.Errorf(adapter.Transient, "the device has had as many writes of this kind as a minute allows")
	e.RetryAfter = wait
	return e
}
