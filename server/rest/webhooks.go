package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
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
	return openapi.GetWebhook200JSONResponse{Ok: true, Webhook: toWebhook(w)}, nil
}

func (h *handlers) ListWebhooks(
	ctx context.Context, _ openapi.ListWebhooksRequestObject,
) (openapi.ListWebhooksResponseObject, error) {
	list, err := h.access.Webhooks.ListWebhooks(ctx, principal(ctx))
	if err != nil {
		return nil, err
	}
	return openapi.ListWebhooks200JSONResponse{Ok: true, Webhooks: each(list, toWebhook)}, nil
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
	}
}
