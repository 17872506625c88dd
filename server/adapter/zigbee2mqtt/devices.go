package zigbee2mqtt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// wireDevice is a device in bridge/devices (zigbee2mqtt.io, guide "MQTT topics and messages").
type wireDevice struct {
	IEEE       string    `json:"ieee_address"`
	Type       string    `json:"type"`
	Name       string    `json:"friendly_name"`
	Disabled   bool      `json:"disabled"`
	Network    int       `json:"network_address"`
	Power      string    `json:"power_source"`
	Endpoints  endpoints `json:"endpoints"`
	Definition *struct {
		Model       string      `json:"model"`
		Vendor      string      `json:"vendor"`
		Description string      `json:"description"`
		Exposes     few[expose] `json:"exposes"`
	} `json:"definition"` // null until the device is interviewed
}

// endpoints are the endpoints of a device; empty when there are implausibly many.
type endpoints map[string]struct {
	Clusters struct {
		Input adapter.List[string] `json:"input"`
	} `json:"clusters"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *endpoints) UnmarshalJSON(data []byte) error {
	if tooMany(data) {
		*e = nil
		return nil
	}
	type plain *endpoints // has no UnmarshalJSON
	return json.Unmarshal(data, plain(e))
}

const doorLock = "closuresDoorLock"

// address is the location of a lock in the network.
type address struct{ Network, Endpoint int }

// address returns the address of the lock in a device; Endpoint is 0 if there is none.
func (d wireDevice) address() address {
	at := address{Network: d.Network}
	for name, e := range d.Endpoints {
		if n, err := strconv.Atoi(name); err == nil && slices.Contains(e.Clusters.Input, doorLock) &&
			(at.Endpoint == 0 || n < at.Endpoint) {
			at.Endpoint = n
		}
	}
	return at
}

// expose is a capability of a device. The bits of Access: 1 published, 2 settable, 4 gettable.
type expose struct {
	feature
	Type     string       `json:"type"`
	Features few[feature] `json:"features"`
}

// feature is a part of a capability. Nested features are ignored: decoding each level would take seconds for a few
// kilobytes of brackets.
type feature struct {
	Name     string         `json:"name"` // the property without its endpoint
	Property string         `json:"property"`
	Access   int            `json:"access"`
	Unit     string         `json:"unit"`
	Min      adapter.Number `json:"value_min"`
	Max      adapter.Number `json:"value_max"`
	Step     adapter.Number `json:"value_step"`
	Values   words          `json:"values"`
}

// few is a list of capabilities, empty when there are implausibly many: an element takes more memory than the few
// bytes that encode it.
type few[T any] []T

// maxExposedCommas is in commas of the JSON text; a lock has some hundred.
const maxExposedCommas = 20_000

func tooMany(data []byte) bool { return bytes.Count(data, []byte(",")) > maxExposedCommas }

// UnmarshalJSON implements json.Unmarshaler.
func (e *few[T]) UnmarshalJSON(data []byte) error {
	if tooMany(data) {
		*e = nil
		return nil
	}
	return json.Unmarshal(data, (*[]T)(e))
}

const (
	canSet = 2
	canGet = 4
)

// abilities are the capabilities that a lock exposes.
type abilities struct {
	lock       bool // the device is a lock
	bolt       bool // the bolt can be moved
	set, read  bool // codes can be set and read
	operations bool // operations at the lock are reported with their user
}

func abilitiesOf(all []expose) (a abilities) {
	for _, e := range all {
		switch {
		case e.Type == "lock":
			a.lock = true
			for _, f := range e.Features {
				a.bolt = a.bolt || (f.Property == "state" && f.Access&canSet != 0)
			}
		case e.Property == "pin_code" && e.Type == "composite":
			a.set, a.read = e.Access&canSet != 0, e.Access&canGet != 0
		case e.Property == "action_user":
			a.operations = true
		}
	}
	return a
}

// listed is a lock or a thermostat in the list of Zigbee2MQTT.
type listed struct {
	ref adapter.DeviceRef
	traits
	address address
	// climate describes a thermostat; nil for a lock. It is replaced, never modified.
	climate *climate
}

// traits are the properties of a device that rarely change.
type traits struct {
	name, vendor, model string
	able                abilities
	disabled            bool  // in Zigbee2MQTT
	directPower         *bool // nil if unknown
}

// wireDevices is the relevant part of bridge/devices.
type wireDevices struct {
	locks []listed
	// undefined holds the names of devices that are not listed as locks or thermostats. Their interview may be running.
	undefined map[adapter.DeviceRef]string
	// coordinator is the address of the coordinator; empty if missing.
	coordinator string
}

// UnmarshalJSON implements json.Unmarshaler. Of other devices it keeps only the name, because a decoded device takes
// far more memory than its JSON.
func (w *wireDevices) UnmarshalJSON(data []byte) error {
	*w = wireDevices{undefined: map[adapter.DeviceRef]string{}}
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(err, &json.UnmarshalTypeError{Value: "value", Offset: d.InputOffset()})
	}
	found := false
	for d.More() {
		var one *wireDevice
		if err := d.Decode(&one); err != nil {
			return err
		}
		if one == nil {
			return errors.New("the list contains null")
		}
		if one.Type == "Coordinator" && !found {
			found, w.coordinator = true, ieee(one.IEEE)
		}
		switch l, ok := one.lock(); {
		case ok:
			w.locks = append(w.locks, l)
		case one.Type != "Coordinator" && ieee(one.IEEE) != "" && len(one.Name) <= maxNameSize &&
			len(w.undefined) < maxUndefined:
			w.undefined[adapter.DeviceRef(one.IEEE)] = cmp.Or(one.Name, one.IEEE)
		}
	}
	return nil
}

// ieee returns an IEEE address, or empty if it is not one.
func ieee(address string) string {
	if len(address) > maxAddressSize {
		return ""
	}
	return address
}

// lock returns the lock or the thermostat in a device, and false if the device is neither or cannot be addressed. A
// device without a name is named by its address, as in Zigbee2MQTT.
func (d *wireDevice) lock() (l listed, ok bool) {
	if d.Definition == nil || ieee(d.IEEE) == "" || len(d.Name) > maxNameSize {
		return l, false
	}
	able := abilitiesOf(d.Definition.Exposes)
	if !able.lock {
		l.climate = climateOf(d.Definition.Exposes)
	}
	return listed{
		climate: l.climate,
		ref:     adapter.DeviceRef(d.IEEE),
		traits: traits{
			name:        cmp.Or(d.Name, d.IEEE),
			vendor:      brief(d.Definition.Vendor, maxTextSize),
			model:       brief(d.Definition.Model, maxTextSize),
			able:        able,
			disabled:    d.Disabled,
			directPower: directPower(d.Power),
		},
		address: d.address(),
	}, able.lock || l.climate != nil
}

// directPower reports whether a power_source, which is that of the Zigbee specification, is another than a battery. It
// returns nil for an unknown one.
func directPower(source string) *bool {
	switch {
	case source == "Battery":
		return new(false)
	case source == "DC Source", strings.HasPrefix(source, "Mains"), strings.HasPrefix(source, "Emergency mains"):
		return new(true)
	}
	return nil
}
