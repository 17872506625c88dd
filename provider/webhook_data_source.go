package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var _ datasource.DataSourceWithConfigValidators = (*webhookDataSource)(nil)

type webhookDataSource struct{ connectedDataSource }

func newWebhookDataSource() datasource.DataSource { return &webhookDataSource{} }

func (d *webhookDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_webhook"
}

func (d *webhookDataSource) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := elementAttributes(ctx, newWebhooksDataSource(), "webhooks")
	attributes["webhook_id"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{validators.Identifier{Hint: "Name a webhook, or leave it out and give its " +
			"`url`."}},
		MarkdownDescription: "The identifier of the webhook. Set this or `url`.",
	}
	attributes["url"] = schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		Validators:          []validator.String{validators.URL{}},
		MarkdownDescription: "Where the server sends events. Two webhooks with that URL are an error.",
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "One webhook of the workspace, by its identifier or by its URL, without its secret.",
		Attributes:          attributes,
	}
}

func (d *webhookDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{
		datasourcevalidator.ExactlyOneOf(path.MatchRoot("webhook_id"), path.MatchRoot("url")),
	}
}

func (d *webhookDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	const action = "read webhook"
	var model listedWebhookModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	var webhook *api.Webhook
	var err error
	if model.URL.IsNull() {
		webhook, err = readWebhook(ctx, client, model.WebhookID)
	} else if webhook, err = webhookTo(ctx, client, model.URL); webhook == nil && err == nil {
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("url"), action, "The workspace of the API key has no "+
			"webhook with this `url`. The data source deviceaccess_webhooks lists them.")
		return
	}
	if err != nil {
		report(&resp.Diagnostics, action, err)
		return
	}
	var filled webhooksModel
	filled.fill([]api.Webhook{*webhook})
	resp.Diagnostics.Append(resp.State.Set(ctx, &filled.Webhooks[0])...)
}

// webhookTo finds the webhook with a URL. It returns nil if there is none, and an error if there are several.
func webhookTo(ctx context.Context, client *api.Client, url types.String) (*api.Webhook, error) {
	webhooks, err := api.Collect(client.Webhooks(ctx))
	if err != nil {
		return nil, err
	}
	webhooks = slices.DeleteFunc(webhooks, func(w api.Webhook) bool { return w.URL != url.ValueString() })
	switch len(webhooks) {
	case 0:
		return nil, nil
	case 1:
		return &webhooks[0], nil
	}
	var ids []string
	for _, webhook := range webhooks {
		ids = append(ids, webhook.WebhookID)
	}
	return nil, fmt.Errorf("%d webhooks have this URL: %s. Name one by its webhook_id",
		len(webhooks), strings.Join(ids, ", "))
}
