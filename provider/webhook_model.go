package provider

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type webhookModel struct {
	WebhookID  types.String `tfsdk:"webhook_id"`
	URL        types.String `tfsdk:"url"`
	EventTypes types.Set    `tfsdk:"event_types"`
	Secret     types.String `tfsdk:"secret"`

	Disabled       types.Bool   `tfsdk:"disabled"`
	DisabledAt     types.String `tfsdk:"disabled_at"`
	DisabledReason types.String `tfsdk:"disabled_reason"`
}

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
	m.Disabled, m.DisabledAt, m.DisabledReason = disabled(webhook)
	// Servers need not say the secret again. One that does may have rotated it.
	if webhook.Secret != "" {
		m.Secret = types.StringValue(webhook.Secret)
	} else if m.Secret.IsUnknown() {
		m.Secret = types.StringNull()
	}
	return diags
}

// disabled is whether, since when and why a webhook receives nothing, as far as the server tells.
func disabled(webhook *api.Webhook) (is types.Bool, at, reason types.String) {
	is, at, reason = types.BoolPointerValue(webhook.Disabled), types.StringNull(), types.StringNull()
	if webhook.DisabledAt != nil {
		at = types.StringValue(webhook.DisabledAt.UTC().Format(time.RFC3339))
	}
	if webhook.DisabledReason != "" {
		reason = types.StringValue(webhook.DisabledReason)
	}
	return is, at, reason
}

// warning tells of a webhook that receives nothing.
func (m *webhookModel) warning() diag.Diagnostics {
	var diags diag.Diagnostics
	if !m.Disabled.ValueBool() {
		return diags
	}
	detail := "The server sends nothing to this webhook any more" // without its URL, which may carry a token
	if at := m.DisabledAt.ValueString(); at != "" {
		detail += ", since " + at
	}
	if reason := m.DisabledReason.ValueString(); reason != "" {
		detail += ": " + reason
	}
	id := m.WebhookID.ValueString()
	warnAt(&diags, path.Root("url"), "Webhook is disabled", sentence(detail)+
		"\n\nOnce the endpoint works again, whoever runs the server enables it with `deviceaccess-server webhooks enable "+id+"`. "+
		"Events are kept meanwhile; `deviceaccess-server webhooks replay "+id+"` enables it and sends them. Changing event_types does not enable it.")
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
