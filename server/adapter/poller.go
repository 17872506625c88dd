package adapter

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Poller polls the event log of a vendor that sends no pushes, or cannot reach this server. The cursor is stored, so that
// events of a time without a running server are not lost.
type Poller struct {
	Secrets Secrets
	Queue   *EventQueue
	// Interval is the time between two polls of a log without new events.
	Interval time.Duration
	// Fetch returns the events after a cursor in their order, and the cursor after the last of them. With an empty cursor
	// it returns the cursor of the present and no events. It fails like Adapter.Devices, and with NotFound when the vendor
	// no longer has the cursor.
	Fetch func(ctx context.Context, cursor string) (events []Event, next string, err error)
	// Log is never nil.
	Log *slog.Logger
}

// maxPollPause is the maximum time between two polls after errors without a Retry-After.
const maxPollPause = 5 * time.Minute

// Run polls until ctx ends. It sends a Resync when it starts without a cursor, because changes before the cursor are
// unknown. An event may be sent twice: the cursor is stored after the events were sent. Several instances that poll the
// same account repeat each other's events.
func (p *Poller) Run(ctx context.Context) {
	pause := p.Interval
	for ctx.Err() == nil {
		more, err := p.poll(ctx)
		switch e := AsError(err); {
		case err == nil && more:
			continue
		case err == nil:
			pause = p.Interval
		default:
			pause = min(2*pause, maxPollPause)
			if e != nil {
				pause = max(pause, e.RetryAfter)
			}
			p.Log.DebugContext(ctx, "poll the vendor's events", "error", err)
		}
		select {
		case <-time.After(pause*3/4 + rand.N(pause/2+1)):
		case <-ctx.Done():
		}
	}
}

// poll reports whether there were events, so that more may follow.
func (p *Poller) poll(ctx context.Context) (more bool, err error) {
	stored, err := p.Secrets.Load(ctx, CursorSecret)
	if err != nil {
		return false, err
	}
	cursor := string(stored)
	events, next, err := p.Fetch(ctx, cursor)
	if e := AsError(err); e != nil && e.Class == NotFound && cursor != "" {
		cursor = ""
		events, next, err = p.Fetch(ctx, "")
	}
	if err != nil {
		return false, err
	}
	if cursor == "" {
		events = []Event{{Kind: Resync}}
	}
	for _, e := range events {
		if !p.Queue.Send(e) {
			return false, nil
		}
	}
	if next == "" || next == string(stored) {
		return false, nil
	}
	return cursor != "", p.Secrets.Store(ctx, CursorSecret, []byte(next))
}
