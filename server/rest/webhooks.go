package rest

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func (h *handlers) CreateWebhook(
	ctx context.Context, r openapi.CreateWebhookRequestObject,
) (openapi.CreateWebhookResponseObject, error) {
	w, err := h.access.Webhooks.CreateWebhook(ctx, principal(ctx), r.Body.URL, r.Body.EventTypes)
	if err != nil {
		return nil, err
	}
	return openapi.CreateWebhook200JSONResponse{Ok: true, Webhook: toWebhook(w)}, nil
}

func (h *handlers) GetWebhook(
	ctx context.Context, r openapi.GetWebhookRequestObject,
) (openapi.GetWebhookResponseObject, error) {
	w, err := h.access.Webhooks.GetWebhook(ctx, principal(ctx), r.Body.WebhookID)
	if err != nil {
		return nil, err
	}
	return openapi.GetWebhook200JSONResponse{Ok: true, Webhook: webhookFor(ctx)(w)}, nil
}

func (h *handlers) ListWebhooks(
	ctx context.Context, _ openapi.ListWebhooksRequestObject,
) (openapi.ListWebhooksResponseObject, error) {
	list, err := h.access.Webhooks.ListWebhooks(ctx, principal(ctx))
	if err != nil {
		return nil, err
	}
	return openapi.ListWebhooks200JSONResponse{Ok: true, Webhooks: each(list, webhookFor(ctx))}, nil
}

func (h *handlers) UpdateWebhook(
	ctx context.Context, r openapi.UpdateWebhookRequestObject,
) (openapi.UpdateWebhookResponseObject, error) {
	if err := h.access.Webhooks.UpdateWebhook(ctx, principal(ctx), r.Body.WebhookID, r.Body.EventTypes); err != nil {
		return nil, err
	}
	return openapi.UpdateWebhook200JSONResponse{Ok: true}, nil
}

func (h *handlers) DeleteWebhook(
	ctx context.Context, r openapi.DeleteWebhookRequestObject,
) (openapi.DeleteWebhookResponseObject, error) {
	if err := h.access.Webhooks.DeleteWebhook(ctx, principal(ctx), r.Body.WebhookID); err != nil {
		return nil, err
	}
	return openapi.DeleteWebhook200JSONResponse{Ok: true}, nil
}

// WebhookTester sends test events.
type WebhookTester interface {
	// TestWebhook sends a test event to a webhook of the workspace. It fails with NotFound.
	TestWebhook(ctx context.Context, p domain.Principal, id string) (webhook.TestResult, error)
}

// SendTestEvent waits for an endpoint, so it releases the request's slot unless too many requests wait.
func (h *handlers) SendTestEvent(
	ctx context.Context, r openapi.SendTestEventRequestObject,
) (openapi.SendTestEventResponseObject, error) {
	began := principal(ctx)
	if h.waits.enter(began.CredentialID) {
		defer h.waits.leave(began.CredentialID)
		admission.Release(ctx)
	}
	got, err := h.tester.TestWebhook(ctx, began, r.Body.WebhookID)
	if err != nil {
		return nil, err
	}
	if _, err := h.access.Auth.Recheck(ctx, began); err != nil {
		return nil, err
	}
	return openapi.SendTestEvent200JSONResponse{Ok: true, WebhookTest: api.WebhookTest{
		EventID:    got.EventID.String(),
		IsAccepted: got.Problem == "",
		StatusCode: got.Status,
		LatencyMs:  int(got.Latency.Milliseconds()),
		Problem:    got.Problem,
		Advice:     got.Advice,
	}}, nil
}

func (h *handlers) RotateWebhookSecret(
	ctx context.Context, r openapi.RotateWebhookSecretRequestObject,
) (openapi.RotateWebhookSecretResponseObject, error) {
	overlap := webhook.DefaultOverlap
	if r.Body.OverlapSeconds != nil {
		overlap = time.Duration(*r.Body.OverlapSeconds) * time.Second
	}
	w, until, err := h.access.Webhooks.RotateSecret(ctx, principal(ctx), r.Body.WebhookID, overlap)
	if err != nil {
		return nil, err
	}
	return openapi.RotateWebhookSecret200JSONResponse{
		Ok: true, Webhook: toWebhook(w), OldSecretSignsUntil: until,
	}, nil
}

// webhookFor returns the function that shows a webhook that was read to the caller. Only administrators see its secret, with which
// events can be forged.
func webhookFor(ctx context.Context) func(webhook.Webhook) api.Webhook {
	return func(w webhook.Webhook) api.Webhook {
		if !principal(ctx).Role.Includes(domain.RoleAdmin) {
			w.Secret = ""
		}
		shown := toWebhook(w)
		shown.EventsWaiting = &w.Waiting
		return shown
	}
}

func toWebhook(w webhook.Webhook) api.Webhook {
	disabled := w.DisabledAt != nil
	return api.Webhook{
		WebhookID:      w.ID.String(),
		URL:            w.URL,
		EventTypes:     w.EventTypes,
		Secret:         w.Secret,
		Disabled:       &disabled,
		DisabledAt:     w.DisabledAt,
		DisabledReason: w.DisabledReason,

		LastSuccessAt:       w.LastSuccess,
		FailingSince:        w.FailingSince,
		ConsecutiveFailures: w.Failures,
	}
}
