package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Limits of what is stored of the messages of a broker, whose publishers may be faulty or malicious.
const (
	// maxLocks is the maximum number of locks in a network.
	maxLocks = 500
	// maxUndefined is the maximum number of devices that are not listed as locks.
	maxUndefined = 1000
	// maxSettings is the maximum number of devices with individual settings.
	maxSettings = 1000
	// maxNames is the maximum number of devices with a known availability. Zigbee2MQTT can serve fewer devices.
	maxNames = 10_000
	// maxNameSize is in bytes. Devices with longer names are ignored.
	maxNameSize = 250
	// maxFields is the maximum number of fields in the state of a lock.
	maxFields = 500
	// maxSlots is the maximum number of slots of a lock.
	maxSlots = 1000
	// maxStoredSlots is the maximum number of stored slots of a network.
	maxStoredSlots = 30_000
	// maxPINSize is in bytes.
	maxPINSize = 32
	// maxStatusSize is in bytes; not_supported_255 has 17.
	maxStatusSize = 20
	// maxRefused is the maximum number of stored PINs that a lock has rejected.
	maxRefused = 100
	// maxAddressSize is in bytes; an IEEE address has 18.
	maxAddressSize = 64
	// maxConcurrentReads is the maximum number of locks whose limits are read concurrently.
	maxConcurrentReads = 16
	// maxTextSize is the maximum size of other texts in bytes.
	maxTextSize = 100
	// maxResponseSize is the maximum size of a response or a log message in bytes.
	maxResponseSize = 16_384
	// maxLogSize is the number of bytes of a log text that are examined.
	maxLogSize = 4096
	// maxReasonSize is the maximum size of a connection error in bytes.
	maxReasonSize = 300
)

// brief returns the first bytes of a text without retaining the rest in memory.
func brief(text string, most int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), most)], ""))
}

// members iterates over the members of a JSON object. each must read the value.
func members(data []byte, each func(name string, value *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	begin, err := d.Token()
	if err != nil || begin == nil {
		return err
	}
	if begin != json.Delim('{') {
		return &json.UnmarshalTypeError{Value: "value", Offset: d.InputOffset()}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := each(name.(string), d); err != nil {
			return err
		}
	}
	return nil
}
