package provider

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// checkPlan checks the event types of a planned webhook against those of the server.
func (r *webhookResource) checkPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	var planned, stored types.Set
	if resp.Plan.GetAttribute(ctx, path.Root("event_types"), &planned).HasError() ||
		!req.State.Raw.IsNull() && req.State.GetAttribute(ctx, path.Root("event_types"), &stored).HasError() {
		return
	}
	eventTypes := knownTexts(planned)
	if planned.Equal(stored) || len(eventTypes) == 0 || slices.Equal(eventTypes, []string{allEventTypes}) {
		return
	}
	ctx, end, ok := r.checkContext(ctx, !req.State.Raw.IsNull())
	defer end()
	if !ok {
		return
	}
	if err := r.checkEventTypes(ctx, eventTypes); isOfType(err, "invalid_event_types") {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("event_types"), "Unknown event type", sentence(err.Error()))
	}
}

// checkEventTypes returns the server's answer to a change of a webhook that does not exist. Such a change has no
// effect, and the server checks the event types first.
func (c *connection) checkEventTypes(ctx context.Context, eventTypes []string) error {
	c.checks.trials.Lock()
	defer c.checks.trials.Unlock()
	key := strings.Join(eventTypes, ",")
	if err, known := c.checks.eventTypes[key]; known {
		return err
	}
	_, err := api.Call[api.OkResponse](
		ctx,
		c.api.UpdateWebhook,
		api.UpdateWebhookRequest{WebhookID: uuid.Nil.String(), EventTypes: eventTypes},
	)
	if c.checks.eventTypes == nil {
		c.checks.eventTypes = map[string]error{}
	}
	c.checks.eventTypes[key] = err
	return err
}
