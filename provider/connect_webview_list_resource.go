package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// connectWebviewList lists login pages for terraform query. It never returns the URL of a page, which lets every
// person log in.
type connectWebviewList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*connectWebviewList)(nil)

func newConnectWebviewList() list.ListResource { return &connectWebviewList{} }

func (l *connectWebviewList) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_connect_webview"
}

func (l *connectWebviewList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the login pages of the workspace, to bring them under Terraform with `terraform " +
			"query -generate-config-out` (Terraform 1.14 and newer). Neither the listing nor the generated " +
			"configuration contains the URL of a page.",
	}
}

func (l *connectWebviewList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list connect webviews",
		client.ConnectWebviews(ctx),
		func(webview api.ConnectWebview, result *list.ListResult) {
			model := connectWebviewModel{
				AcceptedProviders:    types.SetNull(types.StringType),
				ExcludedProviders:    types.SetNull(types.StringType),
				AcceptedCapabilities: types.SetNull(types.StringType),
				CustomMetadata:       types.MapNull(types.StringType),
			}
			model.fill(&webview)
			result.Diagnostics.Append(model.fillSettings(ctx, &webview)...)
			model.URL = types.StringNull()
			result.DisplayName = webviewName(&webview)
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}

// webviewName distinguishes login pages by what is known of them.
func webviewName(w *api.ConnectWebview) string {
	about := string(w.Status)
	if w.SelectedProvider != nil {
		about = *w.SelectedProvider + ", " + about
	}
	if w.CustomerKey != "" {
		about += ", customer " + w.CustomerKey
	}
	return fmt.Sprintf("%s (%s)", w.ConnectWebviewID, about)
}
