package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// limitsProperty is the property in which Zigbee2MQTT publishes the limits read from a lock. Zigbee2MQTT keeps it in
// its state.
const limitsProperty = "deviceaccess_limits"

// wireState is the published state of a lock. Every message repeats the whole state; only action occurs once.
type wireState struct {
	State      string      `json:"state"`
	Battery    *float64    `json:"battery"` // percent
	Slots      wireSlots   `json:"users"`
	Limits     *wireLimits `json:"deviceaccess_limits"`
	Action     string      `json:"action"`
	ActionUser *int        `json:"action_user"`
	Source     string      `json:"action_source_name"`

	climate climateState // of a thermostat

	seen   string   // raw last_seen; empty if missing
	stuck  bool     // the bolt is halfway
	tamper bool     // the lock detects tampering
	door   string   // raw door_state; empty if missing
	fields []uint64 // hashes of all fields except noise, in ascending order
}

// wireLimits are the limits of a lock; 0 if not reported.
type wireLimits struct {
	Users  int `json:"numOfPinUsersSupported"`
	MinPIN int `json:"minPinLen"`
	MaxPIN int `json:"maxPinLen"`
}

// wireUser is a slot. Status is available, enabled, disabled or not_supported_<number>.
type wireUser struct {
	Status string          `json:"status"`
	PIN    json.RawMessage `json:"pin_code"` // a string, or a number with some converters
}

// wireSlots holds the slots of a lock from 1 on, including PINs that are not exposed.
type wireSlots map[int]slot

// UnmarshalJSON implements json.Unmarshaler.
func (s *wireSlots) UnmarshalJSON(data []byte) error {
	*s = wireSlots{}
	return members(data, func(number string, value *json.Decoder) error {
		var u wireUser
		if err := value.Decode(&u); err != nil {
			return err
		}
		n, _ := strconv.Atoi(number)
		if 1 <= n && n < maxSlots && strconv.Itoa(n) == number && u.Status != "" {
			(*s)[n] = u.slot()
		}
		return nil
	})
}

// slot decodes a slot. The PIN of a free slot is outdated; asterisks are not a PIN.
func (u wireUser) slot() slot {
	s := slot{Status: brief(u.Status, maxStatusSize)}
	for _, known := range []string{available, enabled, disabled} {
		if u.Status == known {
			s.Status = known
		}
	}
	if pin := bytes.Trim(u.PIN, `"`); s.taken() && isPIN(pin) {
		s.PIN = string(pin)
	}
	return s
}

var errFields = errors.New("the state has more fields than allowed")

func readState(payload []byte) (*wireState, bool) {
	w := &wireState{}
	if json.Unmarshal(payload, w) != nil {
		return nil, false
	}
	w.State, w.Action, w.Source = brief(
		w.State,
		maxTextSize,
	), brief(
		w.Action,
		maxTextSize,
	), brief(
		w.Source,
		maxTextSize,
	)
	var fields []uint64
	err := members(payload, func(name string, value *json.Decoder) error {
		var v json.RawMessage
		switch err := value.Decode(&v); {
		case err != nil:
			return err
		case name == "last_seen" && len(v) <= maxTextSize:
			w.seen = string(v)
		case name == "lock_state":
			w.stuck = string(v) == `"not_fully_locked"`
		case name == "tamper":
			w.tamper = string(v) == "true"
		case name == "door_state" && len(v) <= maxTextSize:
			w.door = string(v)
		}
		if noise[name] {
			return nil
		}
		if len(fields) == maxFields {
			return errFields
		}
		fields = append(fields, mark(name, v))
		return nil
	})
	slices.Sort(fields)
	w.fields = slices.Clone(fields)
	return w, err == nil
}

var seed = maphash.MakeSeed()

// mark returns a hash of a field and its value.
func mark(name string, value []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(name)
	h.WriteByte(0)
	h.Write(value)
	return h.Sum64()
}

// slot is the content of a slot.
type slot struct {
	Status string
	PIN    string // empty where hidden
}

const (
	available = "available"
	enabled   = "enabled"
	disabled  = "disabled" // stored, but does not open
)

func (s slot) taken() bool { return s.Status == enabled || s.Status == disabled }
func (s slot) free() bool  { return s.Status == available }

var digits = regexp.MustCompile(`^[0-9]+$`)

func isPIN(text []byte) bool { return len(text) <= maxPINSize && digits.Match(text) }

// slot returns slot n. A PIN that is published although PINs are not exposed is outdated and is removed.
func (w *wireState) slot(n int, visible bool) (slot, bool) {
	s, ok := w.Slots[n]
	if !visible {
		s.PIN = ""
	}
	return s, ok
}

// noise lists the fields that change with every message.
var noise = map[string]bool{"users": true, "last_seen": true, "linkquality": true, "elapsed": true}

// reportsOther reports whether a message contains other changes than slots. Such a message may have been published
// for these changes, with outdated slots.
func (w *wireState) reportsOther(before *wireState) bool {
	if w.Action != "" || before == nil {
		return true
	}
	for _, field := range w.fields {
		if _, was := slices.BinarySearch(before.fields, field); !was {
			return true
		}
	}
	return false
}

// programmed reports whether the action is a change of codes.
func programmed(action string) bool {
	return strings.HasPrefix(action, "pin_code_") || strings.HasPrefix(action, "rfid_code_") ||
		action == "master_code_changed"
}
