package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// wireDevice is one of bridge/devices (zigbee2mqtt.io, guide "MQTT topics and messages").
type wireDevice struct {
	IEEE      string `json:"ieee_address"`
	Type      string `json:"type"`
	Name      string `json:"friendly_name"`
	Disabled  bool   `json:"disabled"`
	Network   int    `json:"network_address"`
	Endpoints map[string]struct {
		Clusters struct {
			Input adapter.List[string] `json:"input"`
		} `json:"clusters"`
	} `json:"endpoints"`
	Definition *struct {
		Model       string  `json:"model"`
		Vendor      string  `json:"vendor"`
		Description string  `json:"description"`
		Exposes     exposes `json:"exposes"`
	} `json:"definition"` // null until the device is known
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
	Type     string  `json:"type"`
	Property string  `json:"property"`
	Access   int     `json:"access"`
	Features exposes `json:"features"`
}

// exposes are what a device can do, none where there are more than one has: each is larger in memory than the few bytes
// that it may be written with.
type exposes []expose

const mostExposed = 20_000 // commas in it; a lock's has some hundred

// UnmarshalJSON implements json.Unmarshaler.
func (e *exposes) UnmarshalJSON(data []byte) error {
	if bytes.Count(data, []byte(",")) > mostExposed {
		*e = nil
		return nil
	}
	return json.Unmarshal(data, (*[]expose)(e))
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
