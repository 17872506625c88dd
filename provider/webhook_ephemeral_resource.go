package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var _ ephemeral.EphemeralResourceWithConfigure = (*ephemeralWebhook)(nil)

type ephemeralWebhook struct{ connectedEphemeralResource }

func newEphemeralWebhook() ephemeral.EphemeralResource { return &ephemeralWebhook{} }

type ephemeralWebhookModel struct {
	WebhookID  types.String `tfsdk:"webhook_id"`
	URL        types.String `tfsdk:"url"`
	EventTypes []string     `tfsdk:"event_types"`
	Secret     types.String `tfsdk:"secret"`
}

func (m *ephemeralWebhookModel) fill(webhook *api.Webhook) {
	*m = ephemeralWebhookModel{
		WebhookID:  types.StringValue(webhook.WebhookID),
		URL:        types.StringValue(webhook.URL),
		EventTypes: slices.Compact(slices.Sorted(slices.Values(append([]string{}, webhook.EventTypes...)))),
		Secret:     types.StringValue(webhook.Secret),
	}
}

func (e *ephemeralWebhook) Metadata(
	_ context.Context,
	req ephemeral.MetadataRequest,
	resp *ephemeral.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_webhook"
}

func (e *ephemeralWebhook) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the secret of a webhook, to pass it to a write-only argument, such as that of a " +
			"secret manager. Neither the plan nor the state contains the secret. Requires Terraform 1.10 or newer.",
		Attributes: map[string]schema.Attribute{
			"webhook_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The identifier of the webhook.",
				Validators:          []validator.String{validators.Identifier{Hint: "Name a webhook."}},
			},
			"url": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Where the server sends events.",
			},
			"event_types": schema.SetAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "The event types that the server sends; `*` means all.",
			},
			"secret": schema.StringAttribute{
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The secret that signs each delivery. Reading fails if the server returns it only " +
					"at creation.",
			},
		},
	}
}

func (e *ephemeralWebhook) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	const action = "read the secret of the webhook"
	var model ephemeralWebhookModel
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("webhook_id"), &model.WebhookID)...)
	client := e.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	webhook, err := readWebhook(ctx, client, model.WebhookID)
	switch {
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	case webhook.Secret == "":
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("webhook_id"), action, "The server returns the secret of a "+
			"webhook only at its creation. Use the attribute `secret` of the resource deviceaccess_webhook that "+
			"created it.")
		return
	}
	model.fill(webhook)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &model)...)
}
