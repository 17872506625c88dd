package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type connectedAccountsDataSource struct{ connectedDataSource }

func newConnectedAccountsDataSource() datasource.DataSource { return &connectedAccountsDataSource{} }

type connectedAccountsModel struct {
	CustomerKey types.String            `tfsdk:"customer_key"`
	Search      types.String            `tfsdk:"search"`
	Accounts    []connectedAccountModel `tfsdk:"connected_accounts"`
}

type connectedAccountModel struct {
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	DisplayName        types.String `tfsdk:"display_name"`
	AccountType        types.String `tfsdk:"account_type"`
	CustomerKey        types.String `tfsdk:"customer_key"`
	ManageNewDevices   types.Bool   `tfsdk:"automatically_manage_new_devices"`
	CreatedAt          types.String `tfsdk:"created_at"`
	Problems           []string     `tfsdk:"problems"`
}

func (m *connectedAccountModel) fill(account *api.ConnectedAccount) {
	m.ConnectedAccountID = types.StringValue(account.ConnectedAccountID)
	m.DisplayName = types.StringValue(account.DisplayName)
	m.AccountType = textOrNull(account.AccountType)
	m.CustomerKey = textOrNull(account.CustomerKey)
	m.ManageNewDevices = types.BoolValue(account.AutomaticallyManageNewDevices)
	m.CreatedAt = timestamp(account.CreatedAt)
	m.Problems = []string{}
	for _, problem := range account.Errors {
		m.Problems = append(m.Problems, problem.ErrorCode)
	}
}

func (d *connectedAccountsDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_connected_accounts"
}

func (d *connectedAccountsDataSource) Schema(
	_ context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The connected accounts of the workspace, through which the server reaches vendors' " +
			"devices: all of them, or those that match every condition.",
		Attributes: map[string]schema.Attribute{
			"customer_key": schema.StringAttribute{Optional: true, MarkdownDescription: "Only accounts of this " +
				"customer."},
			"search": schema.StringAttribute{Optional: true, MarkdownDescription: "Only accounts whose name " +
				"contains this text. Case does not matter."},
			"connected_accounts": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The accounts, oldest first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"connected_account_id": computedText("The identifier of the account."),
					"display_name":         computedText("The name of the account."),
					"account_type": computedText("The kind of account, such as `zwave_js`. Null if that is " +
						"not known."),
					"customer_key": computedText("The customer that the account belongs to. Null if there " +
						"is none."),
					"automatically_manage_new_devices": schema.BoolAttribute{
						Computed:            true,
						MarkdownDescription: "Whether the workspace manages new devices of the account.",
					},
					"created_at": computedText("When the account was connected, in RFC 3339."),
					"problems": schema.ListAttribute{
						Computed:    true,
						ElementType: types.StringType,
						MarkdownDescription: "The error codes of the account, such as `account_disconnected`. " +
							"Empty if it works.",
					},
				}},
			},
		},
	}
}

func (d *connectedAccountsDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	var model connectedAccountsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	accounts, err := api.Collect(client.ConnectedAccounts(ctx, api.ListConnectedAccountsRequest{
		CustomerKey: model.CustomerKey.ValueString(),
		Search:      model.Search.ValueString(),
	}))
	if err != nil {
		report(&resp.Diagnostics, "list connected accounts", err)
		return
	}
	model.Accounts = make([]connectedAccountModel, len(accounts))
	for i, account := range accounts {
		model.Accounts[i].fill(&account)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
