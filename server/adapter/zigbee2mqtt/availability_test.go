package zigbee2mqtt

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// When the availability feature is switched off, the broker retains the last published availability forever.
func TestDisabledAvailabilityIsIgnored(t *testing.T) {
	t.Parallel()
	for info, online := range map[string]bool{
		`{}`:                                false,
		`{"availability":{"enabled":true}}`: false,
		`{"availability":{"active":{"timeout":10}}}`: false, // before version 2
		`{"availability":true}`:                      false,
		`{"availability":null}`:                      false,
		`{"availability":"sometimes"}`:               false,
		`{"availability":{"enabled":false}}`:         true,
		`{"availability":false}`:                     true,
		`{"availability":{"enabled":true},"devices":{"0xa":{"availability":false}}}`:          true,
		`{"availability":{"enabled":true},"devices":{"0xb":{"availability":false}}}`:          false,
		`{"availability":{"enabled":false},"devices":{"0xa":{"availability":{"timeout":5}}}}`: false,
		`{"availability":{"enabled":false},"devices":{"0xa":{"availability":null}}}`:          true,
		`{"availability":{"enabled":true},"device_options":{"availability":false}}`:           true,
		`{"availability":{"enabled":false},"devices":{"0xa":{"expose_pin":true}}}`:            true,
		`{"device_options":{"availability":false},"devices":{"0xa":{"availability":true}}}`:   false,
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			a := told(t, lockListed("0xa", "front door", "V"))
			for _, n := range order {
				[]func(){
					func() { a.receive("z/front door/availability", []byte(`{"state":"offline"}`), true) },
					func() { a.receive("z/bridge/info", []byte(`{"config":`+info+`}`), true) },
				}[n]()
			}
			if got := a.locks["0xa"].online(); got != online {
				t.Errorf("%s: online %v", info, got)
			}
		}
	}
}

// A retained availability is deleted at the broker.
func TestDeletedAvailabilityIsIgnored(t *testing.T) {
	t.Parallel()
	a := told(t, lockListed("0xa", "front door", "V"))
	a.receive("z/front door/availability", []byte(`{"state":"offline"}`), true)
	if a.locks["0xa"].online() {
		t.Fatal("it is online")
	}
	a.heardOf()
	a.receive("z/front door/availability", nil, false)
	if !a.locks["0xa"].online() || !slices.Contains(a.heardOf(), adapter.DeviceOnline) {
		t.Error("it is still offline, or no event was sent")
	}
	a.list(lockListed("0xa", "front door", "V"))
	if !a.locks["0xa"].online() {
		t.Error("it is offline again")
	}
}
