package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// webhookList lists webhooks for terraform query. It never returns a secret.
type webhookList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*webhookList)(nil)

func newWebhookList() list.ListResource { return &webhookList{} }

func (l *webhookList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_webhook"
}

func (l *webhookList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the webhooks of the workspace, to bring them under Terraform with `terraform " +
			"query -generate-config-out` (Terraform 1.14 and newer). Neither the listing nor the generated " +
			"configuration contains a secret.",
	}
}

func (l *webhookList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list webhooks",
		client.Webhooks(ctx),
		func(webhook api.Webhook, result *list.ListResult) {
			model := webhookModel{EventTypes: types.SetNull(types.StringType)}
			result.Diagnostics.Append(model.fill(ctx, &webhook, nil)...)
			model.Secret = types.StringNull()
			result.DisplayName, _, _ = strings.Cut(webhook.URL, "?") // the query may contain a token
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}
