package seam

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Reading of the event log.
const (
	// defaultPollInterval is the time between reads without a webhook.
	defaultPollInterval = 10 * time.Second
	// withWebhook multiplies the interval while a webhook delivers events.
	withWebhook = 6
	// maxPollPause bounds the pause after failures.
	maxPollPause = 5 * time.Minute
	// overlap is how far a read reaches back, because servers may store events out of order.
	overlap = 30 * time.Second
	// firstLook is how far the first read reaches back, for clocks that differ.
	firstLook = 5 * time.Minute
	// eventsPerRead is the limit of a read.
	eventsPerRead = 500
	// maxSeen bounds the remembered identifiers of events.
	maxSeen = 4 * eventsPerRead
)

// cursorName is the name of the stored cursor.
const cursorName = "cursor"

// wireEvent is an event in the log or in a push.
type wireEvent struct {
	ID         string    `json:"event_id"`
	Type       string    `json:"event_type"`
	DeviceID   string    `json:"device_id"`
	CodeID     string    `json:"access_code_id"`
	Method     string    `json:"method"`
	CreatedAt  time.Time `json:"created_at"`
	OccurredAt time.Time `json:"occurred_at"`
}

// methods maps the methods of lock.locked and lock.unlocked.
var methods = map[string]adapter.Method{
	"keycode":   adapter.ByKeycode,
	"manual":    adapter.ByHand,
	"remote":    adapter.Remotely,
	"automatic": adapter.Automatically,
	"card":      adapter.ByCard,
}

// event returns where to look, and false if the event says nothing about locks.
func (e wireEvent) event() (adapter.Event, bool) {
	out := adapter.Event{Device: adapter.DeviceRef(e.DeviceID)}
	if len(e.DeviceID) > maxIDSize || len(e.CodeID) > maxIDSize || len(e.ID) > maxIDSize {
		return adapter.Event{Kind: adapter.Resync}, true
	}
	operation := adapter.Operation{ID: e.ID, At: e.OccurredAt}
	switch e.Type {
	case "device.connected":
		out.Kind = adapter.DeviceOnline
	case "device.disconnected":
		out.Kind = adapter.DeviceOffline
	case "device.added", "device.removed", "device.deleted", "device.converted_to_unmanaged",
		"device.unmanaged.converted_to_managed":
		out.Kind = adapter.DeviceListed
	case "device.tampered":
		out.Kind, out.Operation = adapter.Tampered, operation
	case "lock.locked", "lock.unlocked":
		out.Kind, out.Code = adapter.LockOperated, adapter.CodeRef(e.CodeID)
		operation.Locked, operation.Method = e.Type == "lock.locked", adapter.ByUnknown
		if method, ok := methods[e.Method]; ok {
			operation.Method = method
		}
		out.Operation = operation
	case "lock.access_denied":
		out.Kind, out.Code, out.Operation = adapter.AccessDenied, adapter.CodeRef(e.CodeID), operation
	default:
		switch group, _, _ := strings.Cut(e.Type, "."); group {
		case "access_code":
			out.Kind, out.Code = adapter.CodesChanged, adapter.CodeRef(e.CodeID)
		case "device":
			out.Kind = adapter.StatusChanged
		case "connected_account":
			out = adapter.Event{Kind: adapter.Resync}
		default:
			return out, false
		}
	}
	if out.Device == "" {
		out = adapter.Event{Kind: adapter.Resync}
	}
	return out, true
}

// cursor is how far the log was read. It is stored as JSON.
type cursor struct {
	At time.Time `json:"at"`
	// Seen are the events near At that were handled, in the order of their handling.
	Seen []string `json:"seen,omitempty"`
}

// eventLog reads the log of events.
type eventLog struct {
	mu sync.Mutex
	cursor
	loaded bool
}

// isNew reports whether an event was not handled, and marks it as handled.
func (l *eventLog) isNew(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.Seen, id) {
		return false
	}
	if len(l.Seen) >= maxSeen {
		l.Seen = slices.Delete(l.Seen, 0, len(l.Seen)-maxSeen+1)
	}
	l.Seen = append(l.Seen, id)
	return true
}

// handle emits an event of the log or of a push once.
func (a *Adapter) handle(e wireEvent) (emitted bool) {
	if e.ID == "" || len(e.ID) > maxIDSize || !a.log2.isNew(e.ID) {
		return false
	}
	out, ok := e.event()
	if !ok {
		return false
	}
	if out.Device != "" {
		a.known.forget(out.Device)
	}
	return a.events.Send(out)
}

