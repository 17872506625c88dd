package tedee

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Tedee pushes events only to registered applications, and none about codes. So the adapter polls: one call reads the
// states of all locks, and a changed state leads to the activity log of the lock. Now and then it looks at each lock's
// version of the list of codes, and at its log, because a refused PIN changes no state.

const (
	// activitiesPerRead is the number of activities in one read; the vendor allows 200.
	activitiesPerRead = 100
	// activityOverlap is how far a read of the log reaches back, because locks may report activities late.
	activityOverlap = 10 * time.Minute
	// probesPerPoll is the number of locks whose codes and log one poll looks at.
	probesPerPoll = 3
	// probeWait is how long a probe waits for other calls of the lock's codes.
	probeWait = time.Second
	// maxSeen bounds the remembered activities. The server recognizes a repeated event by its identifier.
	maxSeen = 10_000
)

// snapshot is what the last poll found. It is the cursor, which all instances share.
type snapshot struct {
	At    time.Time                        `json:"at"`
	Locks map[adapter.DeviceRef]*lockState `json:"locks"`
}

// lockState is what the last poll found about a lock.
type lockState struct {
	ID      int64  `json:"id"`
	Online  bool   `json:"online,omitempty"`
	State   int    `json:"state"`
	Changed string `json:"changed,omitempty"`
	// Logged is the value of Changed up to which the log was read.
	Logged string `json:"logged,omitempty"`
	// Since is the time from which activities count, and Last the time of the last one, by the vendor's clock.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Version is that of the list of codes; -1: unknown.
	Version int64 `json:"version"`
	// Probed is the time of the last probe.
	Probed time.Time `json:"probed,omitzero"`
}

// Listen follows the events of the account until Close.
func (a *Adapter) Listen() {
	poller := adapter.Poller{
		Secrets:  a.secrets,
		Queue:    a.events,
		Interval: a.pollInterval,
		Fetch:    a.fetch,
		Log:      a.log,
	}
	go poller.Run(a.open)
}

// fetch implements Poller.Fetch.
func (a *Adapter) fetch(ctx context.Context, cursor string) (events []adapter.Event, next string, err error) {
	var before snapshot
	if cursor != "" && json.Unmarshal([]byte(cursor), &before) != nil {
		return nil, "", adapter.Errorf(adapter.NotFound, "the stored cursor cannot be read")
	}
	now := a.now()
	// The poller calls again at once, and another instance may have polled.
	if age := now.Sub(before.At); cursor != "" && age >= 0 && age < a.pollInterval/2 {
		return nil, cursor, nil
	}
	states, err := a.syncAll(ctx)
	if err != nil {
		return nil, "", err
	}
	after := snapshot{At: now.UTC(), Locks: map[adapter.DeviceRef]*lockState{}}
	for _, device := range slices.Sorted(maps.Keys(states)) {
		was := before.Locks[device]
		is := stateOf(states[device], was, now)
		after.Locks[device] = is
		switch {
		case cursor == "":
		case was == nil:
			events = append(events, adapter.Event{Kind: adapter.DeviceListed, Device: device})
		default:
			events = append(events, a.changes(ctx, device, *was, is)...)
		}
	}
	for device := range before.Locks {
		if after.Locks[device] == nil {
			events = append(events, adapter.Event{Kind: adapter.DeviceListed, Device: device})
		}
	}
	if cursor != "" {
		events = append(events, a.probe(ctx, after, now)...)
	}
	stored, err := json.Marshal(after)
	return events, string(stored), err
}

// syncAll reads the states of all locks by serial number. It lists the locks if one is unknown.
func (a *Adapter) syncAll(ctx context.Context) (map[adapter.DeviceRef]wireSync, error) {
	var got *adapter.List[wireSync]
	if err := a.do(ctx, vendorhttp.Call{Path: "/my/lock/sync"}, &got); err != nil {
		return nil, err
	}
	if got == nil {
		return nil, adapter.Errorf(adapter.Transient, "the list of states has no \"result\"")
	}
	serials, unlisted := a.locks.serials()
	isNew := func(s wireSync) bool { return serials[s.ID] == "" && !unlisted[s.ID] }
	if slices.ContainsFunc(*got, isNew) {
		if _, err := a.listLocks(ctx); err != nil {
			return nil, err
		}
		serials, _ = a.locks.serials()
		for _, s := range *got {
			if serials[s.ID] == "" {
				a.locks.markUnlisted(s.ID)
			}
		}
	}
	states := make(map[adapter.DeviceRef]wireSync, len(*got))
	for _, s := range *got {
		if serial := serials[s.ID]; serial != "" {
			states[serial] = s
		}
	}
	return states, nil
}

