package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type workspaceDataSource struct{ connectedDataSource }

func newWorkspaceDataSource() datasource.DataSource { return &workspaceDataSource{} }

type workspaceModel struct {
	WorkspaceID        types.String `tfsdk:"workspace_id"`
	Name               types.String `tfsdk:"name"`
	CompanyName        types.String `tfsdk:"company_name"`
	ConnectPartnerName types.String `tfsdk:"connect_partner_name"`
	IsSandbox          types.Bool   `tfsdk:"is_sandbox"`
	IsSuspended        types.Bool   `tfsdk:"is_suspended"`
	PublishableKeys    types.Bool   `tfsdk:"is_publishable_key_auth_enabled"`
	PublishableKey     types.String `tfsdk:"publishable_key"`
}

func (m *workspaceModel) fill(workspace *api.Workspace) {
	*m = workspaceModel{
		WorkspaceID:        types.StringValue(workspace.WorkspaceID),
		Name:               types.StringValue(workspace.Name),
		CompanyName:        types.StringValue(workspace.CompanyName),
		ConnectPartnerName: types.StringPointerValue(workspace.ConnectPartnerName),
		IsSandbox:          types.BoolValue(workspace.IsSandbox),
		IsSuspended:        types.BoolValue(workspace.IsSuspended),
		PublishableKeys:    types.BoolValue(workspace.IsPublishableKeyAuthEnabled),
		PublishableKey:     types.StringNull(),
	}
	if workspace.PublishableKey != "" {
		m.PublishableKey = types.StringValue(workspace.PublishableKey)
	}
}

func (d *workspaceDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_workspace"
}

func (d *workspaceDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The workspace that the API key belongs to.",
		Attributes: map[string]schema.Attribute{
			"workspace_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier of the workspace.",
			},
			"name": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The name of the workspace.",
			},
			"company_name": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The name of the company that owns the workspace.",
			},
			"connect_partner_name": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The name that people see when they connect an account. Null if there is none.",
			},
			"is_sandbox": schema.BoolAttribute{
				Computed:            true,
				MarkdownDescription: "Whether the devices of the workspace are simulated.",
			},
			"is_suspended": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the workspace is suspended. The server then rejects all requests " +
					"except those that read or change the workspace, and sends no webhooks.",
			},
			"is_publishable_key_auth_enabled": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether web pages may create client sessions with publishable keys of the " +
					"workspace.",
			},
			"publishable_key": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "The newest publishable key of the workspace, for public web pages. It is not " +
					"a secret. Null if there is none.",
			},
		},
	}
}

func (d *workspaceDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	client := d.client(req, resp)
	if client == nil {
		return
	}
	answer, err := api.Call[api.WorkspaceResponse](ctx, client.GetWorkspace, api.EmptyRequest{})
	if err != nil {
		report(&resp.Diagnostics, "read workspace", err)
		return
	}
	var model workspaceModel
	model.fill(&answer.Workspace)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
