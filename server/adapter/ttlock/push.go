package ttlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Values of notifyType. Type 2 (gateways) names no lock, and type 7 (door sensors) none that is a device here.
const (
	pushRecords   = 1
	pushWiFi      = 3
	pushFailed    = 4
	objectPINCode = 2 // an objectType
)

// pushed is the response that TTLock expects.
const pushed = "success"

// Values of recordType: euopen.ttlock.com, "get unlock records".
const (
	recordPasscode     = 4
	recordByPasscode   = 34 // locked
	recordTampered     = 44
	recordWrongPINs    = 48
	recordMechanical   = 10
	recordBluetooth    = 11
	recordGateway      = 12
	recordFromInside   = 32
	recordCardLock     = 35
	recordManualLock   = 36
	recordAutoLock     = 45
	recordUnlockButton = 46
	recordLockButton   = 47
)

// movements are the record types of bolts that moved.
var movements = map[number]adapter.Operation{
	1:                  {Method: adapter.Remotely}, // with an app
	3:                  {Method: adapter.Remotely},
	recordPasscode:     {Method: adapter.ByKeycode},
	7:                  {Method: adapter.ByCard},
	8:                  {Method: adapter.ByUnknown}, // a fingerprint
	9:                  {Method: adapter.ByCard},    // a wristband
	recordMechanical:   {Method: adapter.ByHand},
	recordBluetooth:    {Method: adapter.Remotely, Locked: true},
	recordGateway:      {Method: adapter.Remotely},
	29:                 {Method: adapter.ByUnknown}, // an unexpected unlock
	recordFromInside:   {Method: adapter.ByHand},
	33:                 {Method: adapter.ByUnknown, Locked: true},
	recordByPasscode:   {Method: adapter.ByKeycode, Locked: true},
	recordCardLock:     {Method: adapter.ByCard, Locked: true},
	recordManualLock:   {Method: adapter.ByHand, Locked: true},
	37:                 {Method: adapter.ByUnknown}, // a key fob
	recordAutoLock:     {Method: adapter.Automatically, Locked: true},
	recordUnlockButton: {Method: adapter.ByHand},
	recordLockButton:   {Method: adapter.ByHand, Locked: true},
	55:                 {Method: adapter.ByUnknown}, // a key fob
}

// wireRecord is a record of a lock. Code is the PIN in clear.
type wireRecord struct {
	ID      number  `json:"recordId"`
	Type    number  `json:"recordType"`
	Success *number `json:"success"`
	Code    string  `json:"keyboardPwd"`
	At      number  `json:"lockDate"`
}

// isKeypad reports whether the keypad was used, so that codes may have changed.
func (r wireRecord) isKeypad() bool {
	return r.Type == recordPasscode || r.Type == recordByPasscode || r.Type == recordWrongPINs
}

// readPush reads a push. It returns the lock and what to read there; no PIN of the push is in the result. An event with
// Operation.At asks for the records since that time. Pushes that concern no lock have no event.
func readPush(r *http.Request) (push adapter.AppPush, err error) {
	push.Response = pushed
	if r.Method != http.MethodPost || r.ParseForm() != nil {
		return push, errors.New("a push is a form")
	}
	kind, err := strconv.Atoi(r.PostForm.Get("notifyType"))
	if err != nil {
		return push, errors.New("the push has no notifyType")
	}
	e := adapter.Event{Device: adapter.DeviceRef(r.PostForm.Get("lockId"))}
	if _, unknown := lockID(e.Device); unknown != nil {
		kind = 0
	}
	switch kind {
	case pushRecords:
		var records adapter.List[wireRecord]
		if json.Unmarshal([]byte(r.PostForm.Get("records")), &records) != nil { // the error may quote a PIN
			return push, errors.New("the records of the push cannot be read")
		}
		e.Kind = adapter.StatusChanged
		for _, one := range records {
			if one.isKeypad() {
				e.Kind = adapter.CodesChanged
			}
			if at := one.At.time(); at != nil && (e.Operation.At.IsZero() || at.Before(e.Operation.At)) {
				e.Operation.At = *at
			}
		}
	case pushWiFi:
		e.Kind = adapter.DeviceOffline
		if online := r.PostForm.Get("isOnline"); online == "1" || online == "true" {
			e.Kind = adapter.DeviceOnline
		}
	case pushFailed:
		if r.PostForm.Get("objectType") != strconv.Itoa(objectPINCode) {
			return push, nil
		}
		e.Kind = adapter.CodesChanged
	default:
		return push, nil
	}
	push.Events = []adapter.AppEvent{{Event: e}}
	return push, nil
}

