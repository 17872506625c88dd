package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// The kinds of keys that events wake: a workspace whose events are to be handed to its webhooks, and a webhook
// that has deliveries due.
const (
	OutboxLane   = "outbox"
	EndpointLane = "endpoint"
)

// WebhookDisabled is the type of the event that tells of a webhook to which nothing is sent any more. It is
// ours: the contract has no such type.
const WebhookDisabled = "webhook.disabled"

// DeliveryState says how far an event has come on its way to a webhook.
type DeliveryState string

const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // given up
	DeliveryHeld      DeliveryState = "held"   // the webhook is disabled; replayed it is pending again
)

// fanOutDeliveries is how many deliveries are made in one transaction at most, but for those of the last event. With four times as many a
// workspace with much to tell of has them a little sooner, and what is told of each event waits three times as long.
const fanOutDeliveries = 5_000

// FanOut makes the deliveries of the oldest events of the accounts of a workspace, at most so many, in turns that begin with the
// account after the one that is given, and wakes their webhooks, which it returns. Last is the account that had the last turn.
func (s *Service) FanOut(ctx context.Context, h Holder, workspace, after uuid.UUID, events int32) (woken []uuid.UUID, last uuid.UUID, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		taken, err := tx.TakeEvents(ctx, dbsqlc.TakeEventsParams{WorkspaceID: workspace, After: after, MaxRows: events, MaxDeliveries: fanOutDeliveries})
		if err != nil || len(taken) == 0 {
			return err
		}
		last = taken[0].Last
		arg := dbsqlc.FanOutParams{}
		types := map[string]bool{}
		for _, e := range taken {
			arg.EventIds = append(arg.EventIds, e.EventID)
			types[e.EventType] = true
		}
		// Webhooks that get none of these are not touched: however many there are, they slow nothing.
		arg.WebhookIds, err = tx.LockWebhooksFor(ctx, dbsqlc.LockWebhooksForParams{WorkspaceID: workspace, EventTypes: slices.Collect(maps.Keys(types))})
		if err != nil || len(arg.WebhookIds) == 0 {
			return err
		}
		ids, err := tx.FanOut(ctx, arg)
		if err != nil || len(ids) == 0 {
			return err
		}
		woken, err = s.wakeWebhooks(ctx, tx, workspace, ids)
		return err
	})
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("fan out the events of workspace %s: %w", workspace, err)
	}
	return woken, last, nil
}

// wakeWebhooks returns those of a workspace that are looked at now; one that is paused is looked at when the pause ends, and all of a
// workspace that is suspended when it no longer is.
func (s *Service) wakeWebhooks(ctx context.Context, tx store.Tx, workspace uuid.UUID, ids []uuid.UUID) (woken []uuid.UUID, err error) {
	if woken, err = tx.WakeWebhooks(ctx, dbsqlc.WakeWebhooksParams{WorkspaceID: workspace, WebhookIds: ids}); err != nil {
		return nil, err
	}
	return woken, s.waker.WakeEach(ctx, tx, EndpointLane, woken)
}

// OutboxDue says whether a workspace has events that no webhook has been given yet.
func (s *Service) OutboxDue(ctx context.Context, workspace uuid.UUID) (bool, error) {
	return s.db.OutboxDue(ctx, workspace)
}

// DueOutboxes lists workspaces with such events that nobody works on.
func (s *Service) DueOutboxes(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	return s.db.DueOutboxes(ctx, dbsqlc.DueOutboxesParams{MaxRows: limit, ExcludeCreators: but.Makers})
}

// OutboxOwners are those who have made workspaces.
func (s *Service) OutboxOwners(ctx context.Context, workspaces []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.WorkspaceMakers(ctx, workspaces)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.WorkspaceID] = worker.Owners{Maker: r.CreatedBy}
	}
	return owners, err
}

// Endpoint is a webhook as its deliveries see it.
type Endpoint struct {
	Webhook
	WorkspaceID uuid.UUID
	OldSecret   string        // signs too; empty: there is none, or its time has passed
	Failures    int           // attempts in a row that failed
	FailingFor  time.Duration // since the first of them, or the first after a silence
	Prompt      bool          // it has answered well, and soon, the last time
	Paused      bool          // nothing is sent for now
	Suspended   bool          // nothing is sent until its workspace no longer is
	Disabled    bool
}

// silence is longer than any pause between attempts (spec/contract.md section 7): nothing was sent meanwhile, as while the server was off,
// and whether the endpoint would have answered nobody knows. It has not failed for that long.
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
	e := Endpoint{Webhook: w, WorkspaceID: r.Webhook.WorkspaceID, Failures: int(r.Webhook.ConsecutiveFailures), Prompt: r.Webhook.IsHealthy, Paused: r.Paused, Suspended: r.Suspended, Disabled: w.DisabledAt != nil,
		FailingFor: time.Duration(r.FailingSeconds * float64(time.Second))}
	if r.OldSecretSigns {
		old, err := s.keys.Open(oldSecretPlace(id), r.Webhook.OldSecretSealed)
		if err != nil {
			return Endpoint{}, fmt.Errorf("open the old secret of webhook %s: %w", id, err)
		}
		e.OldSecret = string(old)
	}
	return e, nil
}

