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

// What a vendor may send of one account.
const (
	pushLimit  = 16 << 10 // bytes of one push
	pushesAt   = 100      // a second
	pushesOnce = 500      // at once
	longestRef = 1000     // bytes
)

// hints says what each of the vendor's events hints at. Others, such as access_code.used, say nothing that
// these do not say. The names are the guide's, and account.revoked and
// lock.settings_changed are package sandbox's.
var hints = map[string]adapter.EventKind{
	"device.online":                 adapter.DeviceOnline,
	"device.offline":                adapter.DeviceOffline,
	"device.added":                  adapter.DeviceListed,
	"device.removed":                adapter.DeviceListed,
	"device.low_battery":            adapter.StatusChanged,
	"battery.low":                   adapter.StatusChanged,
	"battery.replaced":              adapter.StatusChanged,
	"lock.action_completed":         adapter.LockOperated,
	"lock.settings_changed":         adapter.StatusChanged,
	"access_code.created":           adapter.CodesChanged,
	"access_code.updated":           adapter.CodesChanged,
	"access_code.deleted":           adapter.CodesChanged,
	"access_code.incorrect_attempt": adapter.AccessDenied,
	"bridge.online":                 adapter.Resync,
	"bridge.offline":                adapter.Resync,
	"account.revoked":               adapter.AccountRevoked,
}

// methods are the guide's values of performed_via (section "implementing lock actions"), and auto_lock.
var methods = map[string]adapter.Method{
	"pin_code":      adapter.ByKeycode,
	"mobile_app":    adapter.Remotely,
	"remote_api":    adapter.Remotely,
	"bluetooth_key": adapter.Remotely,
	"fob_card":      adapter.ByCard,
	"manual_turn":   adapter.ByHand,
	"auto_lock":     adapter.ByItself,
}

// subscribed are the events to subscribe to, in the order of their names.
var subscribed = func() []string {
	var names []string
	for name := range hints {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// push is what the vendor sends. The guide shows it flat, and with the code in an object.
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

// event is the hint in the push, false where there is none. Where the vendor leaves out which device, as
// the guide's deletion does, the whole account has to be looked at.
func (p push) event() (adapter.Event, bool) {
	kind, ok := hints[p.Type]
	if !ok {
		return adapter.Event{}, false
	}
	e := adapter.Event{Kind: kind, Device: adapter.DeviceRef(cmp.Or(p.DeviceID, p.LockID, p.Code.LockID))}
	switch {
	case kind == adapter.AccountRevoked, kind == adapter.Resync:
		e.Device = ""
	case e.Device == "", len(e.Device) > longestRef:
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

// bolt is the event of an action that has ended; where it does not say which, or how, the lock has to be
// looked at.
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
		o.At = time.Time{} // the guide does not say in which form; ours will do
	}
	return o
}

// Receive serves Config.PushURL. It believes every push, as the guide has no signature: the URL should be
// one that cannot be guessed, and a push only says where to look. It answers 204, also to events that it
// has no use for; 405 to other methods than POST; 400 to what it cannot read; 413 to what is too long and 429 to more
// of them than pushesAt, in place of which everything is looked at; 503 after Close.
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
