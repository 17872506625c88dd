package nuki

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Reading of the activity log.
const (
	// overlap is how far a read reaches back, because locks deliver entries late.
	overlap = 10 * time.Minute
	// firstLook is how far the first read reaches back, for clocks that differ.
	firstLook = 5 * time.Minute
	logLimit  = 50
	maxPages  = 10
	// maxSeen bounds the remembered entries.
	maxSeen = 2 * logLimit * maxPages
	// pushedPause is the factor of the intervals while pushes arrive.
	pushedPause = 5
)

// Values of a log entry.
const (
	logSuccess   = 0
	logBlocked   = 1
	logWrongCode = 224

	sourceKeypad      = 1
	sourceFingerprint = 2
	triggerKeypad     = 255
)

// methods maps triggers of the log. Other triggers are unknown.
var methods = map[int]adapter.Method{
	0:             adapter.Remotely, // system: the app over Bluetooth
	1:             adapter.ByHand,
	2:             adapter.ByHand, // the button on the lock
	3:             adapter.Automatically,
	4:             adapter.Remotely, // web
	5:             adapter.Remotely, // app
	6:             adapter.Automatically,
	triggerKeypad: adapter.ByKeycode,
}

// wireLog is an entry of the activity log in a response or a push.
type wireLog struct {
	ID          string          `json:"id"`
	SmartlockID int64           `json:"smartlockId"`
	Action      int             `json:"action"`
	Trigger     int             `json:"trigger"`
	State       int             `json:"state"`
	AuthID      json.RawMessage `json:"authId"`
	Date        time.Time       `json:"date"`
	Source      int             `json:"source"`
}

// event returns the event of an entry, and false if the entry is no operation of the bolt.
func (w wireLog) event() (adapter.Event, bool) {
	e := adapter.Event{
		Device:    adapter.DeviceRef(strconv.FormatInt(w.SmartlockID, 10)),
		Operation: adapter.Operation{ID: w.ID, At: w.Date, Locked: w.Action == actionLock},
	}
	switch w.Action {
	case actionUnlock, actionLock, actionUnlatch, actionLockNGo, actionLockNGoWithLatch:
	default:
		return e, false
	}
	switch w.State {
	case logSuccess:
		e.Kind, e.Operation.Method = adapter.LockOperated, w.method()
		if e.Operation.Method == adapter.ByKeycode {
			e.Code = w.code()
		}
	case logBlocked:
		e.Kind = adapter.Jammed
	case logWrongCode:
		e.Kind = adapter.AccessDenied
	default:
		return e, false
	}
	return e, true
}

func (w wireLog) method() adapter.Method {
	switch w.Source {
	case sourceKeypad:
		return adapter.ByKeycode
	case sourceFingerprint:
		return adapter.ByUnknown
	}
	if m, ok := methods[w.Trigger]; ok {
		return m
	}
	return adapter.ByUnknown
}

// code returns the code that was used, if the entry has the identifier of an authorization.
func (w wireLog) code() adapter.CodeRef {
	var id string
	if json.Unmarshal(w.AuthID, &id) != nil || !isID(id) {
		return ""
	}
	return adapter.CodeRef(id)
}

// observed is what the last polls have shown. The zero value is ready.
type observed struct {
	mu sync.Mutex
	// devices is nil before the first poll.
	devices map[adapter.DeviceRef]adapter.Device
	codes   map[adapter.DeviceRef]uint64 // hashes of the codes
	seed    maphash.Seed
	entries []string // handled entries of the log
}

// polls holds when each was read last. Only the poller uses it.
type polls struct {
	states, codes, log time.Time
}

// isNew reports whether an entry of the log was not handled, and marks it as handled.
func (o *observed) isNew(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.entries, id) {
		return false
	}
	if len(o.entries) >= maxSeen {
		o.entries = slices.Delete(o.entries, 0, len(o.entries)-maxSeen+1)
	}
	o.entries = append(o.entries, id)
	return true
}

// noteDevices returns the events of what has changed since the last poll. first means that there was none.
func (o *observed) noteDevices(list []adapter.Device) (events []adapter.Event, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.devices
	o.devices = make(map[adapter.DeviceRef]adapter.Device, len(list))
	for _, d := range list {
		o.devices[d.Ref] = d
		before, known := was[d.Ref]
		switch {
		case was == nil:
		case !known:
			events = append(events, adapter.Event{Kind: adapter.DeviceListed, Device: d.Ref})
		case before.Online != d.Online:
			events = append(events, onlineEvent(d.Ref, d.Online))
		case !reflect.DeepEqual(before, d):
			events = append(events, adapter.Event{Kind: adapter.StatusChanged, Device: d.Ref})
		}
	}
	for ref := range was {
		if _, there := o.devices[ref]; !there {
			events = append(events, adapter.Event{Kind: adapter.DeviceListed, Device: ref})
		}
	}
	return events, was == nil
}

func onlineEvent(device adapter.DeviceRef, online bool) adapter.Event {
	if online {
		return adapter.Event{Kind: adapter.DeviceOnline, Device: device}
	}
	return adapter.Event{Kind: adapter.DeviceOffline, Device: device}
}

// noteOnline records the connection of a lock, and returns the event about it.
func (o *observed) noteOnline(device adapter.DeviceRef, online bool) adapter.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, known := o.devices[device]
	if !known || d.Online == online {
		return adapter.Event{Kind: adapter.StatusChanged, Device: device}
	}
	d.Online = online
	o.devices[device] = d
	return onlineEvent(device, online)
}

