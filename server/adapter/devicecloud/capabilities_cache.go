package devicecloud

import (
	"sync"
	"unsafe"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// maxCacheSize is the maximum size of the cached capabilities of an account's locks in bytes, enough for about 6000
// usual locks. The capabilities of further locks are read when needed.
const maxCacheSize = 2 << 20

// capsCache caches the capabilities of locks.
type capsCache struct {
	mu   sync.Mutex
	caps map[adapter.DeviceRef]capability.Set
	// size is the approximate memory of caps in bytes.
	size int
}

// replace replaces the content of the cache.
func (k *capsCache) replace(devices []adapter.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caps, k.size = make(map[adapter.DeviceRef]capability.Set), 0
	for _, d := range devices {
		k.put(d)
	}
}

func (k *capsCache) keep(d adapter.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(d)
}

// put is keep; k.mu is held.
func (k *capsCache) put(d adapter.Device) {
	if was, ok := k.caps[d.Ref]; ok {
		k.size -= size(d.Ref, was)
		delete(k.caps, d.Ref)
	}
	if more := size(d.Ref, d.Capabilities); k.size+more <= maxCacheSize {
		k.caps[d.Ref] = d.Capabilities
		k.size += more
	}
}

func (k *capsCache) of(ref adapter.DeviceRef) (capability.Set, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.caps[ref]
	return c, ok
}

// size returns the approximate memory of an entry in bytes.
func size(ref adapter.DeviceRef, c capability.Set) int {
	n := len(ref) + int(unsafe.Sizeof(ref)+unsafe.Sizeof(c)) + len(c.CodeLengths)*int(unsafe.Sizeof(0))
	if t := c.Thermostat; t != nil {
		n += int(unsafe.Sizeof(*t)) + 4*int(unsafe.Sizeof(0.0)) + (len(t.Modes)+len(t.FanModes))*int(unsafe.Sizeof(""))
	}
	if c.NoiseSensor != nil {
		n += int(unsafe.Sizeof(*c.NoiseSensor))
	}
	for _, k := range c.Constraints {
		n += len(k.Type) + int(unsafe.Sizeof(k))
	}
	return n
}
