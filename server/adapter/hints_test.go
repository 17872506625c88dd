package adapter_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// What no look would find out is not lost where nobody reads for a while.
func TestRemovalsOutliveAFlood(t *testing.T) {
	t.Parallel()
	h := adapter.NewHints()
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "first"})
	for range 1000 {
		h.Send(adapter.Event{Kind: adapter.CodesChanged, Device: "busy"})
	}
	h.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: "last"})
	h.Close()
	var removed []adapter.DeviceRef
	resync := false
	for e := range h.Events() {
		resync = resync || e.Kind == adapter.Resync
		if e.Kind == adapter.DeviceRemoved {
			removed = append(removed, e.Device)
		}
	}
	if len(removed) != 2 || removed[0] != "first" || removed[1] != "last" || !resync {
		t.Fatalf("told of %v, and that anything may have changed: %v", removed, resync)
	}
}
