package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// userIdentityList lists the user identities for terraform query.
type userIdentityList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*userIdentityList)(nil)

func newUserIdentityList() list.ListResource { return &userIdentityList{} }

func (l *userIdentityList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_user_identity"
}

func (l *userIdentityList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the user identities of the workspace, to bring them under Terraform with " +
			"`terraform query -generate-config-out` (Terraform 1.14 and newer).",
	}
}

func (l *userIdentityList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list user identities",
		client.UserIdentities(ctx),
		func(identity api.UserIdentity, result *list.ListResult) {
			var model userIdentityModel
			model.fill(&identity)
			result.DisplayName = identity.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}
