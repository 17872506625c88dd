package adapter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// What no look would find out is not lost where nobody reads for a while.
func TestRemovalsOutliveAFlood(t *testing.T) {
	t.Parallel()
	h := adapter.NewHints()
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
		t.Fatalf("told of %v, %d operations, and that anything may have changed: %v", removed, operations, resync)
	}
}

// Of what no look would find out, somebody at a door gives way to a device that has left.
func TestRemovalsOutliveWhatWasDoneAtDoors(t *testing.T) {
	t.Parallel()
	h := adapter.NewHints()
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
		t.Fatalf("told of %v, of %d operations, the last among them: %v, and that anything may have changed: %v", removed, operated, last, resync)
	}
}
