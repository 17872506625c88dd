package seam

import (
	"context"
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
	// webhookPollInterval is the time between reads while a webhook delivers events.
	webhookPollInterval = time.Minute
	// overlap is how far a read reaches back, because servers may store events out of order.
	overlap = 30 * time.Second
	// firstLook is how far the first read reaches back, for clocks that differ.
	firstLook = 5 * time.Minute
	// eventsPerRead is the limit of a read.
	eventsPerRead = 500
	// maxSeen bounds the remembered identifiers of events.
	maxSeen = 4 * eventsPerRead
)

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
		case "connected_account": // its devices may have appeared or gone offline
			out = adapter.Event{Kind: adapter.DeviceListed}
			return out, true
		default:
			return out, false
		}
	}
	if out.Device == "" {
		out = adapter.Event{Kind: adapter.Resync}
	}
	return out, true
}

// eventLog is what the adapter remembers of the log of events.
type eventLog struct {
	mu sync.Mutex
	// seen are the last events that were handled, in the order of their handling.
	seen []string
	// read is when the log was last read.
	read time.Time
}

// isNew reports whether an event was not handled, and marks it as handled.
func (l *eventLog) isNew(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.seen, id) {
		return false
	}
	if len(l.seen) >= maxSeen {
		l.seen = slices.Delete(l.seen, 0, len(l.seen)-maxSeen+1)
	}
	l.seen = append(l.seen, id)
	return true
}

// isDue reports whether the log must be read, and records that it is.
func (l *eventLog) isDue(every time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.read) < every {
		return false
	}
	l.read = now
	return true
}

// unhandled returns where to look for an event of the log or of a push that was not handled before.
func (a *Adapter) unhandled(e wireEvent) (adapter.Event, bool) {
	if e.ID == "" || len(e.ID) > maxIDSize || !a.log.isNew(e.ID) {
		return adapter.Event{}, false
	}
	out, ok := e.event()
	if ok && out.Device != "" {
		a.known.forget(out.Device)
	}
	return out, ok
}

// fetch implements Poller.Fetch. The cursor is the time at which the last event was created.
func (a *Adapter) fetch(ctx context.Context, cursor string) (events []adapter.Event, next string, err error) {
	now := time.Now()
	if cursor == "" {
		return nil, timeText(now.Add(-firstLook)), nil
	}
	at, err := time.Parse(time.RFC3339Nano, cursor)
	if err != nil {
		return nil, "", adapter.Errorf(adapter.NotFound, "the stored cursor is no time")
	}
	if a.hook.Works() && !a.log.isDue(webhookPollInterval, now) {
		return nil, cursor, nil
	}
	list, err := a.readEvents(ctx, at.Add(-overlap))
	if err != nil {
		return nil, "", err
	}
	for _, e := range list {
		if out, ok := a.unhandled(e); ok {
			events = append(events, out)
		}
	}
	// The order of a full answer is not documented, so events may be missing.
	if len(list) >= eventsPerRead {
		events = append(events, adapter.Event{Kind: adapter.Resync})
		at = at.Add(overlap) // more events than a read has in the overlap would stop the cursor
	}
	if last := lastCreated(list, now); last.After(at) {
		at = last
	}
	return events, timeText(at), nil
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

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
	body := map[string]any{"since": timeText(since), "limit": eventsPerRead}
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

// Listen follows the events of the upstream server until Close.
func (a *Adapter) Listen() {
	if a.hook.URLs != nil {
		go a.hook.Stay(a.open)
	}
	poller := adapter.Poller{
		Secrets:  a.secrets,
		Queue:    a.events,
		Interval: a.interval,
		Fetch:    a.fetch,
		Log:      a.slog,
	}
	go poller.Run(a.open)
}
