package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// DeliveryState is the state of the delivery of an event to a webhook.
type DeliveryState string

// Delivery states.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // the server gave up
	DeliveryHeld      DeliveryState = "held"   // the webhook is disabled; a replay makes it pending again
)

// fanOutDeliveries is the maximum number of deliveries created in one transaction, except for those of the last
// event. A value four times as high finishes a large backlog slightly sooner, but delays each event three times
// as long.
const fanOutDeliveries = 5_000

// FanOutEvents creates the deliveries of the oldest events of a workspace, at most so many, and wakes their webhooks,
// which it returns. It alternates between the accounts, starting with the one after the given account. last is
// the account that had the last turn. A lease is released in the same transaction, and last is uuid.Nil if no events
// are left then.
func (s *Service) FanOutEvents(
	ctx context.Context,
	h store.Fence,
	workspace, after uuid.UUID,
	events int32,
) (woken []uuid.UUID, last uuid.UUID, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		var err error
		woken, last, err = s.fanOut(ctx, tx, dbsqlc.TakeEventsParams{
			WorkspaceID:   workspace,
			After:         after,
			MaxRows:       events,
			MaxDeliveries: fanOutDeliveries,
		})
		lease, ok := h.(*worker.Lease)
		if err != nil || !ok {
			return err
		}
		more := false
		err = tx.BatchLast(ctx, lease.Release(ctx, tx, func(tx store.Tx) (bool, error) {
			more, err = tx.OutboxDue(ctx, workspace)
			return more, err
		})...)
		if !more {
			last = uuid.Nil
		}
		return err
	})
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("fan out the events of workspace %s: %w", workspace, err)
	}
	return woken, last, nil
}

// fanOut is FanOutEvents in a transaction.
func (s *Service) fanOut(
	ctx context.Context,
	tx store.Tx,
	take dbsqlc.TakeEventsParams,
) (woken []uuid.UUID, last uuid.UUID, err error) {
	taken, err := tx.TakeEvents(ctx, take)
	if err != nil || len(taken) == 0 {
		return nil, last, err
	}
	last = taken[0].Last
	arg := dbsqlc.FanOutParams{}
	types := map[string]bool{}
	for _, e := range taken {
		arg.EventIds = append(arg.EventIds, e.EventID)
		types[e.EventType] = true
	}
	// Lock only webhooks that receive one of these events, so that the others cost nothing.
	arg.WebhookIds, err = tx.LockWebhooksFor(
		ctx,
		dbsqlc.LockWebhooksForParams{WorkspaceID: take.WorkspaceID, EventTypes: slices.Collect(maps.Keys(types))},
	)
	if err != nil || len(arg.WebhookIds) == 0 {
		return nil, last, err
	}
	ids, err := tx.FanOut(ctx, arg)
	if err != nil || len(ids) == 0 {
		return nil, last, err
	}
	woken, err = s.WakeEndpoints(ctx, tx, take.WorkspaceID, ids)
	return woken, last, err
}

// WakeEndpoints wakes webhooks of a workspace and returns those that are due now. A paused webhook becomes due
// at the end of its pause, and those of a suspended workspace when it resumes.
func (s *Service) WakeEndpoints(
	ctx context.Context,
	tx store.Tx,
	workspace uuid.UUID,
	ids []uuid.UUID,
) (woken []uuid.UUID, err error) {
	if woken, err = tx.WakeWebhooks(
		ctx,
		dbsqlc.WakeWebhooksParams{WorkspaceID: workspace, WebhookIds: ids},
	); err != nil {
		return nil, err
	}
	return woken, s.waker.WakeEach(ctx, tx, domain.EndpointLane, woken)
}

// OutboxDue reports whether a workspace has events without deliveries.
func (s *Service) OutboxDue(ctx context.Context, workspace uuid.UUID) (bool, error) {
	return s.db.OutboxDue(ctx, workspace)
}

// DueOutboxes lists workspaces with such events that are not leased.
func (s *Service) DueOutboxes(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return s.db.DueOutboxes(ctx, dbsqlc.DueOutboxesParams{MaxRows: limit, ExcludeCreators: but.Creators})
}

// OutboxOwners returns the creators of workspaces.
func (s *Service) OutboxOwners(ctx context.Context, workspaces []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.ListWorkspaceCreators(ctx, workspaces)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.WorkspaceID] = worker.Owners{Creator: r.CreatedBy}
	}
	return owners, err
}

// Endpoint is a webhook with what its deliveries need.
type Endpoint struct {
	Webhook
	WorkspaceID uuid.UUID
	OldSecret   string        // also signs; empty: none, or its overlap has ended
	FailingFor  time.Duration // since the first of them, or the first after a silence
	Healthy     bool          // the last answer was successful and fast
	Paused      bool          // nothing is sent for now
	Suspended   bool          // nothing is sent while its workspace is suspended
	Disabled    bool
}

// silence is longer than any pause between attempts. After such a gap, for example
// while the server was off, nothing is known about the endpoint, so the gap does not count as failing.
const silence = 24 * time.Hour