// hints are the locks that pushes named and that are not read yet.
type hints struct {
	open context.Context // ends with Close
	shut context.CancelFunc

	mu      sync.Mutex
	readers sync.WaitGroup
	waiting map[adapter.DeviceRef]*hint
}

// hint is what to read of a lock.
type hint struct {
	records time.Time // since when; zero: none
	link    bool
	codes   bool
}

func (h *hint) add(e adapter.Event) {
	if at := e.Operation.At; !at.IsZero() && (h.records.IsZero() || at.Before(h.records)) {
		h.records = at
	}
	h.link = h.link || e.Kind == adapter.DeviceOnline || e.Kind == adapter.DeviceOffline
	h.codes = h.codes || e.Kind == adapter.CodesChanged
}

func (h *hints) close() {
	h.mu.Lock()
	h.shut()
	h.mu.Unlock()
	h.readers.Wait()
}

// ReceiveEvent implements adapter.EventReceiver. A push is not signed, so the adapter reads from TTLock what happened.
// Pushes about one lock that arrive meanwhile lead to one more read.
func (a *Adapter) ReceiveEvent(e adapter.Event) bool {
	h := &a.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open.Err() != nil {
		return false
	}
	if h.waiting == nil {
		h.waiting = map[adapter.DeviceRef]*hint{}
	}
	waiting, reading := h.waiting[e.Device]
	if waiting == nil {
		waiting = &hint{}
		h.waiting[e.Device] = waiting
	}
	waiting.add(e)
	if !reading {
		h.readers.Go(func() { a.follow(e.Device) })
	}
	return true
}

// follow reads what pushes about a lock point to, until there is no more.
func (a *Adapter) follow(device adapter.DeviceRef) {
	ctx := adapter.WithPriority(a.hints.open, adapter.PriorityConfirm)
	for {
		a.hints.mu.Lock()
		next := a.hints.waiting[device]
		if next == nil || ctx.Err() != nil {
			delete(a.hints.waiting, device)
			a.hints.mu.Unlock()
			return
		}
		a.hints.waiting[device] = nil
		a.hints.mu.Unlock()
		if next.codes {
			a.events.Send(adapter.Event{Kind: adapter.CodesChanged, Device: device})
		}
		var err error
		if !next.records.IsZero() {
			err = a.readRecords(ctx, device, next.records)
		}
		if next.link {
			_, err = a.Device(ctx, device)
		}
		if err != nil {
			a.log.DebugContext(ctx, "read what a push points to", "error", err)
		}
	}
}

// maxRecordAge bounds how old the records are that a push can point to.
const maxRecordAge = 24 * time.Hour

// maxRecords bounds the records that are read after one push.
const maxRecords = 500

// readRecords sends the operations of a lock since a time.
func (a *Adapter) readRecords(ctx context.Context, device adapter.DeviceRef, since time.Time) error {
	now := a.now()
	if oldest := now.Add(-maxRecordAge); since.Before(oldest) {
		since = oldest
	} else if since.After(now) { // the clock of the lock is wrong
		since = now
	}
	var records []wireRecord
	params := url.Values{"lockId": {string(device)}, "startDate": {strconv.FormatInt(since.UnixMilli(), 10)}}
	full := errors.New("enough records")
	err := listPages(ctx, a, "/v3/lockRecord/list", params, 100, func(r wireRecord) error {
		if len(records) == maxRecords {
			return full
		}
		records = append(records, r)
		return nil
	})
	if err != nil && !errors.Is(err, full) {
		return a.missing(device, err)
	}
	slices.SortFunc(records, func(a, b wireRecord) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	known, _ := a.known.of(device)
	for _, r := range records {
		e, ok := r.event(device)
		if !ok {
			continue
		}
		if r.Type == recordPasscode || r.Type == recordByPasscode {
			e.Code = known.refs[r.Code]
		}
		if e.Kind == adapter.LockOperated {
			a.moved(device, e.Operation.Locked, e.Operation.At)
		}
		a.events.Send(e)
	}
	return nil
}

// event converts a record. The PIN of the record is not in the event.
func (r wireRecord) event(device adapter.DeviceRef) (adapter.Event, bool) {
	e := adapter.Event{Device: device}
	e.Operation, e.Kind = movements[r.Type], adapter.LockOperated
	_, moved := movements[r.Type]
	switch failed := r.Success != nil && *r.Success == 0; {
	case r.Type == recordTampered:
		e.Kind = adapter.Tampered
	case r.Type == recordWrongPINs, moved && failed:
		e.Kind, e.Operation = adapter.AccessDenied, adapter.Operation{}
	case !moved:
		return e, false
	}
	if r.ID > 0 {
		e.Operation.ID = strconv.FormatInt(int64(r.ID), 10)
	}
	if at := r.At.time(); at != nil {
		e.Operation.At = *at
	}
	return e, true
}
