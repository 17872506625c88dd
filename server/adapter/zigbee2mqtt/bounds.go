package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"strings"
)

// What is kept of what a broker publishes: it may be somebody's who publishes without an end.
const (
	mostLocks      = 500    // of a network
	mostUndefined  = 1000   // devices that are not listed as locks
	mostSettings   = 1000   // devices with settings of their own
	mostNames      = 10_000 // whose availability is told: of more devices than Zigbee2MQTT can serve
	longestName    = 250    // bytes; what has a longer one is no device
	mostFields     = 500    // of what a lock publishes
	mostSlots      = 1000   // of a lock
	mostTold       = 30_000 // slots of a network that are remembered
	mostPIN        = 32     // bytes
	mostStatus     = 20     // bytes of a slot's: not_supported_255 has 17
	mostRefused    = 100    // PINs that a lock has not taken
	longestAddress = 64     // bytes of an IEEE address, which has 18
	mostAsked      = 16     // locks at once that are asked for their limits
	mostText       = 100    // bytes of other texts
	mostAnswer     = 16_384 // of an answer to a request, and of what is logged
	mostLogged     = 4096   // of the text in that
	mostReason     = 300    // of why a broker is not reached
)

// brief is the beginning of a text, without the rest of it in memory.
func brief(text string, most int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), most)], ""))
}

// members reads an object of JSON, one member after another, of which each reads the value.
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
