package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeliveryAttempt is one request to a webhook and what has come of it.
type DeliveryAttempt struct {
	EventID uuid.UUID
	Due     time.Time     // of the delivery as it was sent: if it has been replayed since, a failure is none of that
	State   DeliveryState // of the delivery from now on: delivered, pending or failed
	Pause   time.Duration // pending: until the next attempt
	Latency time.Duration
	Status  int    // of HTTP; 0: there was no answer
	Error   string // why it counts as a failure; carries no address and no secret
	Excerpt string // how the response's body begins
}

// Health is what attempts have shown about a webhook.
type Health struct {
	Failures  int           // attempts in a row that failed, to the last one
	Recovered bool          // one of these succeeded
	Pause     time.Duration // nothing is sent for so long
	Disable   string        // why nothing is to be sent any more; empty: go on
	Prompt    bool          // the last of them was well, and came soon
	Past      bool          // it has been disabled since these were sent: once it is enabled again they show nothing
}

func excerptPlace(webhook, event uuid.UUID) string {
	return "delivery_attempts.excerpt/" + webhook.String() + "/" + event.String()
}

// RecordDeliveries writes down attempts and what they have shown. When a webhook is disabled, an event tells of
// it and what is pending is held. It fails with NotFound when the webhook has been deleted.
func (s *Service) RecordDeliveries(ctx context.Context, h Holder, webhook uuid.UUID, attempts []DeliveryAttempt, health Health) error {
	arg := dbsqlc.RecordAttemptsParams{WebhookID: webhook}
	for _, a := range attempts {
		var excerpt []byte
		if a.Excerpt != "" {
			excerpt = s.keys.Seal(excerptPlace(webhook, a.EventID), []byte(a.Excerpt))
		}
		arg.EventIds = append(arg.EventIds, a.EventID)
		arg.Dues = append(arg.Dues, a.Due)
		arg.States = append(arg.States, string(a.State))
		arg.PausesUs = append(arg.PausesUs, a.Pause.Microseconds())
		arg.LatenciesUs = append(arg.LatenciesUs, a.Latency.Microseconds())
		arg.Statuses = append(arg.Statuses, int32(a.Status))
		arg.Errors = append(arg.Errors, storable(a.Error))
		arg.Excerpts = append(arg.Excerpts, excerpt)
	}
	if health.Failures == 0 && health.Pause == 0 && health.Disable == "" {
		if recorded, err := s.recordOfHealthy(ctx, h, arg, health.Prompt); err != nil || recorded {
			return err
		}
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		w, err := tx.LockWebhook(ctx, webhook)
		if err != nil {
			return err
		}
		if err := tx.RecordAttempts(ctx, arg); err != nil {
			return err
		}
		if health.Past && w.DisabledAt == nil { // enabled again meanwhile
			return nil
		}
		err = tx.SetEndpointHealth(ctx, dbsqlc.SetEndpointHealthParams{WebhookID: webhook, Failures: int32(health.Failures),
			IsHealthy: health.Prompt, Recovered: health.Recovered, Pause: health.Pause, Silence: silence})
		if err != nil {
			return err
		}
		switch {
		case w.DisabledAt != nil: // meanwhile
			_, err := tx.HoldDeliveries(ctx, dbsqlc.HoldDeliveriesParams{WebhookID: webhook, MaxRows: holdBatch})
			return err
		case health.Disable != "":
			return s.disable(ctx, tx, w, health.Disable)
		}
		return nil
	})
	if store.IsNoRows(err) {
		return webhookNotFound(webhook.String())
	}
	if err != nil {
		return fmt.Errorf("record deliveries to webhook %s: %w", webhook, err)
	}
	return nil
}

// recordOfHealthy is RecordDeliveries where nothing is new about the webhook: all was well, and is. It leaves the webhook to those who
// have it locked to hand out more. false: it is to be locked, or deleted.
func (s *Service) recordOfHealthy(ctx context.Context, h Holder, arg dbsqlc.RecordAttemptsParams, prompt bool) (recorded bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		recorded = false
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		w, err := tx.ShareWebhook(ctx, arg.WebhookID)
		if err != nil || w.ConsecutiveFailures != 0 || w.FailingSince != nil || w.PausedUntil != nil || w.DisabledAt != nil || w.IsHealthy != prompt {
			return err
		}
		recorded = true
		return tx.RecordAttempts(ctx, arg)
	})
	if store.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("record deliveries to webhook %s: %w", arg.WebhookID, err)
	}
	return recorded, nil
}

// holdBatch is how many deliveries are held in one transaction. Nobody renews the lease that it has checked before it ends.
const holdBatch = 5_000

// HoldDeliveries holds what is pending at a webhook that is disabled, a batch of it, and says whether there may be more.
func (s *Service) HoldDeliveries(ctx context.Context, h Holder, webhook uuid.UUID) (more bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		more = false
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		w, err := tx.LockWebhook(ctx, webhook)
		if err != nil || w.DisabledAt == nil {
			return err
		}
		held, err := tx.HoldDeliveries(ctx, dbsqlc.HoldDeliveriesParams{WebhookID: webhook, MaxRows: holdBatch})
		more = held == holdBatch
		return err
	})
	if store.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("hold the deliveries to webhook %s: %w", webhook, err)
	}
	return more, nil
}

// disable ends the sending to a webhook. The row must be locked. What else is pending is left to HoldDeliveries.
func (s *Service) disable(ctx context.Context, tx store.Tx, w dbsqlc.Webhook, reason string) error {
	if err := tx.DisableWebhook(ctx, dbsqlc.DisableWebhookParams{WebhookID: w.WebhookID, Reason: &reason}); err != nil {
		return err
	}
	if _, err := tx.HoldDeliveries(ctx, dbsqlc.HoldDeliveriesParams{WebhookID: w.WebhookID, MaxRows: holdBatch}); err != nil {
		return err
	}
	fields := map[string]any{"webhook_id": w.WebhookID, "disabled_reason": reason}
	return s.writeEvent(ctx, tx, dbsqlc.InsertEventParams{EventID: newID(), WorkspaceID: w.WorkspaceID, EventType: WebhookDisabled, Payload: mustJSON(fields)})
}

// ListDeliveryAttempts lists the attempts to deliver an event to a webhook, the first one first.
func (s *Service) ListDeliveryAttempts(ctx context.Context, p Principal, webhook, event uuid.UUID) ([]DeliveryAttempt, error) {
	rows, err := s.db.ListDeliveryAttempts(ctx, dbsqlc.ListDeliveryAttemptsParams{WorkspaceID: p.WorkspaceID, WebhookID: webhook, EventID: event})
	if err != nil {
		return nil, fmt.Errorf("list the attempts: %w", err)
	}
	out := make([]DeliveryAttempt, len(rows))
	for i, r := range rows {
		a := DeliveryAttempt{EventID: r.EventID, Latency: time.Duration(r.LatencyUs) * time.Microsecond, Error: text(r.Error)}
		if r.Status != nil {
			a.Status = int(*r.Status)
		}
		if r.ExcerptSealed != nil {
			excerpt, err := s.keys.Open(excerptPlace(webhook, event), r.ExcerptSealed)
			if err != nil {
				return nil, fmt.Errorf("open the excerpt of attempt %d: %w", r.Attempt, err)
			}
			a.Excerpt = string(excerpt)
		}
		out[i] = a
	}
	return out, nil
}
