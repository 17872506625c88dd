package zwavejs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// shownDoor returns the state of the door: open, closed, or empty if unknown.
func shownDoor(a *Adapter, n *node) string {
	switch open := a.device(n).DoorOpen; {
	case open == nil:
		return ""
	case *open:
		return "open"
	}
	return "closed"
}

// The values are those of zwave-js: doorStatus as captured, Door state from its registry of notifications.
func TestDoorState(t *testing.T) {
	t.Parallel()
	const (
		status = `{"commandClassName":"Door Lock","commandClass":98,"endpoint":0,"property":"doorStatus","newValue":%s,"prevValue":"open","propertyName":"doorStatus"}`
		state  = `{"commandClass":113,"endpoint":0,"property":"Access Control","propertyKey":"Door state","newValue":%s}`
	)
	old := strings.Replace(plainLock, `{"id":98,"version":4}`, `{"id":98,"version":3}`, 1)
	listed := strings.Replace(plainLock, `"values":[`,
		`"values":[{"commandClass":98,"endpoint":0,"property":"doorStatus","value":"open"},`, 1)
	for name, test := range map[string]struct {
		lock, value, new, want string
		changes                bool
	}{
		"unknown":                       {plainLock, status, `null`, "", false},
		"open":                          {plainLock, status, `"open"`, "open", true},
		"closed":                        {plainLock, status, `"closed"`, "closed", true},
		"listed, and still open":        {listed, status, `"open"`, "open", false},
		"listed, and closed":            {listed, status, `"closed"`, "closed", true},
		"listed, then nonsense":         {listed, status, `{"open":true}`, "open", false},
		"perhaps without a sensor":      {old, status, `"open"`, "", false},
		"opened":                        {old, state, `22`, "open", true},
		"opened in regular position":    {old, state, `5632`, "open", true},
		"opened in tilt position":       {old, state, `5633`, "open", true},
		"shut":                          {old, state, `23`, "closed", true},
		"another state of the variable": {old, state, `24`, "", false},
		"a state that is no number":     {old, state, `"open"`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s, n := knows(t, test.lock)
			a.hear(s, fmt.Sprintf(valueOf2, fmt.Sprintf(test.value, test.new)))
			changed := len(of(adapter.StatusChanged, a.hinted())) == 1
			if got := shownDoor(a, n); got != test.want || changed != test.changes {
				t.Errorf("the door is %q, changed: %v; want %q, %v", got, changed, test.want, test.changes)
			}
		})
	}
}

// Home Security of zwave-js' registry of notifications: a removed cover is a state, the others are events.
func TestTampering(t *testing.T) {
	t.Parallel()
	const (
		cover = `{"type":"event","event":{"source":"node","nodeId":2,"event":"value updated","args":
			{"commandClass":113,"endpoint":0,"property":"Home Security","propertyKey":"Cover status","newValue":%d}}}`
		notice = `{"type":"event","event":{"source":"node","nodeId":2,"event":"notification","args":{"type":7,"event":%d,"parameters":{}}}}`
	)
	const isUncovered = `{"commandClass":113,"endpoint":0,"property":"Home Security","propertyKey":"Cover status","value":3}`
	uncovered := strings.Replace(plainLock, `"values":[`, `"values":[`+isUncovered+`,`, 1)
	for name, test := range map[string]struct {
		lock   string
		frames []string
		want   int
	}{
		"cover removed":                   {plainLock, []string{fmt.Sprintf(cover, 3)}, 1},
		"cover removed, and repeated":     {plainLock, []string{fmt.Sprintf(cover, 3), fmt.Sprintf(cover, 3)}, 1},
		"cover removed twice":             {plainLock, []string{fmt.Sprintf(cover, 3), fmt.Sprintf(cover, 0), fmt.Sprintf(cover, 3)}, 2},
		"cover removed when it was found": {uncovered, []string{fmt.Sprintf(cover, 3)}, 0},
		"invalid codes":                   {plainLock, []string{fmt.Sprintf(notice, 4)}, 1},
		"product moved":                   {plainLock, []string{fmt.Sprintf(notice, 9)}, 1},
		"motion":                          {plainLock, []string{fmt.Sprintf(notice, 8)}, 0},
		"glass breakage":                  {plainLock, []string{fmt.Sprintf(notice, 6)}, 0},
		"an event of Access Control":      {plainLock, []string{fmt.Sprintf(noticeOf2, 9, `{}`)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s, n := knows(t, test.lock)
			for _, frame := range test.frames {
				a.hear(s, frame)
			}
			told := of(adapter.Tampered, a.hinted())
			if len(told) != test.want || len(told) > 0 && (told[0].Device != n.ref || told[0].Operation.At.IsZero()) {
				t.Errorf("events %+v, want %d", told, test.want)
			}
		})
	}
}

func TestModelFacts(t *testing.T) {
	t.Parallel()
	powered := strings.Replace(plainLock, `"ready":true`, `"ready":true,"isListening":true`, 1)
	silent := strings.Replace(plainLock, `{"id":113,"version":8},`, ``, 1)
	for name, test := range map[string]struct {
		lock            string
		powered, events bool
	}{
		"a lock with a battery":          {plainLock, false, true},
		"a lock with another supply":     {powered, true, true},
		"a lock that reports operations": {plainLock, false, true},
		"a lock that reports nothing":    {silent, false, false},
	} {
		a, _, n := knows(t, test.lock)
		c := a.device(n).Capabilities
		if *c.DirectPower != test.powered || *c.EntryEvents != test.events {
			t.Errorf("%s: direct power %v, events %v", name, *c.DirectPower, *c.EntryEvents)
		}
	}
}
