package adapter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Events that reading would not reveal survive a flood of other events.
func TestEventQueue_KeepsRemovals(t *testing.T) {
	t.Parallel()
	h := adapter.NewEventQueue()
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "first"})
	h.Send(adapter.Event{Kind: adapter.LockOperated, Device: "first"})
	h.Send(adapter.Event{Kind: adapter.AccessDenied, Device: "first"})
	h.Send(adapter.Event{Kind: adapter.Jammed, Device: "first"})
	for range 1000 {
		h.Send(adapter.Event{Kind: adapter.CodesChanged, Device: "busy"})
	}
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "last"})
	h.Close()
	var removed []adapter.DeviceRef
	resync, operations := false, 0
	for e := range h.Events() {
		resync = resync || e.Kind == adapter.Resync
		operations += strings.Count("lock_operated access_denied jammed", string(e.Kind))
		if e.Kind == adapter.DeviceRemoved {
			removed = append(removed, e.Device)
		}
	}
	if len(removed) != 2 || removed[0] != "first" || removed[1] != "last" || !resync || operations != 3 {
		t.Fatalf("removals %v, %d operations, resync: %v", removed, operations, resync)
	}
}

// Of the events that reading would not reveal, operations are dropped before removals.
func TestEventQueue_DropsOperationsBeforeRemovals(t *testing.T) {
	t.Parallel()
	h := adapter.NewEventQueue()
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "first"})
	for range 1000 {
		h.Send(adapter.Event{Kind: adapter.LockOperated, Device: "busy"})
	}
	h.Send(adapter.Event{Kind: adapter.LockOperated, Device: "last"})
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "last"})
	h.Close()
	var removed []adapter.DeviceRef
	resync, operated, last := false, 0, false
	for e := range h.Events() {
		switch e.Kind {
		case adapter.DeviceRemoved:
			removed = append(removed, e.Device)
		case adapter.LockOperated:
			operated++
			last = last || e.Device == "last"
		case adapter.Resync:
			resync = true
		}
	}
	if !slices.Equal(removed, []adapter.DeviceRef{"first", "last"}) || !resync || operated < 200 || !last {
		t.Fatalf("removals %v, %d operations, including the last: %v, resync: %v", removed, operated, last, resync)
	}
}
