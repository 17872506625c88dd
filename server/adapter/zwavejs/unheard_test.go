package zwavejs_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/labs/zwave"
)

// TestBoltMovedWhileNobodyListenedIsTold: what has moved it is not known any more, where it is now is.
func TestBoltMovedWhileNobodyListenedIsTold(t *testing.T) {
	t.Parallel()
	h := sharedHouse(t, lab.Plain)
	h.ByHand(t, false)
	until(t, "the bolt is shown open", func() bool {
		d, err := h.adapter.Device(t.Context(), h.device)
		return err == nil && d.Locked != nil && !*d.Locked
	})
	h.relay.set(func(r *relay) { r.refuse = http.StatusServiceUnavailable })
	h.relay.disconnect()
	until(t, "the gateway is out of reach", func() bool {
		_, err := h.adapter.Device(t.Context(), h.device)
		return err != nil
	})
	h.ByHand(t, true)
	h.relay.set(func(r *relay) { r.refuse = 0 })
	limit := time.After(within)
	for {
		select {
		case e := <-h.adapter.Events():
			if e.Kind == adapter.LockOperated && e.Device == h.device && e.Operation.Locked {
				return
			}
		case <-limit:
			t.Fatal("nobody was told that the bolt was moved")
		}
	}
}