// stateOf returns the state of a lock, with what is remembered of it.
func stateOf(s wireSync, was *lockState, now time.Time) *lockState {
	is := &lockState{Version: -1}
	if was != nil {
		*is = *was
	}
	is.ID, is.Online = s.ID, isTrue(s.IsConnected)
	if s.State != nil { // otherwise the last known state remains
		is.State, is.Changed = s.State.State, s.State.Changed
	}
	if was == nil {
		is.Since = now.UTC()
		if changed, ok := parseTime(is.Changed); ok {
			is.Since = changed
		}
		is.Last, is.Logged, is.Probed = is.Since, is.Changed, now.UTC()
	}
	return is
}

// changes returns the events between two states of a lock. It reads the log if the bolt moved. A StatusChanged would
// cost another list of the locks, so it is sent only if the log does not explain the position of the bolt. The other
// properties show in the next regular list.
func (a *Adapter) changes(
	ctx context.Context, device adapter.DeviceRef, was lockState, is *lockState,
) (events []adapter.Event) {
	if was.Online != is.Online {
		kind := adapter.DeviceOffline
		if is.Online {
			kind = adapter.DeviceOnline
		}
		events = append(events, adapter.Event{Kind: kind, Device: device})
	}
	if is.Logged != is.Changed {
		events = append(events, a.readLog(ctx, device, is)...)
	}
	if was.State == is.State && was.Changed == is.Changed {
		return events
	}
	position := (&wireState{State: is.State}).locked()
	for _, e := range slices.Backward(events) {
		if e.Kind == adapter.LockOperated {
			if position != nil && *position == e.Operation.Locked {
				return events
			}
			break
		}
	}
	return append(events, adapter.Event{Kind: adapter.StatusChanged, Device: device})
}

// wireActivity is an entry of the log (datastructures/device-activity). Samples call the name "username".
type wireActivity struct {
	ID       int64  `json:"id"`
	Event    int    `json:"event"`
	UserID   *int64 `json:"userId"`
	Username string `json:"username"`
	Date     string `json:"date"`
}

// readLog returns the events of new activities in their order. After an error, a later poll reads them.
func (a *Adapter) readLog(ctx context.Context, device adapter.DeviceRef, is *lockState) (events []adapter.Event) {
	var got *adapter.List[wireActivity]
	query := url.Values{
		"deviceId": {strconv.FormatInt(is.ID, 10)},
		"elements": {strconv.Itoa(activitiesPerRead)},
	}
	err := a.do(ctx, vendorhttp.Call{Path: "/my/deviceactivity", Query: query}, &got)
	switch {
	case statusOf(err) == http.StatusForbidden: // the key lacks the scope, or the user the rights
		is.Logged = is.Changed
		return nil
	case err != nil || got == nil:
		a.log.DebugContext(ctx, "read the activity log of a lock", "error", err)
		return nil
	}
	is.Logged = is.Changed
	from := is.Last.Add(-activityOverlap)
	if from.Before(is.Since) {
		from = is.Since
	}
	log := *got
	slices.Reverse(log) // the newest come first
	slices.SortStableFunc(log, func(a, b wireActivity) int { return cmp.Compare(a.Date, b.Date) })
	for _, entry := range log {
		at, ok := parseTime(entry.Date)
		if !ok || !at.After(from) || entry.ID <= 0 || !a.seen.isNew(entry.ID) {
			continue
		}
		if at.After(is.Last) && at.Before(a.now().Add(activityOverlap)) { // a time in the future would hide later ones
			is.Last = at
		}
		if e, ok := a.logEvent(device, entry, at); ok {
			events = append(events, e)
		}
	}
	return events
}

// meaning is what a type of activity says about the bolt.
type meaning struct {
	kind   adapter.EventKind
	locked bool
	method adapter.Method
	// byPIN means that the username may be the name of a code.
	byPIN bool
}

