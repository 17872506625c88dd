package devicecloud

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Limits of the pushes of one account.
const (
	// pushLimit is the maximum size of one push in bytes.
	pushLimit = 16 << 10
	// pushesPerSecond is the rate of pushes per second.
	pushesPerSecond = 100
	pushBurst       = 500
	// maxRefSize is in bytes.
	maxRefSize = 1000
)

// eventKinds maps the vendor's events. Others, such as access_code.used, contain nothing more. The names come from
// the guide; account.revoked, lock.settings_changed, thermostat.changed, and
// noise_sensor.changed from package sandbox.
var eventKinds = map[string]adapter.EventKind{
	"device.online":                 adapter.DeviceOnline,
	"device.offline":                adapter.DeviceOffline,
	"device.added":                  adapter.DeviceListed,
	"device.removed":                adapter.DeviceListed,
	"device.low_battery":            adapter.StatusChanged,
	"battery.low":                   adapter.StatusChanged,
	"battery.replaced":              adapter.StatusChanged,
	"lock.action_completed":         adapter.LockOperated,
	"lock.settings_changed":         adapter.StatusChanged,
	"thermostat.changed":            adapter.StatusChanged,
	"noise_sensor.changed":          adapter.StatusChanged,
	"access_code.created":           adapter.CodesChanged,
	"access_code.updated":           adapter.CodesChanged,
	"access_code.deleted":           adapter.CodesChanged,
	"access_code.incorrect_attempt": adapter.AccessDenied,
	"bridge.online":                 adapter.Resync,
	"bridge.offline":                adapter.Resync,
	"account.revoked":               adapter.AccountRevoked,
}

// methods maps the guide's values of performed_via (section "implementing lock actions"), and auto_lock.
var methods = map[string]adapter.Method{
	"pin_code":      adapter.ByKeycode,
	"mobile_app":    adapter.Remotely,
	"remote_api":    adapter.Remotely,
	"bluetooth_key": adapter.Remotely,
	"fob_card":      adapter.ByCard,
	"manual_turn":   adapter.ByHand,
	"auto_lock":     adapter.Automatically,
}

// subscribed lists the events to subscribe to, sorted.
var subscribed = func() []string {
	var names []string
	for name := range eventKinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// push is a pushed event. The guide shows it flat, and also with the code in an object.
type push struct {
	ID       string `json:"event_id"`
	Type     string `json:"event_type"`
	DeviceID string `json:"device_id"`
	LockID   string `json:"lock_id"`
	CodeID   string `json:"access_code_id"`
	Code     struct {
		ID     string `json:"access_code_id"`
		LockID string `json:"lock_id"`
	} `json:"access_code"`
	ActionID     string          `json:"action_id"`
	Action       string          `json:"action"` // lock or unlock
	PerformedVia string          `json:"performed_via"`
	Status       string          `json:"status"` // success or failed
	Timestamp    json.RawMessage `json:"timestamp"`
}

// event returns the event in the push, and false if there is none. If the vendor omits the device, as the guide's
// deletion event does, the event is a Resync of the account.
func (p push) event() (adapter.Event, bool) {
	kind, ok := eventKinds[p.Type]
	if !ok {
		return adapter.Event{}, false
	}
	e := adapter.Event{Kind: kind, Device: adapter.DeviceRef(cmp.Or(p.DeviceID, p.LockID, p.Code.LockID))}
	switch {
	case kind == adapter.AccountRevoked, kind == adapter.Resync:
		e.Device = ""
	case e.Device == "", len(e.Device) > maxRefSize:
		e.Kind, e.Device = adapter.Resync, ""
	case kind == adapter.CodesChanged:
		e.Code = adapter.CodeRef(cmp.Or(p.CodeID, p.Code.ID))
	case kind == adapter.AccessDenied:
		e.Code = adapter.CodeRef(cmp.Or(p.CodeID, p.Code.ID))
		e.Operation = p.operation()
	case kind == adapter.LockOperated:
		e = p.bolt(e)
	}
	return e, true
}

// bolt completes the event of a finished action. An event without the action means that the status changed.
func (p push) bolt(e adapter.Event) adapter.Event {
	switch {
	case p.Action != "lock" && p.Action != "unlock":
		e.Kind = adapter.StatusChanged
		return e
	case p.Status == statusFailed:
		e.Kind = adapter.Jammed
		e.Operation = p.operation()
	default:
		e.Code = adapter.CodeRef(cmp.Or(p.CodeID, p.Code.ID))
		e.Operation = p.operation()
		e.Operation.Method = cmp.Or(methods[p.PerformedVia], adapter.ByUnknown)
	}
	e.Operation.Locked = p.Action == "lock"
	return e
}

func (p push) operation() adapter.Operation {
	o := adapter.Operation{ID: cmp.Or(p.ID, p.ActionID)}
	if json.Unmarshal(p.Timestamp, &o.At) != nil {
		// The guide does not specify the format; the time of receipt is used instead.
		o.At = time.Time{}
	}
	return o
}

// Receive serves Config.PushURL. The guide has no signature, so the URL must be unguessable, and a push only says
// where to look. Receive responds with 204 also to unused events; with 405 to methods other than POST; with 400 to an
// unreadable push; and with 503 after Close. It responds with 413 to a push that is too large and with 429 above the
// rate limit, and sends a Resync instead.
func (a *Adapter) Receive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !a.pushes.Allow() {
		a.events.Send(adapter.Event{Kind: adapter.Resync})
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushLimit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		a.events.Send(adapter.Event{Kind: adapter.Resync})
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	var p push
	if err != nil || json.Unmarshal(data, &p) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if e, ok := p.event(); ok && !a.events.Send(e) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
