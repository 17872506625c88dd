package zigbee2mqtt

import (
	"cmp"
	"encoding/json"
)

// wireInfo is the relevant part of bridge/info.
type wireInfo struct {
	Coordinator struct {
		IEEE string `json:"ieee_address"`
	} `json:"coordinator"`
	Config struct {
		Advanced struct {
			Output string `json:"output"`
		} `json:"advanced"`
		Devices       ownOptions   `json:"devices"`
		DeviceOptions wireOptions  `json:"device_options"`
		Availability  availability `json:"availability"`
	} `json:"config"`
}

type wireOptions struct {
	ExposePIN    *bool        `json:"expose_pin"`
	Availability availability `json:"availability"`
}

// availability is the setting of the availability feature (zigbee2mqtt.io, guide "Device availability"): a boolean,
// or an object, which in version 2 contains the boolean "enabled".
type availability string

const (
	untold availability = ""
	isOn   availability = "on"
	isOff  availability = "off"
)

// UnmarshalJSON implements json.Unmarshaler. Unknown forms count as unset.
func (a *availability) UnmarshalJSON(data []byte) error {
	var settings *struct {
		Enabled *bool `json:"enabled"`
	}
	var on *bool
	switch {
	case json.Unmarshal(data, &on) == nil && on != nil:
	case json.Unmarshal(data, &settings) == nil && settings != nil:
		on = cmp.Or(settings.Enabled, new(true))
	default:
		*a = untold
		return nil
	}
	*a = isOff
	if *on {
		*a = isOn
	}
	return nil
}

// ownOptions holds the individual options of devices by address, at most maxSettings of them.
type ownOptions map[string]wireOptions

// UnmarshalJSON implements json.Unmarshaler.
func (e *ownOptions) UnmarshalJSON(data []byte) error {
	*e = ownOptions{}
	return members(data, func(address string, value *json.Decoder) error {
		var o wireOptions
		if err := value.Decode(&o); err != nil {
			return err
		}
		if o != (wireOptions{}) && ieee(address) != "" && len(*e) < maxSettings {
			(*e)[address] = o
		}
		return nil
	})
}

func readInfo(payload []byte) (w wireInfo, ok bool) {
	if json.Unmarshal(payload, &w) != nil {
		return wireInfo{}, false
	}
	w.Coordinator.IEEE, w.Config.Advanced.Output = ieee(
		w.Coordinator.IEEE,
	), brief(
		w.Config.Advanced.Output,
		maxTextSize,
	)
	return w, true
}

// exposesPIN reports whether Zigbee2MQTT publishes the PINs of a lock.
func (w wireInfo) exposesPIN(ieee string) bool {
	exposes := cmp.Or(w.Config.Devices[ieee].ExposePIN, w.Config.DeviceOptions.ExposePIN)
	return exposes != nil && *exposes
}

// watches reports whether Zigbee2MQTT publishes the availability of a lock. When that is switched off, the broker
// retains the last published value.
func (w wireInfo) watches(ieee string) bool {
	return cmp.Or(w.Config.Devices[ieee].Availability, w.Config.DeviceOptions.Availability,
		w.Config.Availability) != isOff
}