// ErrUnopened says that what is sealed of an event cannot be opened: it is damaged, or its data key is gone.
var ErrUnopened = errors.New("the event cannot be opened")

// Delivery is an event that is due at a webhook.
type Delivery struct {
	Event    Event
	Step     int       // attempts made since it was created or replayed
	Due      time.Time // since when; another time once it has been tried or replayed
	Size     int       // bytes of what the event carries
	Unread   bool      // of the event there is no more than its head: GetDue reads it
	Unopened error     // ErrUnopened: there is no event to be sent; nil: there is
}

// DueDeliveries lists what is due at a webhook, the longest due first, without the events that are busy. Together they carry so
// many bytes at most; those beyond are Unread.
func (s *Service) DueDeliveries(ctx context.Context, webhook uuid.UUID, busy []uuid.UUID, limit, bytes int) ([]Delivery, error) {
	if busy == nil {
		busy = []uuid.UUID{}
	}
	rows, err := s.db.DueDeliveries(ctx, dbsqlc.DueDeliveriesParams{WebhookID: webhook, Busy: busy, MaxRows: int32(min(limit, 1<<30)), MaxBytes: int32(min(bytes, 1<<30))})
	if err != nil {
		return nil, fmt.Errorf("list the deliveries of webhook %s: %w", webhook, err)
	}
	out := make([]Delivery, len(rows))
	for i, r := range rows {
		out[i] = Delivery{Step: int(r.Step), Due: r.DueAt, Size: int(r.Size), Unread: r.Unread}
		if out[i].Event, err = s.toEvent(dbsqlc.Event{EventID: r.EventID, EventType: r.EventType, WorkspaceID: r.WorkspaceID,
			OccurredAt: r.OccurredAt, CreatedAt: r.CreatedAt, Payload: r.Payload, PinSealed: r.PinSealed}); err != nil {
			out[i].Unopened = err // it keeps no other back
		}
	}
	return out, nil
}

// GetDue reads the event of a delivery. It fails with ErrUnopened, too.
func (s *Service) GetDue(ctx context.Context, event uuid.UUID) (Event, error) {
	r, err := s.db.DueEvent(ctx, event)
	if err != nil {
		return Event{}, fmt.Errorf("read the event %s: %w", event, err)
	}
	return s.toEvent(r)
}

// ScheduleWebhook works out after how long the webhook is to be looked at next; 0: when something happens.
func (s *Service) ScheduleWebhook(ctx context.Context, webhook uuid.UUID) (after time.Duration, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockWebhook(ctx, webhook); err != nil {
			return err
		}
		due, err := tx.ScheduleWebhook(ctx, webhook)
		after = seconds(due)
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

// WebhookDue says whether it is time to look at the webhook.
func (s *Service) WebhookDue(ctx context.Context, webhook uuid.UUID) (bool, error) {
	due, err := s.db.WebhookDue(ctx, webhook)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// PromptWebhooks says of webhooks whether their endpoints have answered well, and soon, the last time.
type PromptWebhooks map[uuid.UUID]bool

// DueWebhooks lists webhooks that it is time to look at and nobody looks at.
func (s *Service) DueWebhooks(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, PromptWebhooks, error) {
	rows, err := s.db.DueWebhooks(ctx, dbsqlc.DueWebhooksParams{MaxRows: limit, ExcludeWorkspaces: but.Wide, ExcludeCreators: but.Makers,
		ExcludeSuspect: but.Doubted, ExcludeSuspectWorkspaces: but.DoubtedWide, ExcludeSuspectCreators: but.DoubtedMakers})
	ids, prompt := make([]uuid.UUID, len(rows)), PromptWebhooks{}
	for i, r := range rows {
		ids[i], prompt[r.WebhookID] = r.WebhookID, r.IsHealthy
	}
	return ids, prompt, err
}

// WebhookOwners are the workspaces of webhooks, and who has made these.
func (s *Service) WebhookOwners(ctx context.Context, webhooks []uuid.UUID) (map[uuid.UUID]worker.Owners, PromptWebhooks, error) {
	rows, err := s.db.WebhookOwners(ctx, webhooks)
	owners, prompt := map[uuid.UUID]worker.Owners{}, PromptWebhooks{}
	for _, r := range rows {
		owners[r.WebhookID], prompt[r.WebhookID] = worker.Owners{Wide: r.WorkspaceID, Maker: r.CreatedBy}, r.IsHealthy
	}
	return owners, prompt, err
}
