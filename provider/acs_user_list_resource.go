package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// acsUserList lists the managed users of access systems for terraform query.
type acsUserList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*acsUserList)(nil)

func newACSUserList() list.ListResource { return &acsUserList{} }

type acsUserListModel struct {
	ACSSystemID types.String `tfsdk:"acs_system_id"`
}

func (l *acsUserList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_acs_user"
}

func (l *acsUserList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the users of access systems that the workspace manages, to bring them under " +
			"Terraform with `terraform query -generate-config-out` (Terraform 1.14 and newer).",
		Attributes: map[string]schema.Attribute{
			"acs_system_id": schema.StringAttribute{
				Optional: true,
				Validators: []validator.String{validators.Identifier{Hint: "Name an access system, or leave it out " +
					"for all."}},
				MarkdownDescription: "The access system whose users are listed. Without it, the users of all access " +
					"systems are listed.",
			},
		},
	}
}

func (l *acsUserList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config acsUserListModel
	diags := req.Config.Get(ctx, &config)
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list users of access systems",
		client.AcsUsers(ctx, api.ListAcsUsersRequest{AcsSystemID: config.ACSSystemID.ValueString()}),
		func(user api.AcsUser, result *list.ListResult) {
			model := acsUserResourceModel{
				AccessGroupIDs: types.SetNull(types.StringType),
				Timeouts:       noTimeouts("create", "update", "delete"),
			}
			model.fill(&user)
			result.DisplayName = user.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}
