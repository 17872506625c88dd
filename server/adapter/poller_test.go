package adapter_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// memorySecrets keeps secrets in memory.
type memorySecrets struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (s *memorySecrets) Load(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name], nil
}

func (s *memorySecrets) Store(_ context.Context, name string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = value
	return nil
}

func (s *memorySecrets) Rotate(ctx context.Context, name string, seen []byte, renew adapter.Renew) ([]byte, error) {
	return renew(ctx, seen)
}

// eventLog is a vendor's log of events. Its cursor is the number of events before it.
type eventLog struct {
	mu      sync.Mutex
	events  []adapter.Event
	deleted int // events that the vendor no longer has
	down    bool
}

func (l *eventLog) add(refs ...adapter.DeviceRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ref := range refs {
		l.events = append(l.events, adapter.Event{Kind: adapter.CodesChanged, Device: ref})
	}
}

func (l *eventLog) set(change func(*eventLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *eventLog) fetch(_ context.Context, cursor string) ([]adapter.Event, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	present := strconv.Itoa(len(l.events))
	if l.down {
		return nil, "", adapter.Errorf(adapter.GatewayDown, "down")
	}
	if cursor == "" {
		return nil, present, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < l.deleted {
		return nil, "", adapter.Errorf(adapter.NotFound, "no such cursor")
	}
	return l.events[n:], present, nil
}

func TestPoller_ContinuesAtCursor(t *testing.T) {
	t.Parallel()
	secrets := &memorySecrets{values: map[string][]byte{}}
	log := &eventLog{}
	log.add("before")
	run := func() (events <-chan adapter.Event, stop func()) {
		queue := adapter.NewEventQueue()
		p := adapter.Poller{
			Secrets:  secrets,
			Queue:    queue,
			Interval: time.Millisecond,
			Fetch:    log.fetch,
			Log:      slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		return queue.Events(), func() { cancel(); running.Wait() }
	}
	expect := func(events <-chan adapter.Event, kind adapter.EventKind, device adapter.DeviceRef) {
		t.Helper()
		if e := <-events; e.Kind != kind || e.Device != device {
			t.Fatalf("%+v, want %s of %q", e, kind, device)
		}
	}
	events, stop := run()
	expect(events, adapter.Resync, "")
	log.set(func(l *eventLog) { l.down = true })
	log.add("a", "b")
	log.set(func(l *eventLog) { l.down = false })
	expect(events, adapter.CodesChanged, "a")
	expect(events, adapter.CodesChanged, "b")
	stop()
	if cursor, _ := secrets.Load(t.Context(), adapter.CursorSecret); string(cursor) == "1" {
		t.Errorf("the cursor is %s", cursor)
	}
	log.add("while stopped")
	events, stop = run()
	for e := range events { // the last events may come twice
		if e.Device == "while stopped" {
			break
		}
	}
	stop()
	log.set(func(l *eventLog) { l.deleted = len(l.events) + 1 })
	log.add("lost", "lost")
	events, stop = run()
	expect(events, adapter.Resync, "")
	stop()
}
