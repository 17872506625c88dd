package zigbee2mqtt

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// With Zigbee2MQTT's option retain, the broker repeats the last action of a lock on each connection.
func TestRetainedStateIsNoOperation(t *testing.T) {
	t.Parallel()
	const unlocked = `{"state":"UNLOCK","battery":77,"action":"unlock","action_source_name":"keypad","action_user":1,"users":{"1":{"status":"enabled","pin_code":"4711"}}}`
	a := told(t, lockListed("0xa", "front door", "V"))
	l := a.locks["0xa"]
	a.publish("front door", `{"state":"LOCK","users":{"1":{"status":"available"}}}`)
	for name, text := range map[string]string{
		"opened":    unlocked,
		"no access": `{"action":"unlock_failure_invalid_pin_or_id"}`, "jammed": `{"lock_state":"not_fully_locked"}`,
		"programmed": `{"action":"pin_code_added","action_user":1}`,
	} {
		a.heardOf()
		a.receive("z/front door", []byte(text), true)
		if kinds := a.heardOf(); slices.ContainsFunc(kinds,
			func(k adapter.EventKind) bool { return k != adapter.StatusChanged }) {
			t.Errorf("%s: events %v", name, kinds)
		}
	}
	judged := false
	l.silent, l.jammed, l.read = true, false, map[int]reading{}
	l.waiter = &waiter{
		judge:  func(_, _ *wireState) verdict { judged = true; return isAnswer },
		result: make(chan error, 1),
	}
	a.receive("z/front door", []byte(unlocked), true)
	if judged || len(l.waiter.result) > 0 {
		t.Error("it is mistaken for a response")
	}
	if !l.silent || len(l.read) > 0 {
		t.Errorf("it counts as a sign of life: silent %v, %d slots are read", l.silent, len(l.read))
	}
	if l.locked == nil || *l.locked || l.battery == nil {
		t.Error("the bolt and the battery are ignored")
	}
	a.heardOf()
	a.publish("front door", unlocked) // the same message without retain
	if kinds := a.heardOf(); !judged || l.silent || !slices.Contains(kinds, adapter.LockOperated) {
		t.Errorf("a message that is not retained is ignored: events %v", kinds)
	}
}
