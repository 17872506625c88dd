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

func (d *webhooksDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_webhooks"
}

func (d *webhooksDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The webhooks of the workspace. Their secrets are left out; a resource that was created by Terraform has its own.",
		Attributes: map[string]schema.Attribute{
			"webhooks": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The webhooks.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"webhook_id": computedText("The identifier of the webhook, by which it can be imported."),
					"url":        computedText("Where events are sent."),
					"event_types": schema.SetAttribute{
						Computed: true, ElementType: types.StringType, MarkdownDescription: "The event types it receives; `*` stands for all.",
					},
					"disabled": schema.BoolAttribute{
						Computed: true, MarkdownDescription: "Whether the server sends nothing to it any more. Null from a server that does not tell.",
					},
					"disabled_at":     computedText("Since when it is disabled, in RFC 3339."),
					"disabled_reason": computedText("Why it is disabled."),
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
		report(&resp.Diagnostics, "List webhooks", err)
		return
	}
	var model webhooksModel
	model.fill(answer.Webhooks)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
