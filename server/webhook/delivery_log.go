package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DeliveryAttempt is one request to a webhook and its result.
type DeliveryAttempt struct {
	EventID uuid.UUID
	Due     time.Time     // of the delivery when it was sent; a failure does not count after a later replay
	State   DeliveryState // the new state of the delivery: delivered, pending, or failed
	Pause   time.Duration // pending: time until the next attempt
	Latency time.Duration
	Status  int    // HTTP status; 0: no answer
	Error   string // the cause of the failure, without addresses and secrets
	Excerpt string // the start of the response body
}

// Health is what attempts have shown about a webhook.
type Health struct {
	Failures  int           // consecutive failed attempts up to the last one
	Recovered bool          // one attempt succeeded
	Pause     time.Duration // how long nothing is sent
	Disable   string        // the reason to disable the webhook; empty: keep it enabled
	Healthy   bool          // the last attempt was successful and fast
	Stale     bool          // the webhook was disabled after the attempts, so they say nothing once it is enabled again
}

func excerptPlace(webhook, event uuid.UUID) string {
	return "delivery_attempts.excerpt/" + webhook.String() + "/" + event.String()
}

// RecordDeliveries records attempts and the health that they show. If it disables the webhook, it announces
// that with an event and holds the pending deliveries. It fails with NotFound where the webhook was deleted.
func (s *Service) RecordDeliveries(
	ctx context.Context,
	h store.Fence,
	webhook uuid.UUID,
	attempts []DeliveryAttempt,
	health Health,
) error {
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
		arg.Errors = append(arg.Errors, domain.Storable(a.Error))
		arg.Excerpts = append(arg.Excerpts, excerpt)
	}
	if health.Failures == 0 && health.Pause == 0 && health.Disable == "" {
		if recorded, err := s.recordHealthy(ctx, h, arg, health.Healthy); err != nil || recorded {
			return err
		}
	}
	succeeded := slices.Contains(arg.States, string(DeliveryDelivered))
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
		if health.Stale && w.DisabledAt == nil { // enabled again since
			return nil
		}
		err = tx.SetEndpointHealth(ctx, dbsqlc.SetEndpointHealthParams{
			WebhookID: webhook,
			Failures:  int32(health.Failures),
			IsHealthy: health.Healthy,
			Recovered: health.Recovered,
			Succeeded: succeeded,
			Pause:     health.Pause,
			Silence:   silence,
		})
		if err != nil {
			return err
		}
		switch {
		case w.DisabledAt != nil: // since the attempts
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

// successAccuracy is the accuracy of Webhook.LastSuccess. So most successes need no lock on the webhook.
const successAccuracy = time.Minute

// recordHealthy is RecordDeliveries where neither the health nor the last success change. It does not lock the webhook
// against the fan-out. It returns false if the webhook needs the lock, or does not exist.
func (s *Service) recordHealthy(
	ctx context.Context,
	h store.Fence,
	arg dbsqlc.RecordAttemptsParams,
	prompt bool,
) (recorded bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		recorded = false
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		r, err := tx.ShareWebhook(ctx, dbsqlc.ShareWebhookParams{WebhookID: arg.WebhookID, Accuracy: successAccuracy})
		w := r.Webhook
		if err != nil || !r.SuccessIsRecent || w.ConsecutiveFailures != 0 || w.FailingSince != nil ||
			w.PausedUntil != nil || w.DisabledAt != nil || w.IsHealthy != prompt {
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

// holdBatch is how many deliveries are held in one transaction. It must end within the lease that it checked.
const holdBatch = 5_000

// HoldDeliveries holds a batch of the pending deliveries of a disabled webhook. more reports whether others may
// follow.
func (s *Service) HoldDeliveries(ctx context.Context, h store.Fence, webhook uuid.UUID) (more bool, err error) {
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

// disable disables a webhook, whose row must be locked. HoldDeliveries holds the pending deliveries beyond one
// batch.
func (s *Service) disable(ctx context.Context, tx store.Tx, w dbsqlc.Webhook, reason string) error {
	if err := tx.DisableWebhook(ctx, dbsqlc.DisableWebhookParams{WebhookID: w.WebhookID, Reason: &reason}); err != nil {
		return err
	}
	if _, err := tx.HoldDeliveries(
		ctx,
		dbsqlc.HoldDeliveriesParams{WebhookID: w.WebhookID, MaxRows: holdBatch},
	); err != nil {
		return err
	}
	fields := map[string]any{"webhook_id": w.WebhookID, "disabled_reason": reason}
	return s.events.Write(ctx, tx, dbsqlc.InsertEventParams{
		EventID:     domain.NewID(),
		WorkspaceID: w.WorkspaceID,
		EventType:   event.WebhookDisabled,
		Payload:     domain.MustJSON(fields),
	})
}

// ListDeliveryAttempts lists the attempts to deliver an event to a webhook, oldest first.
func (s *Service) ListDeliveryAttempts(
	ctx context.Context,
	p domain.Principal,
	webhook, event uuid.UUID,
) ([]DeliveryAttempt, error) {
	rows, err := s.db.ListDeliveryAttempts(
		ctx,
		dbsqlc.ListDeliveryAttemptsParams{WorkspaceID: p.WorkspaceID, WebhookID: webhook, EventID: event},
	)
	if err != nil {
		return nil, fmt.Errorf("list the attempts: %w", err)
	}
	out := make([]DeliveryAttempt, len(rows))
	for i, r := range rows {
		a := DeliveryAttempt{
			EventID: r.EventID,
			Latency: time.Duration(r.LatencyUs) * time.Microsecond,
			Error:   domain.Value(r.Error),
		}
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
