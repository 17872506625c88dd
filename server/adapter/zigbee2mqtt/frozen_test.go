package zigbee2mqtt_test

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// A stopped process keeps its connections; only its silence reveals it.
func TestFrozenGatewayIsDetected(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]struct {
		freeze, thaw func(*zigbee.Gateway, testing.TB)
		want         string
	}{
		"zigbee2mqtt": {(*zigbee.Gateway).Freeze, (*zigbee.Gateway).Thaw, "hangs"},
		"the broker":  {(*zigbee.Gateway).FreezeBroker, (*zigbee.Gateway).ThawBroker, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := zigbee.Start(t, zigbee.Plain)
			b := onGateway(t, g, g.Lease(t, zigbee.Plain))
			ref := b.put("kept", "60216021")
			others := b.lock.State(t).Codes
			hang.freeze(g, t)
			spec := adapter.CodeSpec{Key: "during", PIN: "81428142"}
			if _, err := b.PutCode(t.Context(), b.ref, spec); err == nil || !adapter.ClassOf(err).Retryable() {
				t.Errorf("a code is put: %v", err)
			}
			b.until("it is detected", func() bool {
				_, err := b.Devices(t.Context())
				return err != nil && adapter.ClassOf(err) == adapter.GatewayDown &&
					strings.Contains(err.Error(), hang.want)
			})
			if _, err := b.DeleteCode(t.Context(), b.ref, ref); adapter.ClassOf(err) != adapter.GatewayDown {
				t.Errorf("a code is deleted: %v", err)
			}
			drain(b.Events())
			hang.thaw(g, t)
			resynced := false
			b.until("the lock is read again, and a Resync is sent", func() bool {
				resynced = resynced || drain(b.Events())
				codes, err := b.Codes(t.Context(), b.ref, true)
				return resynced && err == nil && !codes.Stale
			})
			b.until("the code can be put", func() bool {
				_, err := b.PutCode(t.Context(), b.ref, spec)
				return err == nil
			})
			n, has := 0, b.lock.State(t).Codes
			for _, pin := range has {
				if pin == spec.PIN {
					n++
				}
			}
			if n != 1 || len(has) != len(others)+1 || b.codes()[ref] != "60216021" {
				t.Errorf("the code exists %d times on the lock, which has %d codes", n, len(has))
			}
		})
	}
}

// drain consumes the waiting events, and reports whether one of them is a Resync.
func drain(events <-chan adapter.Event) (resync bool) {
	for {
		select {
		case e := <-events:
			resync = resync || e.Kind == adapter.Resync
		default:
			return resync
		}
	}
}
