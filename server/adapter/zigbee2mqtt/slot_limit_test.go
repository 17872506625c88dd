package zigbee2mqtt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// place returns the slot of a command to a lock, and whether it is a write.
func place(topic string, payload []byte) (n int, set bool) {
	var command struct {
		PIN struct{ User int } `json:"pin_code"`
	}
	if (topic == "z/0xa/get" || topic == "z/0xa/set") && json.Unmarshal(payload, &command) == nil {
		n = command.PIN.User
	}
	return n, topic == "z/0xa/set"
}

// outOfRange is the log message of Zigbee2MQTT for a command about a slot that does not exist. All clients receive
// it.
func (b *fakeBroker) outOfRange(verb string) {
	b.publish("z/bridge/logging", map[string]string{
		"level": "error",
		"message": fmt.Sprintf("z2m: Publish '%s' 'pin_code' to 'front door' failed: 'Error: `userId` must be in "+
			"range for device'", verb),
	})
}

// simulated returns an adapter for a listed lock whose codes the test defines.
func simulated(t *testing.T, codes map[int]string,
	before func(b *fakeBroker, n int, set bool) (answered bool),
) (*Adapter, *lock) {
	t.Helper()
	a := told(t, lockListed("0xa", "front door", "V"))
	l := a.locks["0xa"]
	l.limitsKnown = true
	a.connected(t, func(b *fakeBroker, topic string, payload []byte) {
		n, set := place(topic, payload)
		if n == 0 {
			return
		}
		if before(b, n, set) {
			return
		}
		if set {
			delete(codes, n)
			return
		}
		time.Sleep(10 * time.Millisecond)
		state := map[string]string{"status": available}
		if pin := codes[n]; pin != "" {
			state = map[string]string{"status": enabled, "pin_code": pin}
		}
		b.publish("z/front door", map[string]any{"users": map[string]any{strconv.Itoa(n): state}})
	})
	return a, l
}

// The log of Zigbee2MQTT names neither the sender of the failed command nor the slot.
func TestErrorOfAnotherClientIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		codes := map[int]string{2: "4711", 5: "60216021"}
		wrong := map[string]bool{}
		a, l := simulated(t, codes, func(b *fakeBroker, n int, set bool) bool {
			for _, verb := range []string{"get", "set"} {
				if at := map[string]int{"get": 3, "set": 5}[verb]; n == at && set == (verb == "set") && !wrong[verb] {
					wrong[verb] = true
					b.outOfRange(verb)
				}
			}
			return false
		})
		got, err := a.Codes(t.Context(), l.ref, true)
		if err != nil || got.Stale || len(got.Codes) != 2 || !wrong["get"] {
			t.Errorf("there are %d codes, stale %v, %v", len(got.Codes), got.Stale, err)
		}
		if state, err := a.DeleteCode(t.Context(), l.ref, "5"); err != nil || state != adapter.Confirmed ||
			codes[5] != "" || !wrong["set"] {
			t.Errorf("the code is %s, and %v on the lock: %v", state, codes[5] != "", err)
		}
		if d := a.device(l); d.Capabilities.MaxCodes != usualSlots-1 {
			t.Errorf("the lock has %d slots", d.Capabilities.MaxCodes)
		}
	})
}

// A repeated error is believed until the next connection.
func TestLockWithFewerSlotsThanAssumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		codes, asked := map[int]string{2: "4711"}, map[int]int{}
		has := 20
		a, l := simulated(t, codes, func(b *fakeBroker, n int, set bool) bool {
			verb := "get"
			if set {
				verb = "set"
			}
			if asked[n]++; n < has {
				return false
			}
			b.outOfRange(verb)
			return true
		})
		got, err := a.Codes(t.Context(), l.ref, true)
		if err != nil || got.Stale || len(got.Codes) != 1 || asked[20] != 2 || asked[21] != 0 {
			t.Errorf("there are %d codes, stale %v, after %d reads, %v", len(got.Codes), got.Stale, asked[20], err)
		}
		if d := a.device(l); d.Capabilities.MaxCodes != 19 {
			t.Errorf("the lock has %d slots", d.Capabilities.MaxCodes)
		}
		// The lock itself has not reported its size, so the command is sent nevertheless.
		if state, err := a.DeleteCode(t.Context(), l.ref, "25"); err != nil || state != adapter.Confirmed ||
			asked[25] == 0 {
			t.Errorf("a code beyond is %s after %d commands: %v", state, asked[25], err)
		}
		has, codes[25] = 31, "60216021"
		a.mu.Lock()
		a.invalidateSlots() // as after each connection
		l.limitsKnown = true
		a.mu.Unlock()
		got, err = a.Codes(t.Context(), l.ref, true)
		if err != nil || !slices.ContainsFunc(got.Codes, func(c adapter.Code) bool { return c.Ref == "25" }) {
			t.Errorf("after a new connection there are %d codes, %v", len(got.Codes), err)
		}
	})
}

// A slot beyond the size that the lock reports cannot contain a code.
func TestReportedLockSizeCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := map[int]int{}
		a, l := simulated(t, map[int]string{}, func(_ *fakeBroker, n int, _ bool) bool { asked[n]++; return false })
		a.publish("front door", `{"deviceaccess_limits":{"numOfPinUsersSupported":12}}`)
		if state, err := a.DeleteCode(t.Context(), l.ref, "25"); err != nil || state != adapter.Confirmed ||
			asked[25] != 0 {
			t.Errorf("a code beyond is %s after %d commands: %v", state, asked[25], err)
		}
		a.mu.Lock()
		a.invalidateSlots()
		learned, slots := l.limitsKnown, l.slots
		a.mu.Unlock()
		if learned || slots != 12 {
			t.Errorf("after a reconnection it has %d slots, known limits: %v", slots, learned)
		}
		// Zigbee2MQTT may support fewer slots than the lock has.
		l.slotLimit, l.slots, l.slotsReported = 10, 10, false
		a.publish("front door", `{"deviceaccess_limits":{"numOfPinUsersSupported":12}}`)
		if l.slots != 10 || l.slotsReported {
			t.Errorf("it has %d slots", l.slots)
		}
	})
}
