package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type webhooksDataSource struct{ connectedDataSource }

func newWebhooksDataSource() datasource.DataSource { return &webhooksDataSource{} }

type webhooksModel struct {
	Webhooks []listedWebhookModel `tfsdk:"webhooks"`
}

type listedWebhookModel struct {
	WebhookID  types.String `tfsdk:"webhook_id"`
	URL        types.String `tfsdk:"url"`
	EventTypes []string     `tfsdk:"event_types"`

	Disabled       types.Bool   `tfsdk:"disabled"`
	DisabledAt     types.String `tfsdk:"disabled_at"`
	DisabledReason types.String `tfsdk:"disabled_reason"`
}

func (m *webhooksModel) fill(webhooks []api.Webhook) {
	m.Webhooks = make([]listedWebhookModel, len(webhooks))
	for i, webhook := range webhooks {
		listed := listedWebhookModel{
			WebhookID:  types.StringValue(webhook.WebhookID),
			URL:        types.StringValue(webhook.URL),
			EventTypes: slices.Compact(slices.Sorted(slices.Values(append([]string{}, webhook.EventTypes...)))),
		}
		listed.Disabled, listed.DisabledAt, listed.DisabledReason = disabled(&webhook)
		m.Webhooks[i] = listed
	}
}

func (d *webhooksDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_webhooks"
}

func (d *webhooksDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The webhooks of the workspace, without their secrets. A `deviceaccess_webhook` " +
			"resource that Terraform created has its secret.",
		Attributes: map[string]schema.Attribute{
			"webhooks": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The webhooks.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"webhook_id": computedText("The identifier of the webhook; use it to import the webhook."),
					"url":        computedText("Where the server sends events."),
					"event_types": schema.SetAttribute{
						Computed:            true,
						ElementType:         types.StringType,
						MarkdownDescription: "The event types that the server sends to it; `*` means all.",
					},
					"disabled": schema.BoolAttribute{
						Computed: true,
						MarkdownDescription: "Whether the server has stopped sending to it. Null from a server " +
							"that does not report it.",
					},
					"disabled_at":     computedText("When the server disabled it, in RFC 3339."),
					"disabled_reason": computedText("Why the server disabled it."),
				}},
			},
		},
	}
}

func (d *webhooksDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	client := d.client(req, resp)
	if client == nil {
		return
	}
	answer, err := api.Call[api.WebhooksResponse](ctx, client.ListWebhooks, api.EmptyRequest{})
	if err != nil {
		report(&resp.Diagnostics, "list webhooks", err)
		return
	}
	var model webhooksModel
	model.fill(answer.Webhooks)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
