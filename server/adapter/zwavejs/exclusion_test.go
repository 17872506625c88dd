package zwavejs_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// Another lock of the same model with the identifier of an excluded one is another device. The event reports that; if
// it was missed, the serial number differs.
func TestExcludedLockIsRemoved(t *testing.T) {
	t.Parallel()
	g := lab.Start(t, lab.Plain, lab.Masked)
	h := newHouse(t, g.Lease(t, lab.Plain), g.URL)
	serial := func() string {
		var codes adapter.Codes
		until(t, "the lock is read", func() (ok bool) {
			var err error
			codes, err = h.adapter.Codes(t.Context(), h.device, true)
			return err == nil
		})
		d, err := h.adapter.Device(t.Context(), h.device)
		if err != nil || codes.SerialNumber == "" || codes.SerialNumber != d.SerialNumber {
			t.Fatalf("the codes are of %q, the device is %q, %v", codes.SerialNumber, d.SerialNumber, err)
		}
		return codes.SerialNumber
	}
	first := serial()

	h.Remove(t)
	until(t, "it is removed permanently", func() bool {
		_, err := h.adapter.Device(t.Context(), h.device)
		e := adapter.AsError(err)
		return e != nil && e.Class == adapter.NotFound && e.Gone
	})
	if devices, err := h.adapter.Devices(t.Context()); err != nil || len(devices) != 1 {
		t.Fatalf("%d locks are left, %v", len(devices), err)
	}
	for told := false; !told; {
		select {
		case e := <-h.adapter.Events():
			told = e.Kind == adapter.DeviceRemoved && e.Device == h.device && !e.At.IsZero()
		case <-t.Context().Done():
			t.Fatal("its removal is not reported")
		}
	}
	h.Include(t)
	second := serial()
	if second == first {
		t.Fatalf("another lock has the serial number %s, too", second)
	}

	h.relay.set(func(r *relay) { r.refuse = http.StatusServiceUnavailable })
	h.relay.disconnect()
	h.Remove(t)
	h.Include(t)
	h.relay.set(func(r *relay) { r.refuse = 0 })
	if third := serial(); third == second {
		t.Fatalf("another, unreported lock shows as %s, too", third)
	}
}

// A gateway with another stick has other locks for some time.
func TestLockOfAnotherNetworkMayReturn(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{}, nil)
	for device, gone := range map[adapter.DeviceRef]bool{
		"00000001/2/0129-0001-0600": false,
		"7e570001/9/0129-0001-0600": true,
	} {
		_, err := s.adapter.Device(t.Context(), device)
		if e := adapter.AsError(err); e == nil || e.Class != adapter.NotFound || e.Gone != gone {
			t.Errorf("%s: %v, removed permanently: %v", device, err, e.Gone)
		}
	}
}

// A gateway that has lost its cache knows a node, but not its type.
func TestReinterviewedLockIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{}, nil)
	s.reconnect(t, `{"nodeId":2,"status":1,"ready":false,"endpoints":[{"index":0,"commandClasses":[]}],"values":[]}`)
	until(t, "its interview is awaited", func() bool {
		_, err := s.adapter.Device(t.Context(), s.device)
		return err != nil && adapter.ClassOf(err) == adapter.Transient
	})
	s.interview(t, "")
	until(t, "it is listed again", func() bool {
		_, err := s.adapter.Device(t.Context(), s.device)
		return err == nil
	})
}
