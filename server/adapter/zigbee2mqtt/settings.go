package zigbee2mqtt

import (
	"cmp"
	"encoding/json"
)

// wireInfo is the part of bridge/info that matters.
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

// availability says whether Zigbee2MQTT tells if devices can be reached (zigbee2mqtt.io, guide "Device availability"): a switch, or
// settings, which of the versions from 2 on have a switch among them.
type availability string

const (
	untold availability = ""
	isOn   availability = "on"
	isOff  availability = "off"
)

// UnmarshalJSON implements json.Unmarshaler. What it does not understand it is not told.
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

// ownOptions are those of the devices that have some of their own, by their address. Beyond mostSettings they have none.
type ownOptions map[string]wireOptions

// UnmarshalJSON implements json.Unmarshaler.
func (e *ownOptions) UnmarshalJSON(data []byte) error {
	*e = ownOptions{}
	return members(data, func(address string, value *json.Decoder) error {
		var o wireOptions
		if err := value.Decode(&o); err != nil {
			return err
		}
		if o != (wireOptions{}) && ieee(address) != "" && len(*e) < mostSettings {
			(*e)[address] = o
		}
		return nil
	})
}

func readInfo(payload []byte) (w wireInfo, ok bool) {
	if json.Unmarshal(payload, &w) != nil {
		return wireInfo{}, false
	}
	w.Coordinator.IEEE, w.Config.Advanced.Output = ieee(w.Coordinator.IEEE), brief(w.Config.Advanced.Output, mostText)
	return w, true
}

// exposesPIN says whether Zigbee2MQTT publishes the PINs of a lock.
func (w wireInfo) exposesPIN(ieee string) bool {
	exposes := cmp.Or(w.Config.Devices[ieee].ExposePIN, w.Config.DeviceOptions.ExposePIN)
	return exposes != nil && *exposes
}

// watches says whether Zigbee2MQTT tells of a lock if it can be reached, by all that is known. Where it has been told not to any more
// what it told last stays with the broker.
func (w wireInfo) watches(ieee string) bool {
	return cmp.Or(w.Config.Devices[ieee].Availability, w.Config.DeviceOptions.Availability, w.Config.Availability) != isOff
}
