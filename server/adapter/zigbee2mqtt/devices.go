package zigbee2mqtt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// wireDevice is one of bridge/devices (zigbee2mqtt.io, guide "MQTT topics and messages").
type wireDevice struct {
	IEEE       string    `json:"ieee_address"`
	Type       string    `json:"type"`
	Name       string    `json:"friendly_name"`
	Disabled   bool      `json:"disabled"`
	Network    int       `json:"network_address"`
	Endpoints  endpoints `json:"endpoints"`
	Definition *struct {
		Model       string      `json:"model"`
		Vendor      string      `json:"vendor"`
		Description string      `json:"description"`
		Exposes     few[expose] `json:"exposes"`
	} `json:"definition"` // null until the device is known
}

// endpoints are those of a device, none where there are more than one has.
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
	type plain *endpoints // without this method
	return json.Unmarshal(data, plain(e))
}

const doorLock = "closuresDoorLock"

// address is where in the network a lock is.
type address struct{ Network, Endpoint int }

// address is that of the lock in a device; its endpoint is 0 where it has none.
func (d wireDevice) address() address {
	at := address{Network: d.Network}
	for name, e := range d.Endpoints {
		if n, err := strconv.Atoi(name); err == nil && slices.Contains(e.Clusters.Input, doorLock) && (at.Endpoint == 0 || n < at.Endpoint) {
			at.Endpoint = n
		}
	}
	return at
}

// expose is what a device can do. The bits of Access: 1 it is published, 2 it can be set, 4 it can be asked for.
type expose struct {
	feature
	Type     string       `json:"type"`
	Features few[feature] `json:"features"`
}

// feature is a part of what a device can do. What it may have in it in turn is nothing to us: were each level read by itself,
// a few kilobytes of brackets would take seconds.
type feature struct {
	Property string `json:"property"`
	Access   int    `json:"access"`
}

// few is what a device can do, nothing where there is more than one has: each is larger in memory than the few bytes
// that it may be written with.
type few[T any] []T

const mostExposed = 20_000 // commas in it; a lock's has some hundred

func tooMany(data []byte) bool { return bytes.Count(data, []byte(",")) > mostExposed }

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

// abilities are what a lock's exposes say.
type abilities struct {
	lock      bool // it is a lock at all
	bolt      bool // it can be locked and unlocked
	set, read bool // its codes can be set, asked for
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
		}
	}
	return a
}

// listed is a lock as Zigbee2MQTT lists it.
type listed struct {
	ref adapter.DeviceRef
	traits
	address address
}

// traits are what a lock is.
type traits struct {
	name, vendor, model string
	able                abilities
	disabled            bool // in Zigbee2MQTT
}

// wireDevices are what matters of bridge/devices.
type wireDevices struct {
	locks       []listed
	undefined   map[adapter.DeviceRef]string // the names of those that are not listed as locks: of what is interviewed nobody says what it is
	coordinator string                       // its address; empty: it is not there
}

// UnmarshalJSON implements json.Unmarshaler. It keeps no more than the name of what is no lock: each device is far larger in memory
// than what it may be written with.
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
			return errors.New("the list has a device that is null")
		}
		if one.Type == "Coordinator" && !found {
			found, w.coordinator = true, ieee(one.IEEE)
		}
		switch l, ok := one.lock(); {
		case ok:
			w.locks = append(w.locks, l)
		case one.Type != "Coordinator" && ieee(one.IEEE) != "" && len(one.Name) <= longestName && len(w.undefined) < mostUndefined:
			w.undefined[adapter.DeviceRef(one.IEEE)] = cmp.Or(one.Name, one.IEEE)
		}
	}
	return nil
}

// ieee is an address, empty where it is none.
func ieee(address string) string {
	if len(address) > longestAddress {
		return ""
	}
	return address
}

// lock is what is kept of a lock; false: it is none, or cannot be spoken of or to. One without a name is called by its address, as
// Zigbee2MQTT does.
func (d *wireDevice) lock() (l listed, ok bool) {
	if d.Definition == nil || ieee(d.IEEE) == "" || len(d.Name) > longestName {
		return l, false
	}
	able := abilitiesOf(d.Definition.Exposes)
	return listed{adapter.DeviceRef(d.IEEE), traits{cmp.Or(d.Name, d.IEEE), brief(d.Definition.Vendor, mostText), brief(d.Definition.Model, mostText), able, d.Disabled}, d.address()}, able.lock
}
