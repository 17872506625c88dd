package zigbee2mqtt

import "encoding/json"

// wireInfo is the part of bridge/info that matters.
type wireInfo struct {
	Coordinator struct {
		IEEE string `json:"ieee_address"`
	} `json:"coordinator"`
	Config struct {
		Advanced struct {
			Output string `json:"output"`
		} `json:"advanced"`
		Devices       exposing    `json:"devices"`
		DeviceOptions wireOptions `json:"device_options"`
	} `json:"config"`
}

type wireOptions struct {
	ExposePIN *bool `json:"expose_pin"`
}

// exposing is expose_pin of the devices that have it of their own, by their address. Beyond mostSettings they have none.
type exposing map[string]bool

// UnmarshalJSON implements json.Unmarshaler.
func (e *exposing) UnmarshalJSON(data []byte) error {
	*e = exposing{}
	return members(data, func(address string, value *json.Decoder) error {
		var o wireOptions
		if err := value.Decode(&o); err != nil {
			return err
		}
		if o.ExposePIN != nil && ieee(address) != "" && len(*e) < mostSettings {
			(*e)[address] = *o.ExposePIN
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
	if own, ok := w.Config.Devices[ieee]; ok {
		return own
	}
	return w.Config.DeviceOptions.ExposePIN != nil && *w.Config.DeviceOptions.ExposePIN
}
