package zwavejs

import (
	"fmt"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	valueOf2  = `{"type":"event","event":{"source":"node","nodeId":2,"event":"value updated","args":%s}}`
	noticeOf2 = `{"type":"event","event":{"source":"node","nodeId":2,"event":"notification","args":{"type":6,"event":%d,"parameters":%s}}}`
)

// knows returns an adapter with a lock that was listed and read; its events are consumed.
func knows(t *testing.T, lock string) (*Adapter, *session, *node) {
	t.Helper()
	a, s := told(t)
	a.hear(s, `{"type":"result","success":true,"messageId":"1","result":{"state":{"nodes":[`+lock+`]}}}`)
	n := a.nodes[2]
	n.codes.beginRead(0)
	n.codes.finishRead(0, true)
	a.hinted()
	return a, s, n
}

// hinted returns the events since the last call.
func (a *Adapter) hinted() (all []adapter.Event) {
	for {
		select {
		case e := <-a.hints.Events():
			all = append(all, e)
		default:
			return all
		}
	}
}

func of(kind adapter.EventKind, all []adapter.Event) (some []adapter.Event) {
	for _, e := range all {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// Schlage's locks delete all codes when the PIN length changes (@zwave-js/config 0x003b/be468.json).
func TestChangedPINLengthInvalidatesCodes(t *testing.T) {
	t.Parallel()
	const length = `{"commandClass":112,"endpoint":0,"property":16,"newValue":%d}`
	a, s, n := knows(t, plainLock)
	a.hear(s, fmt.Sprintf(valueOf2, fmt.Sprintf(length, 4)))
	if told := a.hinted(); n.codes.allUncertain || len(told) != 0 {
		t.Errorf("unchanged length: uncertain %v, events %v", n.codes.allUncertain, told)
	}
	a.hear(s, fmt.Sprintf(valueOf2, fmt.Sprintf(length, 6)))
	told := a.hinted()
	if !n.codes.allUncertain || len(of(adapter.CodesChanged, told)) != 1 || len(of(adapter.StatusChanged, told)) != 1 {
		t.Errorf("another length: uncertain %v, events %v", n.codes.allUncertain, told)
	}
}

// Mode 254 means that the lock does not know the position of its bolt (zwave-js DoorLockMode).
func TestUnknownBoltPosition(t *testing.T) {
	t.Parallel()
	const mode = `{"commandClass":98,"endpoint":0,"property":"currentMode","newValue":%d}`
	a, s, n := knows(t, plainLock)
	for _, step := range []struct {
		mode   int
		locked *bool
		told   int
	}{{254, nil, 1}, {254, nil, 0}, {255, new(true), 1}, {254, nil, 1}, {0, new(false), 1}} {
		a.hear(s, fmt.Sprintf(valueOf2, fmt.Sprintf(mode, step.mode)))
		locked, told := a.device(n).Locked, a.hinted()
		if (locked == nil) != (step.locked == nil) || locked != nil && *locked != *step.locked ||
			len(of(adapter.StatusChanged, told)) != step.told || len(told) != step.told {
			t.Errorf("mode %d: locked %v, events %v", step.mode, locked, told)
		}
	}
}

// Some locks omit the user: that is an echo of the last write, not a change of all codes.
func TestNotificationWithoutUserDuringWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happen  func(m *memory)
		touched bool
	}{
		"nothing is written":                {func(*memory) {}, true},
		"another slot is being written":     {func(m *memory) { m.noteWrite("k", 2, entry{pin: "864209"}) }, false},
		"another slot was written just now": {func(m *memory) { m.finishWrite(2) }, false},
		"another slot is being cleared":     {func(m *memory) { m.noteClear(2) }, false},
		"another slot was written long ago": {func(m *memory) { m.writes = map[int]time.Time{2: time.Now().Add(-echoWindow)} }, true},
		"another slot was cleared just now": {func(m *memory) { m.noteClear(2); m.finishWrite(2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, event := range []int{codeDeleted, codeAdded} {
				a, s, n := knows(t, plainLock)
				n.codes.storeSlot(1, entry{}, true)
				test.happen(&n.codes)
				a.hear(s, fmt.Sprintf(noticeOf2, event, `{}`))
				if touched := !n.codes.touched[1].IsZero(); touched != test.touched || !n.codes.allUncertain {
					t.Errorf(
						"event %d: slot 1 was changed: %v, all uncertain: %v",
						event,
						touched,
						n.codes.allUncertain,
					)
				}
			}
		})
	}
}

// Events of the registry as zwave-js passes them on (core, registries/Notifications.js): with "user ID", for unknown
// command classes, and without a user.
func TestNotifications(t *testing.T) {
	t.Parallel()
	const noUser = `{}`
	used := func(user, kind, slot int) string {
		return fmt.Sprintf(`{"type":"Buffer","data":[0,%d,1,%d,0,%d]}`, user, kind, slot)
	}
	for name, test := range map[string]struct {
		lock, parameters string
		event            int
		want             adapter.Event // kind, code, and operation; no kind: no event
	}{
		"locked with a user code": {
			plainLock, `{"user ID":3}`, 33,
			adapter.Event{
				Kind: adapter.LockOperated, Code: "3",
				Operation: adapter.Operation{Locked: true, Method: adapter.ByKeycode},
			},
		},
		"unlocked with a user code": {
			plainLock, `{"user ID":3}`, 34,
			adapter.Event{
				Kind: adapter.LockOperated, Code: "3",
				Operation: adapter.Operation{Method: adapter.ByKeycode},
			},
		},
		"locked with a PIN": {
			namedLock, used(7, 1, 4), 35,
			adapter.Event{
				Kind: adapter.LockOperated, Code: "4",
				Operation: adapter.Operation{Locked: true, Method: adapter.ByKeycode},
			},
		},
		"unlocked with a PIN": {
			namedLock, used(7, 1, 4), 36,
			adapter.Event{
				Kind: adapter.LockOperated, Code: "4",
				Operation: adapter.Operation{Method: adapter.ByKeycode},
			},
		},
		"unlocked with a card": {
			namedLock, used(7, 3, 4), 36,
			adapter.Event{Kind: adapter.LockOperated, Operation: adapter.Operation{Method: adapter.ByCard}},
		},
		"unlocked with a finger": {
			namedLock, used(7, 9, 4), 36,
			adapter.Event{Kind: adapter.LockOperated, Operation: adapter.Operation{Method: adapter.ByUnknown}},
		},
		"unlocked with a card and a PIN": {
			namedLock, `{"type":"Buffer","data":[0,7,2,3,0,9,1,0,4]}`, 36,
			adapter.Event{
				Kind: adapter.LockOperated, Code: "4",
				Operation: adapter.Operation{Method: adapter.ByKeycode},
			},
		},
		"unlocked with what is not said": {
			namedLock, noUser, 36,
			adapter.Event{Kind: adapter.LockOperated, Operation: adapter.Operation{Method: adapter.ByUnknown}},
		},
		"unlocked with what is cut off": {
			namedLock, `{"type":"Buffer","data":[0,7,3,1,0]}`, 36,
			adapter.Event{Kind: adapter.LockOperated, Operation: adapter.Operation{Method: adapter.ByUnknown}},
		},
		"unlocked with no slot": {
			namedLock, used(7, 1, 0), 36,
			adapter.Event{Kind: adapter.LockOperated, Operation: adapter.Operation{Method: adapter.ByKeycode}},
		},
		"denied, the user is disabled": {
			namedLock, used(7, 1, 4), 47,
			adapter.Event{Kind: adapter.AccessDenied, Code: "4"},
		},
		"denied, it is not the time": {namedLock, used(7, 3, 4), 48, adapter.Event{Kind: adapter.AccessDenied}},
		"denied, it is not enough": {
			namedLock, used(7, 1, 4), 49,
			adapter.Event{Kind: adapter.AccessDenied, Code: "4"},
		},
		"denied, the credential is unknown": {namedLock, `null`, 50, adapter.Event{Kind: adapter.AccessDenied}},
		"not fully locked by hand": {
			plainLock, noUser, 7,
			adapter.Event{Kind: adapter.Jammed, Operation: adapter.Operation{Locked: true}},
		},
		"not fully locked remotely": {
			plainLock, noUser, 8,
			adapter.Event{Kind: adapter.Jammed, Operation: adapter.Operation{Locked: true}},
		},
		"not fully locked automatically": {
			plainLock, noUser, 10,
			adapter.Event{Kind: adapter.Jammed, Operation: adapter.Operation{Locked: true}},
		},
		"a code that is none": {plainLock, noUser, 32, adapter.Event{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s, _ := knows(t, test.lock)
			a.hear(s, fmt.Sprintf(noticeOf2, test.event, test.parameters))
			var got adapter.Event
			for _, e := range a.hinted() {
				if e.Kind != adapter.StatusChanged { // the bolt moved
					got = adapter.Event{
						Kind: e.Kind, Code: e.Code,
						Operation: adapter.Operation{Locked: e.Operation.Locked, Method: e.Operation.Method},
					}
				}
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
