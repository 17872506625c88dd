package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// limitsProperty is where Zigbee2MQTT is asked to publish what it reads of a lock's own limits. It keeps it in
// its state.
const limitsProperty = "deviceaccess_limits"

// wireState is what a lock publishes. Zigbee2MQTT repeats all it knows in each message; only action is told once.
type wireState struct {
	State      string              `json:"state"`
	Battery    *float64            `json:"battery"` // percent
	Users      map[string]wireUser `json:"users"`
	Limits     *wireLimits         `json:"deviceaccess_limits"`
	Action     string              `json:"action"`
	ActionUser *int                `json:"action_user"`
	Source     string              `json:"action_source_name"`

	fields map[string]json.RawMessage
}

// wireLimits are a lock's own, 0 where it does not tell.
type wireLimits struct {
	Users  int `json:"numOfPinUsersSupported"`
	MinPIN int `json:"minPinLen"`
	MaxPIN int `json:"maxPinLen"`
}

// wireUser is a slot. Status is available, enabled, disabled or not_supported_<number>.
type wireUser struct {
	Status string          `json:"status"`
	PIN    json.RawMessage `json:"pin_code"` // a string; some converters make a number of it
}

func readState(payload []byte) (*wireState, bool) {
	w := &wireState{}
	if json.Unmarshal(payload, &w.fields) != nil || json.Unmarshal(payload, w) != nil {
		return nil, false
	}
	return w, true
}

// slot is what is known of one place for a code.
type slot struct {
	Status string
	PIN    string // empty where hidden
}

const (
	available = "available"
	enabled   = "enabled"
	disabled  = "disabled" // kept, but it opens nothing
)

func (s slot) taken() bool { return s.Status == enabled || s.Status == disabled }
func (s slot) free() bool  { return s.Status == available }

var isPIN = regexp.MustCompile(`^[0-9]+$`)

// slot reads a slot. A PIN of a slot that is free is left over from before, and so is one that is published
// though it should not be; stars are no PIN.
func (w *wireState) slot(n int, visible bool) (slot, bool) {
	u, ok := w.Users[strconv.Itoa(n)]
	if !ok || u.Status == "" {
		return slot{}, false
	}
	s := slot{Status: u.Status}
	pin := string(bytes.Trim(u.PIN, `"`))
	if visible && s.taken() && isPIN.MatchString(pin) {
		s.PIN = pin
	}
	return s, true
}

// noise are the fields that change with every message.
var noise = map[string]bool{"users": true, "last_seen": true, "linkquality": true, "elapsed": true}

// tellsOfMore says whether a message has something to tell besides slots: then it may have been published for
// that, and its slots be old.
func (w *wireState) tellsOfMore(before *wireState) bool {
	if w.Action != "" || before == nil {
		return true
	}
	for name, value := range w.fields {
		if !noise[name] && !bytes.Equal(value, before.fields[name]) {
			return true
		}
	}
	return false
}

// stuck says whether the bolt is half way.
func (w *wireState) stuck() bool { return string(w.fields["lock_state"]) == `"not_fully_locked"` }

// programmed are the actions that tell of a change of codes.
func programmed(action string) bool {
	return strings.HasPrefix(action, "pin_code_") || strings.HasPrefix(action, "rfid_code_") || action == "master_code_changed"
}

// wireLog is one of bridge/logging.
type wireLog struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// failedPublish is how Zigbee2MQTT logs that it could not carry out a command. What follows may hold a PIN.
var failedPublish = regexp.MustCompile(`Publish '(get|set)' '(\w+)' to '(.*?)' failed: '(.*)`)
