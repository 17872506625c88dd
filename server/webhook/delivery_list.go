package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeliveryFilter is a set of conditions on deliveries that must all hold.
type DeliveryFilter struct {
	EventID      *uuid.UUID      // nil: any
	EventTypes   []string        // one of; nil: any
	States       []DeliveryState // one of; nil: any
	Since, Until time.Time       // the creation time of the event: inclusive start, exclusive end; zero: no bound
}

// bounds returns the exclusive bounds of the event identifiers.
func (f DeliveryFilter) bounds() (after, before uuid.UUID) {
	if before = uuid.Max; !f.Until.IsZero() {
		before = store.MinIDAt(f.Until)
	}
	if !f.Since.IsZero() {
		after = store.MinIDAt(f.Since)
	}
	return after, before
}

func (f DeliveryFilter) states() (out []string) {
	states := f.States
	if states == nil {
		states = []DeliveryState{DeliveryPending, DeliveryDelivered, DeliveryFailed, DeliveryHeld}
	}
	for _, state := range states {
		out = append(out, string(state))
	}
	return out
}

func (f DeliveryFilter) matches(eventType string) bool {
	return f.EventTypes == nil || slices.Contains(f.EventTypes, eventType)
}

// DeliveryLog is the state of an event at a webhook.
type DeliveryLog struct {
	EventID    uuid.UUID
	EventType  string
	OccurredAt time.Time
	State      DeliveryState
	Attempts   int
	Next       *time.Time // pending: when the next attempt is due
}

// deliveryBatch is how many deliveries one query reads.
const deliveryBatch = 500

// ListDeliveries lists deliveries to a webhook, latest first, at most limit. It returns none for an unknown
// webhook.
func (s *Service) ListDeliveries(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	limit int,
) (out []DeliveryLog, err error) {
	arg := dbsqlc.ListDeliveriesParams{
		WorkspaceID: p.WorkspaceID,
		WebhookID:   webhook,
		EventID:     f.EventID,
		States:      f.states(),
	}
	arg.After, arg.Before = f.bounds()
	for len(out) < limit {
		arg.MaxRows = int32(min(limit, deliveryBatch))
		rows, err := s.db.UnpreparedQueries.ListDeliveries(ctx, arg)
		if err != nil {
			return nil, fmt.Errorf("list the deliveries: %w", err)
		}
		for _, r := range rows {
			arg.Before = r.EventID
			if f.matches(r.EventType) && len(out) < limit {
				out = append(out, DeliveryLog{
					EventID:    r.EventID,
					EventType:  r.EventType,
					OccurredAt: r.OccurredAt.UTC(),
					State:      DeliveryState(r.State),
					Attempts:   int(r.Attempts),
					Next:       r.NextAttemptAt,
				})
			}
		}
		if len(rows) < int(arg.MaxRows) {
			break
		}
	}
	return out, nil
}

// walkDeliveries reads a batch of deliveries after an event, oldest first. The next batch starts after last.
func (s *Service) walkDeliveries(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	from uuid.UUID,
) (rows []dbsqlc.WalkDeliveriesRow, last uuid.UUID, more bool, err error) {
	arg := dbsqlc.WalkDeliveriesParams{
		WorkspaceID: p.WorkspaceID,
		WebhookID:   webhook,
		EventID:     f.EventID,
		States:      f.states(),
		MaxRows:     deliveryBatch,
	}
	arg.After, arg.Before = f.bounds()
	if bytes.Compare(from[:], arg.After[:]) > 0 {
		arg.After = from
	}
	if rows, err = s.db.UnpreparedQueries.WalkDeliveries(ctx, arg); err != nil {
		return nil, from, false, fmt.Errorf("read the deliveries: %w", err)
	}
	if last = from; len(rows) > 0 {
		last = rows[len(rows)-1].EventID
	}
	more = len(rows) == deliveryBatch
	return slices.DeleteFunc(
		rows,
		func(r dbsqlc.WalkDeliveriesRow) bool { return !f.matches(r.EventType) },
	), last, more, nil
}

// CountDeliveries counts the deliveries after an event by state. uuid.Nil counts all. It reads them in batches.
func (s *Service) CountDeliveries(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	after uuid.UUID,
) (map[DeliveryState]int, error) {
	counts := map[DeliveryState]int{}
	for more := true; more; {
		var rows []dbsqlc.WalkDeliveriesRow
		var err error
		if rows, after, more, err = s.walkDeliveries(ctx, p, webhook, f, after); err != nil {
			return nil, err
		}
		for _, r := range rows {
			counts[DeliveryState(r.State)]++
		}
	}
	return counts, nil
}

// replayBatches is how many batches CountReplay and Replay read.
const replayBatches = 20

// MaxReplay is how many deliveries CountReplay and Replay read.
const MaxReplay = replayBatches * deliveryBatch

// ReplayCount is what a call of Replay would send.
type ReplayCount struct {
	ByState map[DeliveryState]int
	Last    uuid.UUID // the rest starts after this event
	More    bool      // Replay reads no more than this, but there can be more
}

// CountReplay counts what Replay sends with the same arguments.
func (s *Service) CountReplay(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	after uuid.UUID,
) (ReplayCount, error) {
	out := ReplayCount{ByState: map[DeliveryState]int{}, Last: after, More: true}
	for batch := 0; out.More && batch < replayBatches; batch++ {
		var rows []dbsqlc.WalkDeliveriesRow
		var err error
		if rows, out.Last, out.More, err = s.walkDeliveries(ctx, p, webhook, f, out.Last); err != nil {
			return ReplayCount{}, err
		}
		for _, r := range rows {
			out.ByState[DeliveryState(r.State)]++
		}
	}
	return out, nil
}