// Poll reads the log of events until ctx ends or the adapter is closed.
func (a *Adapter) Poll(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.open, cancel)()
	pause, revoked := time.Duration(0), false
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		err := a.pollOnce(ctx)
		every := a.pollInterval()
		switch {
		case err == nil:
			pause, revoked = every*3/4+rand.N(every/2), false
			continue
		case adapter.ClassOf(err) == adapter.AuthRevoked && !revoked:
			revoked = a.events.Send(adapter.Event{Kind: adapter.AccountRevoked})
		}
		pause = min(max(2*pause, every), max(maxPollPause, every))
		if e := adapter.AsError(err); e != nil {
			pause = max(pause, e.RetryAfter)
		}
		a.log.DebugContext(ctx, "read the events of the upstream server", "error", err)
	}
}

func (a *Adapter) pollInterval() time.Duration {
	if a.hook.works() {
		return withWebhook * a.interval
	}
	return a.interval
}

// pollOnce reads the log from the cursor to its end.
func (a *Adapter) pollOnce(ctx context.Context) error {
	if err := a.loadCursor(ctx); err != nil {
		return err
	}
	since := a.log2.At.Add(-overlap)
	for {
		list, err := a.readEvents(ctx, since)
		if err != nil {
			return err
		}
		changed := false
		for _, e := range list {
			emitted := a.handle(e)
			changed = changed || emitted
		}
		if last := lastCreated(list, time.Now()); last.After(a.log2.At) {
			changed = true
			a.log2.mu.Lock()
			a.log2.At = last
			a.log2.mu.Unlock()
		}
		if changed {
			if err := a.storeCursor(ctx); err != nil {
				return err
			}
		}
		if len(list) < eventsPerRead {
			return nil
		}
		// The order of a full answer is not documented, so events may be missing.
		a.events.Send(adapter.Event{Kind: adapter.Resync})
		if !a.log2.At.After(since) {
			return nil
		}
		since = a.log2.At
	}
}

// lastCreated returns when the last event was created. A time in the future would hide all later events.
func lastCreated(list []wireEvent, now time.Time) (last time.Time) {
	for _, e := range list {
		if e.CreatedAt.After(last) && e.CreatedAt.Before(now.Add(firstLook)) {
			last = e.CreatedAt
		}
	}
	return last
}

// readEvents reads events in the order of their creation.
func (a *Adapter) readEvents(ctx context.Context, since time.Time) ([]wireEvent, error) {
	var got struct {
		Events *adapter.List[wireEvent] `json:"events"`
	}
	body := map[string]any{"since": since.UTC().Format(time.RFC3339Nano), "limit": eventsPerRead}
	if err := a.read(ctx, "/events/list", body, &got); err != nil {
		return nil, err
	}
	if got.Events == nil {
		return nil, adapter.Errorf(adapter.Transient, "the list of events has no \"events\"")
	}
	list := *got.Events
	slices.SortStableFunc(list, func(a, b wireEvent) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, nil
}

// loadCursor loads the stored cursor. Without one, it sends a Resync, because earlier changes are unknown.
func (a *Adapter) loadCursor(ctx context.Context) error {
	if a.log2.loaded {
		return nil
	}
	stored, err := a.store.Load(ctx, cursorName)
	if err != nil {
		return err
	}
	var c cursor
	known := json.Unmarshal(stored, &c) == nil && !c.At.IsZero()
	a.log2.mu.Lock()
	defer a.log2.mu.Unlock()
	a.log2.loaded = true
	if known {
		a.log2.At, a.log2.Seen = c.At, append(c.Seen[:min(len(c.Seen), maxSeen)], a.log2.Seen...)
		return nil
	}
	a.log2.At = time.Now().Add(-firstLook)
	a.events.Send(adapter.Event{Kind: adapter.Resync})
	return nil
}

func (a *Adapter) storeCursor(ctx context.Context) error {
	a.log2.mu.Lock()
	data, err := json.Marshal(cursor{At: a.log2.At, Seen: a.log2.Seen[max(0, len(a.log2.Seen)-eventsPerRead):]})
	a.log2.mu.Unlock()
	if err != nil {
		return adapter.Errorf(adapter.Transient, "the cursor of events cannot be written")
	}
	return a.store.Store(ctx, cursorName, data)
}

// memory is a Store that a restart clears.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name], nil
}

func (m *memory) Store(_ context.Context, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[name] = value
	return nil
}
