package access

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeliveryFilter is a set of conditions on deliveries that must all hold.
type DeliveryFilter struct {
	EventID      *uuid.UUID      // nil: any
	EventTypes   []string        // one of; nil: any
	States       []DeliveryState // one of; nil: any
	Since, Until time.Time       // when the event was made: from the first, up to the second; a zero time is no bound
}

// bounds are the identifiers that those of the events are between.
func (f DeliveryFilter) bounds() (after, before uuid.UUID) {
	if before = uuid.Max; !f.Until.IsZero() {
		before = store.FirstID(f.Until)
	}
	if !f.Since.IsZero() {
		after = store.FirstID(f.Since)
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

func (f DeliveryFilter) takes(eventType string) bool {
	return f.EventTypes == nil || slices.Contains(f.EventTypes, eventType)
}

// DeliveryLog is what has become of an event at a webhook.
type DeliveryLog struct {
	EventID    uuid.UUID
	EventType  string
	OccurredAt time.Time
	State      DeliveryState
	Attempts   int
	Next       *time.Time // pending: when the next attempt is due
}

// deliveryBatch is how many deliveries are read at once.
const deliveryBatch = 500

// ListDeliveries lists what has become of events at a webhook, latest first, at most so many. Of what is not there, it
// lists nothing.
func (s *Service) ListDeliveries(ctx context.Context, p Principal, webhook uuid.UUID, f DeliveryFilter, limit int) (out []DeliveryLog, err error) {
	arg := dbsqlc.ListDeliveriesParams{WorkspaceID: p.WorkspaceID, WebhookID: webhook, EventID: f.EventID, States: f.states()}
	arg.After, arg.Before = f.bounds()
	for len(out) < limit {
		arg.MaxRows = int32(min(limit, deliveryBatch))
		rows, err := s.db.PlannedAnew.ListDeliveries(ctx, arg)
		if err != nil {
			return nil, fmt.Errorf("list the deliveries: %w", err)
		}
		for _, r := range rows {
			arg.Before = r.EventID
			if f.takes(r.EventType) && len(out) < limit {
				out = append(out, DeliveryLog{EventID: r.EventID, EventType: r.EventType, OccurredAt: r.OccurredAt.UTC(),
					State: DeliveryState(r.State), Attempts: int(r.Attempts), Next: r.NextAttemptAt})
			}
		}
		if len(rows) < int(arg.MaxRows) {
			break
		}
	}
	return out, nil
}

// walk reads a batch of deliveries after that of an event, the oldest first, and says where the next batch begins.
func (s *Service) walk(ctx context.Context, p Principal, webhook uuid.UUID, f DeliveryFilter, from uuid.UUID) (rows []dbsqlc.WalkDeliveriesRow, last uuid.UUID, more bool, err error) {
	arg := dbsqlc.WalkDeliveriesParams{WorkspaceID: p.WorkspaceID, WebhookID: webhook, EventID: f.EventID, States: f.states(), MaxRows: deliveryBatch}
	arg.After, arg.Before = f.bounds()
	if bytes.Compare(from[:], arg.After[:]) > 0 {
		arg.After = from
	}
	if rows, err = s.db.PlannedAnew.WalkDeliveries(ctx, arg); err != nil {
		return nil, from, false, fmt.Errorf("read the deliveries: %w", err)
	}
	if last = from; len(rows) > 0 {
		last = rows[len(rows)-1].EventID
	}
	more = len(rows) == deliveryBatch
	return slices.DeleteFunc(rows, func(r dbsqlc.WalkDeliveriesRow) bool { return !f.takes(r.EventType) }), last, more, nil
}

// CountDeliveries counts deliveries by their state, those after an event; uuid.Nil: all. It reads what it counts, a
// batch at a time.
func (s *Service) CountDeliveries(ctx context.Context, p Principal, webhook uuid.UUID, f DeliveryFilter, after uuid.UUID) (map[DeliveryState]int, error) {
	counts := map[DeliveryState]int{}
	for more := true; more; {
		var rows []dbsqlc.WalkDeliveriesRow
		var err error
		if rows, after, more, err = s.walk(ctx, p, webhook, f, after); err != nil {
			return nil, err
		}
		for _, r := range rows {
			counts[DeliveryState(r.State)]++
		}
	}
	return counts, nil
}

// Replayed is what one batch of a replay has come to.
type Replayed struct {
	Deliveries int       // that are due again
	Last       uuid.UUID // the next batch is of the deliveries after that of this event
	More       bool      // there is a next batch
}

// ReplayDeliveries sends deliveries again, with the identifiers and bodies they had: one batch of them, the oldest
// first, after that of an event; uuid.Nil: from the beginning. Without states in the filter they are those that were
// given up or held. It fails with NotFound, and with Conflict when the webhook is disabled.
func (s *Service) ReplayDeliveries(ctx context.Context, p Principal, webhook uuid.UUID, f DeliveryFilter, after uuid.UUID) (out Replayed, err error) {
	if f.States == nil {
		f.States = []DeliveryState{DeliveryFailed, DeliveryHeld}
	}
	rows, last, more, err := s.walk(ctx, p, webhook, f, after)
	if err != nil {
		return Replayed{}, err
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	err = s.onWebhook(ctx, p, webhook, func(tx store.Tx, w dbsqlc.Webhook) error {
		if w.DisabledAt != nil {
			return &Error{Kind: Conflict, Type: "webhook_disabled", Message: "The webhook is disabled: " + text(w.DisabledReason)}
		}
		if err := tx.AwaitPartitions(ctx); err != nil {
			return err
		}
		n, err := tx.ReplayDeliveries(ctx, dbsqlc.ReplayDeliveriesParams{WebhookID: webhook, EventIds: ids, States: f.states()})
		if err != nil || n == 0 {
			return err
		}
		out.Deliveries = int(n)
		_, err = s.wakeWebhooks(ctx, tx, p.WorkspaceID, []uuid.UUID{webhook})
		return err
	})
	if err != nil {
		return Replayed{}, fmt.Errorf("replay deliveries: %w", err)
	}
	out.Last, out.More = last, more
	return out, nil
}

// EnableWebhook lets events be sent to a webhook again; what was held meanwhile stays so until it is replayed. It says
// whether the webhook was disabled, and fails with NotFound.
func (s *Service) EnableWebhook(ctx context.Context, p Principal, webhook uuid.UUID) (was bool, err error) {
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

// DisableWebhook has no more events sent to a webhook, beyond those that are on their way. It says whether it was disabled
// already, and fails with NotFound.
func (s *Service) DisableWebhook(ctx context.Context, p Principal, webhook uuid.UUID, reason string) (was bool, err error) {
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

// onWebhook locks a webhook for a transaction. It fails with NotFound.
func (s *Service) onWebhook(ctx context.Context, p Principal, webhook uuid.UUID, do func(store.Tx, dbsqlc.Webhook) error) error {
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

// ListEndpoints lists the webhooks of all workspaces, without their secrets.
func (s *Service) ListEndpoints(ctx context.Context) ([]Endpoint, error) {
	rows, err := s.db.ListEndpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the webhooks: %w", err)
	}
	out := make([]Endpoint, len(rows))
	for i, r := range rows {
		out[i] = Endpoint{WorkspaceID: r.Webhook.WorkspaceID, Suspended: r.Suspended, Failures: int(r.Webhook.ConsecutiveFailures), Disabled: r.Webhook.DisabledAt != nil,
			FailingFor: time.Duration(r.FailingSeconds * float64(time.Second)),
			Webhook: Webhook{ID: r.Webhook.WebhookID, URL: r.Webhook.Url, EventTypes: r.Webhook.EventTypes,
				DisabledAt: r.Webhook.DisabledAt, DisabledReason: text(r.Webhook.DisabledReason)}}
	}
	return out, nil
}
