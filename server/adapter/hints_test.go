package adapter_test

import (
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
