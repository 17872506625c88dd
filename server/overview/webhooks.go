package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// Webhook is a webhook and its health, without its secrets.
type Webhook struct {
	ID             uuid.UUID
	URL            string
	EventTypes     []string // "*" means all
	CreatedAt      time.Time
	Healthy        bool      // the last answer was successful and fast
	PausedUntil    time.Time // zero: not paused
	FailingSince   time.Time // zero: the last attempt succeeded, or there was none
	Failures       int       // consecutive failed attempts
	DisabledAt     time.Time // zero: enabled
	DisabledReason string
	OldSecretUntil time.Time // until when the secret before the last rotation signs; zero: there is none
}

// WebhookFilter are conditions that must all hold. Zero fields are no condition.
type WebhookFilter struct {
	ID uuid.UUID
	// State is working, failing, or disabled.
	State string
	// EventType is a type that the webhook receives.
	EventType string
	// Search is a part of the URL, without its query.
	Search string
}

// Webhooks lists the webhooks of a workspace, and where the next page starts.
func (s *Service) Webhooks(
	ctx context.Context,
	workspace uuid.UUID,
	f WebhookFilter,
	from Position,
	limit int,
) (out []Webhook, next Position, err error) {
	at, id := from.before()
	rows, err := s.db.UnpreparedQueries.OverviewWebhooks(ctx, dbsqlc.OverviewWebhooksParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		WebhookID:   nonZero(f.ID),
		State:       nonZero(f.State),
		EventType:   nonZero(f.EventType),
		Pattern:     store.SearchPattern(f.Search),
		MaxRows:     int32(limit) + 1,
	})
	if err != nil {
		return nil, next, fmt.Errorf("list the webhooks: %w", err)
	}
	for i, r := range rows {
		if i == limit {
			next = Position{out[i-1].CreatedAt, out[i-1].ID}
			break
		}
		out = append(out, Webhook{
			ID:             r.WebhookID,
			URL:            r.Url,
			EventTypes:     r.EventTypes,
			CreatedAt:      r.CreatedAt,
			Healthy:        r.IsHealthy,
			PausedUntil:    domain.Value(r.PausedUntil),
			FailingSince:   domain.Value(r.FailingSince),
			Failures:       int(r.ConsecutiveFailures),
			DisabledAt:     domain.Value(r.DisabledAt),
			DisabledReason: domain.Value(r.DisabledReason),
			OldSecretUntil: domain.Value(r.OldSecretUntil),
		})
	}
	return out, next, nil
}

// Hours is the number of hours in Traffic.
const Hours = 24

// attemptsShown is how many of the latest attempts of a webhook Traffic counts.
const attemptsShown = 1000

// Traffic is what the latest deliveries of a webhook show.
type Traffic struct {
	// Pending and Held count deliveries, up to MaxCount + 1.
	Pending, Held int
	// Succeeded and Failed count attempts by their age in hours. They count the latest 1,000 attempts only.
	Succeeded, Failed [Hours]int
	// LastSuccess is zero where none of the latest attempts succeeded.
	LastSuccess time.Time
}