// GetEndpoint reads a webhook for its deliveries. It fails with NotFound.
func (s *Service) GetEndpoint(ctx context.Context, id uuid.UUID) (Endpoint, error) {
	r, err := s.db.GetEndpoint(ctx, dbsqlc.GetEndpointParams{WebhookID: id, Silence: silence})
	if store.IsNoRows(err) {
		return Endpoint{}, webhookNotFound(id.String())
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("read the webhook %s: %w", id, err)
	}
	w, err := s.toWebhook(r.Webhook)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{
		Webhook:     w,
		WorkspaceID: r.Webhook.WorkspaceID,
		Healthy:     r.Webhook.IsHealthy,
		Paused:      r.Paused,
		Suspended:   r.Suspended,
		Disabled:    w.DisabledAt != nil,
		FailingFor:  time.Duration(r.FailingSeconds * float64(time.Second)),
	}
	if r.OldSecretSigns {
		old, err := s.keys.Open(oldSecretPlace(id), r.Webhook.OldSecretSealed)
		if err != nil {
			return Endpoint{}, fmt.Errorf("open the old secret of webhook %s: %w", id, err)
		}
		e.OldSecret = string(old)
	}
	return e, nil
}

// Delivery is an event that is due at a webhook.
type Delivery struct {
	Event    event.Event
	Step     int       // attempts since it was created or replayed
	Due      time.Time // since when; each attempt and replay changes it
	Size     int       // of the event's fields in bytes
	Unread   bool      // only the event's head was read; GetDue reads the event
	Unopened error     // ErrUnopened: the event cannot be sent
}

// DueDeliveries lists what is due at a webhook, the longest due first, without busy events. The events beyond
// the given number of bytes are Unread.
func (s *Service) DueDeliveries(
	ctx context.Context,
	webhook uuid.UUID,
	busy []uuid.UUID,
	limit, bytes int,
) ([]Delivery, error) {
	if busy == nil {
		busy = []uuid.UUID{}
	}
	rows, err := s.db.DueDeliveries(ctx, dbsqlc.DueDeliveriesParams{
		WebhookID: webhook,
		Busy:      busy,
		MaxRows:   int32(min(limit, 1<<30)),
		MaxBytes:  int32(min(bytes, 1<<30)),
	})
	if err != nil {
		return nil, fmt.Errorf("list the deliveries of webhook %s: %w", webhook, err)
	}
	out := make([]Delivery, len(rows))
	for i, r := range rows {
		out[i] = Delivery{
			Step:   int(r.RetryStep),
			Due:    r.DueAt,
			Size:   int(r.Size),
			Unread: r.Unread,
		}
		if out[i].Event, err = s.events.ReadEvent(dbsqlc.Event{
			EventID:     r.EventID,
			EventType:   r.EventType,
			WorkspaceID: r.WorkspaceID,
			OccurredAt:  r.OccurredAt,
			CreatedAt:   r.CreatedAt,
			Payload:     r.Payload,
			PinSealed:   r.PinSealed,
		}); err != nil {
			out[i].Unopened = err // it must not block the others
		}
	}
	return out, nil
}

// GetDue reads the event of a delivery. It also fails with ErrUnopened.
func (s *Service) GetDue(ctx context.Context, eventID uuid.UUID) (event.Event, error) {
	r, err := s.db.DueEvent(ctx, eventID)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the event %s: %w", eventID, err)
	}
	return s.events.ReadEvent(r)
}

// ScheduleWebhook returns after how long the webhook is due next. 0 means at the next event.
func (s *Service) ScheduleWebhook(ctx context.Context, webhook uuid.UUID) (after time.Duration, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockWebhook(ctx, webhook); err != nil {
			return err
		}
		due, err := tx.ScheduleWebhook(ctx, webhook)
		after = domain.Seconds(due)
		return err
	})
	if store.IsNoRows(err) {
		return 0, nil // deleted
	}
	if err != nil {
		return 0, fmt.Errorf("schedule the deliveries of webhook %s: %w", webhook, err)
	}
	return after, nil
}

// WebhookDue reports whether the webhook is due.
func (s *Service) WebhookDue(ctx context.Context, webhook uuid.UUID) (bool, error) {
	due, err := s.db.WebhookDue(ctx, webhook)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// HealthByWebhook says which webhooks answered successfully and fast the last time.
type HealthByWebhook map[uuid.UUID]bool

// DueWebhooks lists webhooks that are due and not leased.
func (s *Service) DueWebhooks(
	ctx context.Context,
	limit int32,
	but worker.Saturated,
) ([]uuid.UUID, HealthByWebhook, error) {
	rows, err := s.db.DueWebhooks(ctx, dbsqlc.DueWebhooksParams{
		MaxRows:                  limit,
		ExcludeWorkspaces:        but.Workspaces,
		ExcludeCreators:          but.Creators,
		ExcludeSuspect:           but.Suspect,
		ExcludeSuspectWorkspaces: but.SuspectWorkspaces,
		ExcludeSuspectCreators:   but.SuspectCreators,
	})
	ids, prompt := make([]uuid.UUID, len(rows)), HealthByWebhook{}
	for i, r := range rows {
		ids[i], prompt[r.WebhookID] = r.WebhookID, r.IsHealthy
	}
	return ids, prompt, err
}

// WebhookOwners returns the workspaces of webhooks and the creators of these workspaces.
func (s *Service) WebhookOwners(
	ctx context.Context,
	webhooks []uuid.UUID,
) (map[uuid.UUID]worker.Owners, HealthByWebhook, error) {
	rows, err := s.db.WebhookOwners(ctx, webhooks)
	owners, prompt := map[uuid.UUID]worker.Owners{}, HealthByWebhook{}
	for _, r := range rows {
		owners[r.WebhookID], prompt[r.WebhookID] = worker.Owners{
			Workspace: r.WorkspaceID,
			Creator:   r.CreatedBy,
		}, r.IsHealthy
	}
	return owners, prompt, err
}