// Replay runs ReplayDeliveries for at most MaxReplay deliveries. Each batch has a transaction of its own, so those
// before a failed one are pending again.
func (s *Service) Replay(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	after uuid.UUID,
) (Replayed, error) {
	out := Replayed{Last: after, More: true}
	for batch := 0; out.More && batch < replayBatches; batch++ {
		r, err := s.ReplayDeliveries(ctx, p, webhook, f, out.Last)
		if err != nil {
			return out, err
		}
		out.Deliveries += r.Deliveries
		out.Last, out.More = r.Last, r.More
	}
	return out, nil
}

// Replayed is the result of a replay, or of one batch of it.
type Replayed struct {
	Deliveries int       // deliveries that are pending again
	Last       uuid.UUID // the next batch starts after this event
	More       bool      // another batch follows
}

// ReplayDeliveries makes one batch of deliveries pending again, oldest first, with their identifiers and
// bodies. It starts after an event; uuid.Nil starts at the first. A filter without states selects failed and
// held deliveries. It fails with NotFound, and with Conflict where the webhook is disabled.
func (s *Service) ReplayDeliveries(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	f DeliveryFilter,
	after uuid.UUID,
) (out Replayed, err error) {
	if f.States == nil {
		f.States = []DeliveryState{DeliveryFailed, DeliveryHeld}
	}
	rows, last, more, err := s.walkDeliveries(ctx, p, webhook, f, after)
	if err != nil {
		return Replayed{}, err
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	err = s.onWebhook(ctx, p, webhook, func(tx store.Tx, w dbsqlc.Webhook) error {
		if w.DisabledAt != nil {
			return &domain.Error{
				Kind:    domain.Conflict,
				Type:    "webhook_disabled",
				Message: "The webhook is disabled: " + domain.Value(w.DisabledReason),
			}
		}
		if err := tx.AwaitPartitions(ctx); err != nil {
			return err
		}
		n, err := tx.ReplayDeliveries(
			ctx,
			dbsqlc.ReplayDeliveriesParams{WebhookID: webhook, EventIds: ids, States: f.states()},
		)
		if err != nil || n == 0 {
			return err
		}
		out.Deliveries = int(n)
		_, err = s.WakeEndpoints(ctx, tx, p.WorkspaceID, []uuid.UUID{webhook})
		return err
	})
	if err != nil {
		return Replayed{}, fmt.Errorf("replay deliveries: %w", err)
	}
	out.Last, out.More = last, more
	return out, nil
}

// EnableWebhook enables a webhook. Held deliveries stay held until they are replayed. was reports whether the
// webhook was disabled. It fails with NotFound.
func (s *Service) EnableWebhook(ctx context.Context, p domain.Principal, webhook uuid.UUID) (was bool, err error) {
	err = s.onWebhook(ctx, p, webhook, func(tx store.Tx, w dbsqlc.Webhook) error {
		if was = w.DisabledAt != nil; !was {
			return nil
		}
		return tx.EnableWebhook(ctx, webhook)
	})
	if err != nil {
		return false, fmt.Errorf("enable the webhook: %w", err)
	}
	return was, nil
}

// DisableWebhook disables a webhook. Attempts in flight continue. was reports whether it was already disabled.
// It fails with NotFound.
func (s *Service) DisableWebhook(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	reason string,
) (was bool, err error) {
	err = s.onWebhook(ctx, p, webhook, func(tx store.Tx, w dbsqlc.Webhook) error {
		if was = w.DisabledAt != nil; was {
			return nil
		}
		return s.disable(ctx, tx, w, reason)
	})
	if err != nil {
		return false, fmt.Errorf("disable the webhook: %w", err)
	}
	return was, nil
}

// onWebhook runs do in a transaction with the webhook locked. It fails with NotFound.
func (s *Service) onWebhook(
	ctx context.Context,
	p domain.Principal,
	webhook uuid.UUID,
	do func(store.Tx, dbsqlc.Webhook) error,
) error {
	return s.db.InTx(ctx, func(tx store.Tx) error {
		w, err := tx.LockWebhook(ctx, webhook)
		if store.IsNoRows(err) || err == nil && w.WorkspaceID != p.WorkspaceID {
			return webhookNotFound(webhook.String())
		}
		if err != nil {
			return err
		}
		tx.Concerns(p.WorkspaceID)
		return do(tx, w)
	})
}

// ListEndpoints lists the webhooks of all workspaces, without their secrets, with their waiting events.
func (s *Service) ListEndpoints(ctx context.Context) ([]Endpoint, error) {
	rows, err := s.db.ListEndpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the webhooks: %w", err)
	}
	out := make([]Endpoint, len(rows))
	at, busy := map[uuid.UUID]int{}, []uuid.UUID(nil)
	for i, r := range rows {
		out[i] = Endpoint{
			Webhook:     withoutSecret(r.Webhook),
			WorkspaceID: r.Webhook.WorkspaceID,
			Suspended:   r.Suspended,
			Disabled:    r.Webhook.DisabledAt != nil,
			FailingFor:  time.Duration(r.FailingSeconds * float64(time.Second)),
		}
		if at[r.Webhook.WebhookID] = i; r.Suspended || mayWait(r.Webhook) {
			busy = append(busy, r.Webhook.WebhookID)
		}
	}
	return out, s.countWaiting(ctx, busy, func(id uuid.UUID, n int) { out[at[id]].Waiting = n })
}
