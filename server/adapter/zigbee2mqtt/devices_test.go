package zigbee2mqtt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// lockListed is a lock in the list of Zigbee2MQTT.
func lockListed(ieee, name, vendor string) string {
	return fmt.Sprintf(
		`{"ieee_address":%q,"type":"EndDevice","friendly_name":%q,"network_address":7,"endpoints":{"1":{"clusters":{"input":["closuresDoorLock"]}}},
		"definition":{"model":%q,"vendor":%[3]q,"exposes":[{"type":"lock","features":[{"property":"state","access":7}]},{"type":"composite","property":"pin_code","access":7}]}}`,
		ieee,
		name,
		vendor,
	)
}

// stateKnown is an adapter without a connection that has received a list of locks with visible PINs.
func told(t *testing.T, locks ...string) *Adapter {
	t.Helper()
	a := idle(Config{Topic: "z"})
	t.Cleanup(a.cancel)
	a.receive("z/bridge/info", []byte(`{"config":{"device_options":{"expose_pin":true}}}`), true)
	a.list(locks...)
	return a
}

func (a *Adapter) list(locks ...string) {
	a.receive("z/bridge/devices", []byte("["+strings.Join(locks, ",")+"]"), true)
}

// Known locks stay, independent of the order of the list.
func TestLocksPerNetworkAreLimited(t *testing.T) {
	t.Parallel()
	var first, others []string
	for n := range 300 {
		first = append([]string{lockListed(fmt.Sprintf("0xa%d", n), fmt.Sprintf("first %d", n), "V")}, first...)
	}
	for n := range 700 {
		others = append(others, lockListed(fmt.Sprintf("0xb%d", n), fmt.Sprintf("other %d", n), "V"))
	}
	a := told(t, first...)
	known := a.locks["0xa7"]
	if len(a.locks) != 300 || known == nil {
		t.Fatalf("%d locks", len(a.locks))
	}
	a.list(append(others, append(first, first...)...)...)
	if len(a.locks) != 500 || a.locks["0xa7"] != known {
		t.Errorf("with others first: %d locks, including the known one: %v", len(a.locks), a.locks["0xa7"] == known)
	}
	a.list(append(others, lockListed("0xa7", "another name", "V"))...)
	if len(a.locks) != 500 || known.name != "another name" {
		t.Errorf("among %d locks, the name of the known one is %q", len(a.locks), known.name)
	}
	a.list(others...)
	if len(a.locks) != 500 || a.locks["0xa7"] != nil || a.locks["0xb0"] == nil {
		t.Errorf("only others: %d locks", len(a.locks))
	}
	a.list(first...)
	if len(a.locks) != 300 {
		t.Errorf("below the limit: %d locks", len(a.locks))
	}
}

func TestStoredLockIsLimited(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	a := told(t, lockListed("0xa", "front door", long), lockListed("0xb", long, "V"),
		lockListed(long, "back door", "V"), lockListed("", "side door", "V"))
	if len(a.locks) != 1 || a.locks["0xa"] == nil {
		t.Errorf("%d locks", len(a.locks))
	}
	for ref := range a.locks {
		d := a.device(a.locks[ref])
		if !utf8.ValidString(d.Manufacturer+d.Model) || len(d.Manufacturer) != 100 || len(d.Model) != 100 {
			t.Errorf("%d bytes of the vendor, %d of the model", len(d.Manufacturer), len(d.Model))
		}
	}
	if size := sizeOf(&a.locks); size > 10_000 {
		t.Errorf("%d bytes are kept", size)
	}
}

func TestEndpointsAreLimited(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for n := range maxExposedCommas + 2 {
		fmt.Fprintf(&many, `"%d":null,`, n)
	}
	for text, want := range map[string]int{
		`{"endpoints":{"1":{"clusters":{"input":["closuresDoorLock"]}},"2":{}}}`: 2,
		`{"endpoints":{` + many.String() + `"x":null}}`:                          0,
		`{"endpoints":null}`: 0,
	} {
		var got wireDevice
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Endpoints) != want {
			t.Errorf("%.60s: %d, %v", text, len(got.Endpoints), err)
		}
	}
}

// The identity of the network is stored and sent to Config.CheckGateway.
func TestCoordinatorAddress(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 65)
	for name, c := range map[string]struct{ info, devices, want string }{
		"one of a coordinator": {`{"coordinator":{"ieee_address":"0xA"}}`, `[]`, "0xa"},
		"one that is too long": {
			`{"coordinator":{"ieee_address":"` + long + `"}}`,
			`[{"ieee_address":"0xA","type":"Coordinator"}]`, "0xa",
		},
		"among the devices": {`{}`, `[{"ieee_address":"` + long + `","type":"Coordinator"}]`, ""},
	} {
		a := idle(Config{Topic: "z"})
		a.receive("z/bridge/info", []byte(c.info), true)
		a.receive("z/bridge/devices", []byte(c.devices), true)
		if got, known := a.bridge.coordinators.gateway(); !known || got != c.want {
			t.Errorf("%s: %q, %v", name, got, known)
		}
		a.cancel()
	}
}

// The availability is published by name, before and after the list of locks.
func TestAvailabilityByName(t *testing.T) {
	t.Parallel()
	a := told(t)
	a.receive("z/front door/availability", []byte(`{"state":"offline"}`), true)
	a.list(lockListed("0xa", "front door", "V"), lockListed("0xb", "back door", "V"))
	for ref, want := range map[adapter.DeviceRef]bool{"0xa": false, "0xb": true} {
		if a.locks[ref].online() != want {
			t.Errorf("%s is online: %v", ref, !want)
		}
	}
}
