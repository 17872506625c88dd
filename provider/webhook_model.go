package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type webhookModel struct {
	WebhookID  types.String `tfsdk:"webhook_id"`
	URL        types.String `tfsdk:"url"`
	EventTypes types.Set    `tfsdk:"event_types"`
	Secret     types.String `tfsdk:"secret"`
}

// everything stands for all event types, also those to come.
const everything = "*"

// fill takes over what the server says. Expansion is what this server has made of "*" before, if it is one
// that stores the list of all types instead: as long as the list only grows, it still means "*".
func (m *webhookModel) fill(ctx context.Context, webhook *api.Webhook, expansion []string) diag.Diagnostics {
	var diags diag.Diagnostics
	m.WebhookID = types.StringValue(webhook.WebhookID)
	m.URL = types.StringValue(webhook.URL)
	sendsEverything := slices.Contains(webhook.EventTypes, everything) || len(expansion) > 0 && containsAll(webhook.EventTypes, expansion)
	if !m.wantsEverything(ctx) || !sendsEverything {
		m.EventTypes, diags = types.SetValueFrom(ctx, types.StringType, slices.Compact(slices.Sorted(slices.Values(webhook.EventTypes))))
	}
	// Servers need not say the secret again, and it cannot change.
	if webhook.Secret != "" {
		m.Secret = types.StringValue(webhook.Secret)
	} else if m.Secret.IsUnknown() {
		m.Secret = types.StringNull()
	}
	return diags
}

// expansion is what the server has made of "*", or nil if it keeps it.
func (m *webhookModel) expansion(ctx context.Context, webhook *api.Webhook) []string {
	if !m.wantsEverything(ctx) || slices.Contains(webhook.EventTypes, everything) {
		return nil
	}
	return webhook.EventTypes
}

func (m *webhookModel) wantsEverything(ctx context.Context) bool {
	return slices.Contains(m.eventTypes(ctx), everything)
}

func (m *webhookModel) eventTypes(ctx context.Context) []string {
	var eventTypes []string
	m.EventTypes.ElementsAs(ctx, &eventTypes, false)
	slices.Sort(eventTypes)
	return eventTypes
}

func (m *webhookModel) createRequest(ctx context.Context) api.CreateWebhookRequest {
	return api.CreateWebhookRequest{URL: m.URL.ValueString(), EventTypes: m.eventTypes(ctx)}
}

func (m *webhookModel) updateRequest(ctx context.Context) api.UpdateWebhookRequest {
	return api.UpdateWebhookRequest{WebhookID: m.WebhookID.ValueString(), EventTypes: m.eventTypes(ctx)}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}
