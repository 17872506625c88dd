package zigbee2mqtt

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// Whoever lists the devices of a network asks its locks through one radio, and waits for all of them.
func TestOnlySoManyLocksAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks []string
		for n := range 40 {
			locks = append(locks, lockListed(fmt.Sprintf("0x%d", n), fmt.Sprintf("lock %d", n), "V"))
		}
		a := told(t, locks...)
		var mu sync.Mutex
		var asked []func()
		a.connected(t, func(b *fakeBroker, topic string, payload []byte) {
			if topic == "z/bridge/request/health_check" {
				b.respond("health_check", payload)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, func() { b.respond("action", payload, 24, 1, readResponse) })
		})
		listed := make(chan error, 1)
		go func() {
			devices, err := a.Devices(t.Context())
			if err == nil && len(devices) != 40 {
				err = fmt.Errorf("%d devices", len(devices))
			}
			listed <- err
		}()
		for answered := range 40 {
			synctest.Wait()
			mu.Lock()
			if want := min(40, answered+mostAsked); len(asked) != want {
				t.Fatalf("%d locks are asked once %d have answered, want %d", len(asked), answered, want)
			}
			answer := asked[answered]
			mu.Unlock()
			answer()
		}
		if err := <-listed; err != nil {
			t.Error(err)
		}
	})
}