// noteCodes returns the events of the locks whose codes have changed since the last poll. It keeps hashes, and no PIN.
func (o *observed) noteCodes(list []wireAuth) (events []adapter.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.codes == nil {
		o.seed = maphash.MakeSeed()
	}
	now := map[adapter.DeviceRef]uint64{}
	for _, c := range list {
		ref := adapter.DeviceRef(strconv.FormatInt(c.SmartlockID, 10))
		// The order of a list does not matter.
		now[ref] += maphash.Comparable(o.seed, [...]any{
			c.ID, c.Code, c.Name, c.isEnabled(), dateOf(c.From), dateOf(c.Until), c.isBusy(),
		})
	}
	if o.codes != nil {
		for ref := range o.devices {
			if now[ref] != o.codes[ref] {
				events = append(events, adapter.Event{Kind: adapter.CodesChanged, Device: ref})
			}
		}
	}
	o.codes = now
	return events
}

// fetch implements Poller.Fetch. The cursor is the time of the last entry of the log. Changes of states and codes are
// sent at once, because they show once.
func (a *Adapter) fetch(ctx context.Context, cursor string) (events []adapter.Event, next string, err error) {
	now := time.Now()
	poll, pollCodes := a.timing.Poll, a.timing.PollCodes
	if a.hook.Works() {
		poll, pollCodes = pushedPause*poll, pushedPause*pollCodes
	}
	poll -= poll / 4 // the pauses of the poller vary
	if now.Sub(a.polls.states) >= poll {
		list, err := a.devicesSince(ctx, 0)
		if err != nil {
			if adapter.ClassOf(err) == adapter.AuthRevoked {
				a.events.Send(adapter.Event{Kind: adapter.AccountRevoked})
			}
			return nil, "", err
		}
		changed, first := a.seen.noteDevices(list)
		if first && cursor != "" { // without a cursor, the poller sends one
			changed = append(changed, adapter.Event{Kind: adapter.Resync})
		}
		a.send(changed)
		a.polls.states = now
	}
	if now.Sub(a.polls.codes) >= pollCodes {
		list, err := a.auths.read(ctx, 0)
		if err != nil {
			return nil, "", err
		}
		a.send(a.seen.noteCodes(list))
		a.polls.codes = now
	}
	if cursor != "" && now.Sub(a.polls.log) < poll {
		return nil, cursor, nil
	}
	events, next, err = a.readLog(ctx, cursor)
	if err != nil && adapter.ClassOf(err) == adapter.NotSupported { // the token lacks the right
		events, next, err = nil, cmp.Or(cursor, cursorAt(now)), nil
	}
	if err == nil {
		a.polls.log = now
	}
	return events, next, err
}

func cursorAt(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (a *Adapter) send(events []adapter.Event) {
	for _, e := range events {
		a.events.Send(e)
	}
}

// readLog returns the events of the entries after a cursor that were not handled.
func (a *Adapter) readLog(ctx context.Context, cursor string) (events []adapter.Event, next string, err error) {
	now := time.Now()
	last := now.Add(-firstLook)
	if cursor != "" {
		if last, err = time.Parse(time.RFC3339Nano, cursor); err != nil {
			return nil, "", adapter.Errorf(adapter.NotFound, "the stored cursor is no time")
		}
	}
	list, err := a.logSince(ctx, last.Add(-overlap))
	if err != nil {
		return nil, "", err
	}
	if len(list) >= logLimit*maxPages { // there may be more
		events = append(events, adapter.Event{Kind: adapter.Resync})
	}
	for _, w := range list {
		// A time in the future would hide all later entries.
		if w.Date.After(last) && w.Date.Before(now.Add(firstLook)) {
			last = w.Date
		}
		fresh := a.seen.isNew(w.ID) && cursor != ""
		if e, ok := w.event(); ok && fresh {
			events = append(events, e)
		}
	}
	return events, cursorAt(last), nil
}

// logSince reads the entries since a time, in the order of their time.
func (a *Adapter) logSince(ctx context.Context, since time.Time) (all []wireLog, err error) {
	query := map[string][]string{"fromDate": {dateOf(&since)}, "limit": {strconv.Itoa(logLimit)}}
	for range maxPages {
		var page adapter.List[wireLog]
		if err := a.do(ctx, vendorhttp.Call{Path: "/smartlock/log", Query: query}, &page); err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(w wireLog) bool { return !isID(w.ID) })
		all = append(all, page...)
		if len(page) < logLimit {
			break
		}
		oldest := slices.MinFunc(page, func(a, b wireLog) int { return a.Date.Compare(b.Date) })
		query["id"] = []string{oldest.ID}
	}
	slices.SortStableFunc(all, func(a, b wireLog) int { return a.Date.Compare(b.Date) })
	return all, nil
}

// Listen follows the account until Close.
func (a *Adapter) Listen() {
	if a.hook.URLs != nil {
		go a.hook.Stay(a.open)
	}
	poller := adapter.Poller{
		Secrets:  a.secrets,
		Queue:    a.events,
		Interval: a.timing.Poll,
		Fetch:    a.fetch,
		Log:      a.slog,
	}
	go poller.Run(a.open)
}
