package zigbee2mqtt

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// All locks of a network share one radio, and Devices waits for all of them.
func TestConcurrentLimitReads(t *testing.T) {
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
			if want := min(40, answered+maxConcurrentReads); len(asked) != want {
				t.Fatalf("%d locks are read after %d responses, want %d", len(asked), answered, want)
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

// Devices does not wait for each lock that does not answer.
func TestLocksWithUnknownLimitsAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks []string
		for n := range 200 {
			locks = append(locks, lockListed(fmt.Sprintf("0x%d", n), fmt.Sprintf("lock %d", n), "V"))
		}
		a := told(t, locks...)
		a.connected(t, func(b *fakeBroker, topic string, payload []byte) {
			if topic == "z/bridge/request/health_check" {
				b.respond("health_check", payload)
			}
		})
		begin := time.Now()
		devices, err := a.Devices(t.Context())
		if took := time.Since(begin); err != nil || len(devices) != 200 || took > 70*time.Second {
			t.Errorf("%d devices after %s, %v", len(devices), took, err)
		}
	})
}

// A Zigbee2MQTT that restarts repeatedly invalidates all slots, which must not block the lock for other calls.
func TestReadingAnUnstableLockEnds(t *testing.T) {
	t.Parallel()
	for flaps, want := range map[int64]bool{0: true, 3: true, usualSlots: true, 1_000_000: false} {
		synctest.Test(t, func(t *testing.T) {
			a := told(t, lockListed("0xa", "front door", "V"))
			l := a.locks["0xa"]
			l.limitsKnown = true
			var asked atomic.Int64
			a.connected(t, func(b *fakeBroker, topic string, payload []byte) {
				var get struct {
					PIN struct{ User int } `json:"pin_code"`
				}
				if topic != "z/0xa/get" || json.Unmarshal(payload, &get) != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
				b.publish(
					"z/front door",
					map[string]any{
						"users": map[string]any{strconv.Itoa(get.PIN.User): map[string]string{"status": available}},
					},
				)
				if asked.Add(1) <= flaps {
					b.publish("z/bridge/state", map[string]string{"state": "online"})
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := a.Codes(ctx, l.ref, true)
			switch {
			case want && err != nil:
				t.Errorf("%d times: %v", flaps, err)
			case !want && (adapter.ClassOf(err) != adapter.Transient || ctx.Err() != nil ||
				!strings.Contains(err.Error(), "again and again") || asked.Load() > 2*usualSlots):
				t.Errorf("%d times: %v, after %d requests", flaps, err, asked.Load())
			}
		})
	}
}

// The slots alternate between free in the published state and occupied in the response.
func TestWritingToChangingSlotsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := told(t, lockListed("0xa", "front door", "V"))
		l := a.locks["0xa"]
		l.limitsKnown = true
		for n := 1; n < l.slots; n++ {
			l.read[n] = reading{slot{Status: available}, time.Now()}
		}
		var asked atomic.Int64
		a.connected(t, func(b *fakeBroker, topic string, payload []byte) {
			var action struct {
				Params struct {
					ZCL struct{ Payload struct{ UserID int } }
				}
			}
			if topic != "z/bridge/request/action" || json.Unmarshal(payload, &action) != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
			asked.Add(1)
			n := action.Params.ZCL.Payload.UserID
			for _, status := range []string{enabled, available} {
				b.publish(
					"z/front door",
					map[string]any{"users": map[string]any{strconv.Itoa(3 - n): map[string]string{"status": status}}},
				)
			}
			b.respond("action", payload, 25, 1, getPINCode, n, 0, 1, 0, 4, '4', '7', '1', '1')
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := a.PutCode(ctx, l.ref, adapter.CodeSpec{Key: "ours", PIN: "60216021"})
		if adapter.ClassOf(err) != adapter.Transient || ctx.Err() != nil ||
			!strings.Contains(err.Error(), "again and again") || asked.Load() > 2*usualSlots {
			t.Errorf("%v, after %d requests", err, asked.Load())
		}
	})
}
