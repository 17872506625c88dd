package zwavejs

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Command classes of Z-Wave.
const (
	ccScheduleEntryLock = 78
	ccDoorLock          = 98
	ccUserCode          = 99
	ccConfiguration     = 112
	ccManufacturer      = 114 // Manufacturer Specific
	ccNotification      = 113
	ccBattery           = 128
	ccUserCredential    = 131
)

// message is a frame of the server: its version, the result of a command, or an event.
type message struct {
	head

	size   int
	of     *call // the waiting call that it answers, or nil
	unlike bool  // the result has an unexpected shape
	Event  *wireEvent
}

// head is the part of a frame that is decoded first, before anything large.
type head struct {
	Type string `json:"type"`

	HomeID        uint32 `json:"homeId"`
	ServerVersion string `json:"serverVersion"`
	MinSchema     int    `json:"minSchemaVersion"`
	MaxSchema     int    `json:"maxSchemaVersion"`

	MessageID string `json:"messageId"`
	Success   bool   `json:"success"`
	failure
}

// outcome returns the error of a command that was sent; come is false without a response.
func (m message) outcome(ctx context.Context, command string, come bool) error {
	switch {
	case !come && ctx.Err() != nil:
		return contextError(
			ctx,
			adapter.Unconfirmed,
			"the connection to the gateway was lost before it answered "+command,
		)
	case !come:
		return adapter.Errorf(adapter.Unconfirmed, "the connection to the gateway was lost before it answered %s",
			command)
	case !m.Success:
		return answerError{m.error(command)}
	case m.unlike:
		return adapter.Errorf(adapter.Unconfirmed, "the gateway's response to %s has an unexpected shape", command)
	}
	return nil
}

// failure is the error response to a command. Messages are omitted, because some quote the command.
type failure struct {
	ErrorCode string `json:"errorCode"`
	ZWaveCode int    `json:"zwaveErrorCode"`
	ZWaveName string `json:"zwaveErrorCodeName"`
}

// answerError is an error response of the gateway, which thus has received the command.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

// error classifies the failure. The codes of zwave-js are in packages/core/src/error/ZWaveError.ts. Unknown ones are
// Transient, because a superfluous retry costs less than giving up wrongly.
func (f failure) error(command string) *adapter.Error {
	what := word(f.ErrorCode)
	if f.ErrorCode == "zwave_error" && f.ZWaveName != "" {
		what = word(f.ZWaveName) + " (" + strconv.Itoa(f.ZWaveCode) + ")"
	}
	e := adapter.Errorf(adapter.Transient, "the gateway answered %s to %s", what, command)
	switch f.ErrorCode {
	case "node_not_found", "endpoint_not_found":
		e.Class = adapter.NotFound
	case "unknown_command", "schema_incompatible", "no_longer_supported", "invalid_params_passed_to_command":
		e.Class = adapter.NotSupported
	case "zwave_error":
		switch f.ZWaveCode {
		case 204: // Controller_CallbackNOK: the node did not acknowledge
			e.Class, e.Message = adapter.Offline, "the device does not answer the gateway's radio"
		case 213: // Controller_NodeRemoved
			e.Class = adapter.NotFound
		case 302, 303, 304: // CC_NotSupported, CC_NotImplemented, CC_NoAPI
			e.Class = adapter.NotSupported
		case 322: // Argument_Invalid: length or characters of a PIN, number of a slot
			e.Class = adapter.Invalid
		}
	}
	return e
}

type wireEvent struct {
	Source    string          `json:"source"`
	Name      string          `json:"event"`
	NodeID    int             `json:"nodeId"`
	Args      json.RawMessage `json:"args"`
	NodeState *wireNode       `json:"nodeState"` // of "ready"
	Node      *wireNode       `json:"node"`      // of "node added" and "node removed"
}

// Statuses of a node: zwave-js NodeStatus.
const (
	nodeAsleep = 1
	nodeDead   = 3
	nodeAlive  = 4
)

type wireNode struct {
	NodeID         int    `json:"nodeId"`
	Name           string `json:"name"`
	Location       string `json:"location"`
	Label          string `json:"label"`
	Status         int    `json:"status"`
	Ready          bool   `json:"ready"` // the interview is complete
	Listening      bool   `json:"isListening"`
	ManufacturerID *int   `json:"manufacturerId"`
	ProductType    int    `json:"productType"`
	ProductID      int    `json:"productId"`
	Manufacturer   string `json:"manufacturer"` // from schema 47 on
	DeviceConfig   struct {
		Manufacturer string `json:"manufacturer"`
		Label        string `json:"label"`
	} `json:"deviceConfig"`
	Endpoints adapter.List[wireEndpoint] `json:"endpoints"`
	Values    adapter.List[wireValue]    `json:"values"`
}

type wireEndpoint struct {
	Index          int                     `json:"index"`
	CommandClasses adapter.List[wireClass] `json:"commandClasses"`
}

type wireClass struct {
	ID      int `json:"id"`
	Version int `json:"version"`
}

// unknown reports whether the gateway has not identified the node yet.
func (w *wireNode) unknown() bool { return !w.Ready || w.ManufacturerID == nil }

// wireValue is a value of a node, in the list and in change events.
type wireValue struct {
	CC          int             `json:"commandClass"`
	Endpoint    int             `json:"endpoint"`
	Property    text            `json:"property"`
	PropertyKey text            `json:"propertyKey"`
	Value       json.RawMessage `json:"value"`
	NewValue    json.RawMessage `json:"newValue"`
	Metadata    struct {
		Label     string         `json:"label"`
		MinLength int            `json:"minLength"`
		MaxLength int            `json:"maxLength"`
		Unit      text           `json:"unit"`
		Min       adapter.Number `json:"min"`
		Max       adapter.Number `json:"max"`
		Steps     adapter.Number `json:"steps"`
		States    states         `json:"states"` // values by number
	} `json:"metadata"`
}

// text is a property or its key, which may be a number in JSON.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
		return nil
	}
	*t = text(data)
	return nil
}

func (t text) number() (int, bool) {
	n, err := strconv.Atoi(string(t))
	return n, err == nil
}
