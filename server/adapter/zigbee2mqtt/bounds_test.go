package zigbee2mqtt

import (
	"fmt"
	"strings"
	"testing"
)

// A broker may send settings of any number of devices.
func TestStoredSettingsAreLimited(t *testing.T) {
	t.Parallel()
	a, _ := strange(t, nil)
	var info strings.Builder
	info.WriteString(
		`{"coordinator":{"ieee_address":"0x1"},"config":{"advanced":{"output":"attribute"},"device_options":{"expose_pin":true,"retain":true},"devices":{`,
	)
	info.WriteString(
		`"0xa":{"friendly_name":"front door","expose_pin":false},"0xb":{"friendly_name":"back door"},"0xc":{"expose_pin":null}`,
	)
	for n := range 100_000 {
		fmt.Fprintf(&info, `,"0x%d":null`, n)
	}
	for n := range 20_000 {
		fmt.Fprintf(&info, `,"0x%064d":{"expose_pin":false}`, n)
	}
	for n := range 2000 {
		fmt.Fprintf(&info, `,"0xd%d":{"expose_pin":false}`, n)
	}
	info.WriteString(`}}}`)
	a.receive("z/bridge/info", []byte(info.String()), true)
	if !a.bridge.known || a.bridge.info.Config.Advanced.Output != "attribute" {
		t.Error("the settings are ignored")
	}
	for ieee, want := range map[string]bool{
		"0xa": false, "0xb": true, "0xc": true, "0xe": true, "0xd0": false,
		"0xd1999": true,
	} {
		if got := a.bridge.info.exposesPIN(ieee); got != want {
			t.Errorf("%s: exposes PINs: %v", ieee, got)
		}
	}
	if size := sizeOf(&a.bridge); size > 200_000 {
		t.Errorf("%d bytes are kept", size)
	}
	for _, bad := range []string{`{"config":{"devices":[]}}`, `{"config":{"devices":{"0xa":{"expose_pin":"yes"}}}}`} {
		a.receive("z/bridge/info", []byte(bad), true)
		if a.bridge.info.exposesPIN("0xa") {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Each rejected PIN is stored.
func TestStoredRefusedPINsAreLimited(t *testing.T) {
	t.Parallel()
	l := newLock("0xa")
	for n := range 10_000 {
		if l.refuses(fmt.Sprint(n)) {
			t.Fatalf("%d was rejected earlier", n)
		}
	}
	if !l.refuses("9999") || len(l.refused) > maxRefused {
		t.Errorf("%d are stored", len(l.refused))
	}
}