// Traffic returns what the latest deliveries of webhooks show.
func (s *Service) Traffic(
	ctx context.Context,
	workspace uuid.UUID,
	webhooks []uuid.UUID,
) (map[uuid.UUID]Traffic, error) {
	out := map[uuid.UUID]Traffic{}
	unsent, err := s.db.CountUnsentOfWebhooks(ctx, dbsqlc.CountUnsentOfWebhooksParams{
		WorkspaceID: workspace,
		WebhookIds:  webhooks,
		MaxRows:     MaxCount + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("count the unsent deliveries: %w", err)
	}
	for _, r := range unsent {
		out[r.WebhookID] = Traffic{Pending: int(r.Pending), Held: int(r.Held)}
	}
	hours, err := s.db.CountAttemptsByHour(ctx, dbsqlc.CountAttemptsByHourParams{
		WorkspaceID: workspace,
		WebhookIds:  webhooks,
		MaxRows:     attemptsShown,
	})
	if err != nil {
		return nil, fmt.Errorf("count the attempts: %w", err)
	}
	for _, r := range hours {
		t := out[r.WebhookID]
		if r.HoursAgo < Hours {
			t.Succeeded[r.HoursAgo], t.Failed[r.HoursAgo] = int(r.Succeeded), int(r.Failed)
		}
		if r.LastSuccess.Year() > 1 && r.LastSuccess.After(t.LastSuccess) {
			t.LastSuccess = r.LastSuccess
		}
		out[r.WebhookID] = t
	}
	return out, nil
}

// DeliveryFilter are conditions that must all hold. Zero fields are no condition.
type DeliveryFilter struct {
	Event     uuid.UUID
	State     webhook.DeliveryState
	EventType string
	// Status is the first digit of an HTTP status, such as "4", or a whole status. "none" is no response.
	Status       string
	Since, Until time.Time // the creation time of the event
}

// statuses returns the range of statuses; nil: any.
func (f DeliveryFilter) statuses() (lowest, highest *int32) {
	var n int32
	if f.Status == "none" {
		return new(int32(0)), new(int32(0))
	}
	if _, err := fmt.Sscanf(f.Status, "%d", &n); err != nil {
		return nil, nil
	}
	if n < 10 {
		return new(n * 100), new(n*100 + 99)
	}
	return &n, &n
}

// Delivery is the delivery of an event to a webhook, with the outcome of its last attempt.
type Delivery struct {
	EventID    uuid.UUID
	EventType  string
	CreatedAt  time.Time // of the event
	State      webhook.DeliveryState
	Attempts   int
	Next       time.Time // pending: when the next attempt is due
	FinishedAt time.Time // zero: pending
	Status     int       // HTTP status; 0: no response, or no attempt
	Error      string    // why the last attempt failed
}

// scannedDeliveries is how many deliveries a page searches for rare matches.
const scannedDeliveries = 2000

// Deliveries lists the deliveries to a webhook after an event, newest first. next is the event after which the next page
// starts; zero: this is the last page. A page with a filter by type or status can have fewer rows than limit.
func (s *Service) Deliveries(
	ctx context.Context,
	workspace, webhookID uuid.UUID,
	f DeliveryFilter,
	before uuid.UUID,
	limit int,
) (out []Delivery, next uuid.UUID, err error) {
	arg := dbsqlc.OverviewDeliveriesParams{
		WorkspaceID: workspace,
		WebhookID:   webhookID,
		Before:      uuid.Max,
		State:       nonZero(string(f.State)),
		EventType:   nonZero(f.EventType),
		EventID:     nonZero(f.Event),
		MaxRows:     int32(limit) + 1,
	}
	if !f.Since.IsZero() {
		arg.After = store.MinIDAt(f.Since)
	}
	if !f.Until.IsZero() {
		arg.Before = store.MinIDAt(f.Until)
	}
	if before != uuid.Nil {
		arg.Before = before
	}
	arg.LowestStatus, arg.HighestStatus = f.statuses()
	if arg.EventType != nil || arg.LowestStatus != nil || arg.State != nil {
		end, err := s.db.UnpreparedQueries.DeliveryScanEnd(ctx, dbsqlc.DeliveryScanEndParams{
			WorkspaceID: workspace,
			WebhookID:   webhookID,
			Before:      arg.Before,
			After:       arg.After,
			ScannedRows: scannedDeliveries,
		})
		if err == nil {
			arg.After, next = end, end
		} else if !store.IsNoRows(err) {
			return nil, next, fmt.Errorf("list the deliveries: %w", err)
		}
	}
	rows, err := s.db.UnpreparedQueries.OverviewDeliveries(ctx, arg)
	if err != nil {
		return nil, next, fmt.Errorf("list the deliveries: %w", err)
	}
	for i, r := range rows {
		if i == limit {
			return out, out[i-1].EventID, nil
		}
		out = append(out, toDelivery(r))
	}
	if next != uuid.Nil {
		next = after(next)
	}
	return out, next, nil
}

// after returns the smallest identifier that is greater than id.
func after(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

func toDelivery(r dbsqlc.OverviewDeliveriesRow) Delivery {
	return Delivery{
		EventID:    r.EventID,
		EventType:  r.EventType,
		CreatedAt:  r.CreatedAt,
		State:      webhook.DeliveryState(r.State),
		Attempts:   int(r.Attempts),
		Next:       domain.Value(r.NextAttemptAt),
		FinishedAt: domain.Value(r.FinishedAt),
		Status:     int(domain.Value(r.Status)),
		Error:      domain.Value(r.Error),
	}
}

// AttemptTimes returns when the attempts to deliver an event to a webhook began, oldest first.
func (s *Service) AttemptTimes(
	ctx context.Context,
	workspace, webhookID, event uuid.UUID,
) (out []time.Time, err error) {
	rows, err := s.db.AttemptTimes(
		ctx,
		dbsqlc.AttemptTimesParams{WorkspaceID: workspace, WebhookID: webhookID, EventID: event},
	)
	if err != nil {
		return nil, fmt.Errorf("list the times of attempts: %w", err)
	}
	for _, r := range rows {
		out = append(out, r.AttemptedAt)
	}
	return out, nil
}
