package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// ModifyPlan replaces a webhook whose event types change on a server that cannot change webhooks. One that was imported
// and has the list of all types, as some servers store "*", is left alone.
func (r *webhookResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	var plan, state webhookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || plan.EventTypes.Equal(state.EventTypes) || !plan.URL.Equal(state.URL) {
		return
	}
	if !r.isConnected() || r.changesWebhooks(ctx, state.WebhookID.ValueString()) {
		return
	}
	changed, diags := req.Private.GetKey(ctx, expansionKey) // or created, by Terraform
	resp.Diagnostics.Append(diags...)
	if changed == nil && plan.EventTypes.Equal(wildcard) && state.isEverything(ctx) {
		resp.Plan.Raw = req.State.Raw
		return
	}
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("event_types"))
	warnAt(&resp.Diagnostics, path.Root("event_types"), "Webhook will be replaced",
		"This server cannot change the event types of a webhook, so applying this plan deletes the webhook and makes another, with another secret. "+
			"To keep it, write the event types into `event_types` that the plan shows for it now.")
}

// webhookChanges is whether the server can change webhooks, once that is known.
type webhookChanges struct {
	mu        sync.Mutex
	known     bool
	supported bool
}

// changesWebhooks says whether the server can change webhooks. It is asked once, to change nothing: a server that can
// refuses that, or does it. What cannot be found out counts as supported, so that the change itself shows what is wrong.
func (c *connection) changesWebhooks(ctx context.Context, id string) bool {
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	if c.changes.known {
		return c.changes.supported
	}
	_, err := api.Call[api.OkResponse](ctx, c.updateNothing, api.WebhookRequest{WebhookID: id})
	c.changes.known = err == nil || api.StatusOf(err)/100 == 4 && !api.IsDenied(err)
	c.changes.supported = !api.IsNoRoute(err)
	return c.changes.supported
}

// updateNothing is the operation UpdateWebhook without event types.
func (c *connection) updateNothing(ctx context.Context, request api.WebhookRequest, editors ...api.RequestEditorFn) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return c.api.UpdateWebhookWithBody(ctx, "application/json", bytes.NewReader(body), editors...)
}
