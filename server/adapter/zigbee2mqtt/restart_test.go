package zigbee2mqtt

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each start restarts the delay, and cancels the earlier one.
func TestOnlyTheLastStartCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := told(t)
		for range 3 {
			a.receive("z/bridge/state", []byte(`{"state":"online"}`), false)
			time.Sleep(time.Second)
		}
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		time.Sleep(1500 * time.Millisecond) // the first two delays would be over
		synctest.Wait()
		select {
		case <-changed:
			t.Error("callers are woken by an earlier start")
		default:
		}
		time.Sleep(startupDelay)
		synctest.Wait()
		select {
		case <-changed:
		default:
			t.Error("callers are not woken after the start")
		}
	})
}

// Health checks must not accumulate for a Zigbee2MQTT that answers now and then, but never a health check.
func TestFlappingGatewayIsProbedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := told(t)
		var asked atomic.Int64
		a.connected(t, func(*fakeBroker, string, []byte) { asked.Add(1) })
		const calls = 20
		for range calls {
			go a.checkHealth(t.Context())
			time.Sleep(100 * time.Millisecond)
		}
		// the first call has just detected it
		time.Sleep(healthTimeout - calls*100*time.Millisecond + 50*time.Millisecond)
		for n := range calls {
			synctest.Wait()
			a.mu.Lock()
			hangs := a.bridge.hangs
			a.mu.Unlock()
			if !hangs {
				t.Error("the hang was not detected")
			}
			if n < calls-1 {
				a.receive("z/bridge/state", []byte(`{"state":"offline"}`), false)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		before := asked.Load()
		time.Sleep(30 * time.Second)
		if n := asked.Load() - before; n > 6 {
			t.Errorf("%d health checks in 30 s", n)
		}
	})
}