// meanings are the types of activities (enums/event-type). The types 88, 90, and 226 to 229 move the bolt in
// directions that are not documented, so the state of the lock shows them. A jam (40) names no direction, so that it
// could fail the next command: Lock and Unlock report jams.
var meanings = map[int]meaning{
	32: {adapter.LockOperated, true, adapter.Remotely, false},
	33: {adapter.LockOperated, false, adapter.Remotely, false},
	34: {adapter.LockOperated, true, adapter.ByHand, false},
	35: {adapter.LockOperated, false, adapter.ByHand, false},
	36: {adapter.LockOperated, true, adapter.Automatically, false},
	37: {adapter.LockOperated, false, adapter.Automatically, false},
	38: {adapter.LockOperated, true, adapter.ByHand, false},
	39: {adapter.LockOperated, false, adapter.ByHand, false},
	56: {adapter.LockOperated, true, adapter.ByHand, false},
	57: {adapter.LockOperated, false, adapter.Remotely, false},
	59: {adapter.LockOperated, true, adapter.Remotely, false},
	61: {adapter.LockOperated, false, adapter.ByKeycode, true},
	62: {adapter.AccessDenied, false, "", false},
	65: {adapter.LockOperated, true, adapter.ByHand, false},
	66: {adapter.LockOperated, true, adapter.ByHand, false},
	75: {adapter.AccessDenied, false, "", true},
	77: {adapter.LockOperated, false, adapter.ByUnknown, false},
}

// logEvent converts an activity. It reports false if the activity says nothing about the bolt.
func (a *Adapter) logEvent(device adapter.DeviceRef, entry wireActivity, at time.Time) (adapter.Event, bool) {
	m, ok := meanings[entry.Event]
	if !ok {
		return adapter.Event{}, false
	}
	e := adapter.Event{
		Kind:   m.kind,
		Device: device,
		Operation: adapter.Operation{
			ID:     strconv.FormatInt(entry.ID, 10),
			Locked: m.locked,
			Method: m.method,
			At:     at,
		},
	}
	// An entry with a userId names a user.
	if m.byPIN && entry.UserID == nil && entry.Username != "" {
		e.Code = a.codes.byName(device, entry.Username)
	}
	return e, true
}

// activityIndex remembers activities that were sent. Its zero value is ready.
type activityIndex struct {
	mu   sync.Mutex
	sent map[int64]struct{}
}

// isNew reports whether an activity was not sent, and marks it as sent.
func (x *activityIndex) isNew(id int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, there := x.sent[id]; there {
		return false
	}
	if x.sent == nil || len(x.sent) >= maxSeen {
		x.sent = map[int64]struct{}{}
	}
	x.sent[id] = struct{}{}
	return true
}

// probe looks at the locks whose last probe is the longest ago.
func (a *Adapter) probe(ctx context.Context, s snapshot, now time.Time) (events []adapter.Event) {
	var due []adapter.DeviceRef
	for device, is := range s.Locks {
		if is.Online && now.Sub(is.Probed).Abs() >= a.probeInterval {
			due = append(due, device)
		}
	}
	slices.SortFunc(due, func(a, b adapter.DeviceRef) int {
		return cmp.Or(s.Locks[a].Probed.Compare(s.Locks[b].Probed), cmp.Compare(a, b))
	})
	for _, device := range due[:min(len(due), probesPerPoll)] {
		is := s.Locks[device]
		is.Probed = now.UTC()
		if a.probeCodes(ctx, device, is) {
			events = append(events, adapter.Event{Kind: adapter.CodesChanged, Device: device})
		}
		events = append(events, a.readLog(ctx, device, is)...)
	}
	return events
}

// probeCodes reports whether the list of codes changed since the last probe. Before the first one it may have changed.
func (a *Adapter) probeCodes(ctx context.Context, device adapter.DeviceRef, is *lockState) (changed bool) {
	known, ok := a.locks.of(device)
	if !ok || !known.caps.OnlineCodes {
		return false
	}
	waiting, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	release, err := a.lines.Hold(waiting, string(device))
	if err != nil {
		return false
	}
	defer release()
	got, changed, err := a.fetchList(ctx, known, is.Version)
	if err != nil || !changed {
		return false
	}
	is.Version = got.Version
	return true
}
