package zigbee2mqtt_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// noteAlive waits until the adapter reports a change of the slot.
func heard(t *testing.T, a *zigbee2mqtt.Adapter, slot adapter.CodeRef) {
	t.Helper()
	for {
		select {
		case e := <-a.Events():
			if e.Kind == adapter.CodesChanged && e.Code == slot {
				return
			}
		case <-t.Context().Done():
			t.Fatal("the change is not reported")
		}
	}
}

// The response to a read and the report that it is outdated arrive together.
func TestChangeDuringReadIsReadAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, zigbee.Plain)
	direct := b.config
	direct.Broker = b.gateway.Broker
	witness, err := zigbee2mqtt.New(direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = witness.Close() })
	if _, err := witness.Devices(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pins := range [][2]string{{"60216021", "70317031"}, {"60216022", "70317032"}, {"60216023", "70317033"}} {
		b.lock.Program(t, 9, pins[0])
		heard(t, witness, "9")
		b.until("the slot must be read", func() bool {
			codes, err := b.Codes(t.Context(), b.ref, false)
			return err == nil && codes.Stale
		})
		b.proxy.mute(true)
		frames := b.lock.State(t).Frames
		read := make(chan error, 1)
		go func() {
			_, err := b.Codes(t.Context(), b.ref, true)
			read <- err
		}()
		b.until("the lock is read", func() bool { return b.lock.State(t).Frames > frames })
		b.lock.Program(t, 9, pins[1])
		heard(t, witness, "9")
		b.proxy.mute(false)
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		b.until("the code is read as it was changed", func() bool { return b.codes()["9"] == pins[1] })
	}
}
