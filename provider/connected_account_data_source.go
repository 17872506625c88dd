package provider

import (
	"cmp"
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

var _ datasource.DataSourceWithConfigValidators = (*connectedAccountDataSource)(nil)

type connectedAccountDataSource struct{ connectedDataSource }

func newConnectedAccountDataSource() datasource.DataSource { return &connectedAccountDataSource{} }

type connectedAccountDataModel struct {
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	UserIdentifier     types.String `tfsdk:"user_identifier"`
	DisplayName        types.String `tfsdk:"display_name"`
	AccountType        types.String `tfsdk:"account_type"`
	CustomerKey        types.String `tfsdk:"customer_key"`
	ManageNewDevices   types.Bool   `tfsdk:"automatically_manage_new_devices"`
	CreatedAt          types.String `tfsdk:"created_at"`
	Errors             []problem    `tfsdk:"errors"`
}

func (d *connectedAccountDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_connected_account"
}

func (d *connectedAccountDataSource) Schema(
	ctx context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	attributes := elementAttributes(ctx, newConnectedAccountsDataSource(), "connected_accounts")
	delete(attributes, "problems")
	attributes["connected_account_id"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{validators.Identifier{Hint: "Name an account, or leave it out and give its " +
			"`user_identifier`."}},
		MarkdownDescription: "The identifier of the account. Set this or `user_identifier`.",
	}
	attributes["user_identifier"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{validators.NotEmpty{Hint: "Give an email address, a user name, or the address " +
			"of a gateway, or leave it out and give the `connected_account_id`."}},
		MarkdownDescription: "The email address or user name that the owner logs in with, or the address of a " +
			"gateway. Two accounts with it are an error.",
	}
	attributes["errors"] = problemsData("Why the account does not work. Empty if it works.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "One connected account, by its identifier or by what its owner logs in with.",
		Attributes:          attributes,
	}
}

func (d *connectedAccountDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{
		datasourcevalidator.ExactlyOneOf(path.MatchRoot("connected_account_id"), path.MatchRoot("user_identifier")),
	}
}

func (d *connectedAccountDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	const action = "read connected account"
	var model connectedAccountDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	var account *api.ConnectedAccount
	var err error
	given := model.UserIdentifier
	if given.IsNull() {
		account, err = accountByID(ctx, client, model.ConnectedAccountID.ValueString())
	} else if account, err = accountOf(ctx, client, given.ValueString()); account == nil && err == nil {
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("user_identifier"), action, "The workspace of the API key "+
			"has no account with this email address, user name, or gateway address. The data source "+
			"deviceaccess_connected_accounts lists the accounts.")
		return
	}
	if err != nil {
		report(&resp.Diagnostics, action, err)
		return
	}
	model.fill(account)
	if !given.IsNull() {
		model.UserIdentifier = given // Terraform requires what the configuration says
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func accountByID(ctx context.Context, client *api.Client, id string) (*api.ConnectedAccount, error) {
	answer, err := api.Call[api.ConnectedAccountResponse](
		ctx,
		client.GetConnectedAccount,
		api.GetConnectedAccountRequest{ConnectedAccountID: id},
	)
	if err != nil {
		return nil, err
	}
	return &answer.ConnectedAccount, sameID("connected account", answer.ConnectedAccount.ConnectedAccountID, id)
}

// accountOf finds the account that its owner logs in to with this identifier, ignoring case. It returns nil if there is
// none, and an error if there are several.
func accountOf(ctx context.Context, client *api.Client, identifier string) (*api.ConnectedAccount, error) {
	var found *api.ConnectedAccount
	var ids []string
	for account, err := range client.ConnectedAccounts(ctx, api.ListConnectedAccountsRequest{}) {
		if err != nil {
			return nil, err
		}
		is := account.UserIdentifier
		if slices.ContainsFunc([]string{is.Email, is.Username, is.APIURL}, func(one string) bool {
			return strings.EqualFold(one, identifier)
		}) {
			found, ids = &account, append(ids, account.ConnectedAccountID)
		}
	}
	if len(ids) > 1 {
		return nil, fmt.Errorf("%d accounts have this user identifier: %s. Name one by its connected_account_id",
			len(ids), strings.Join(ids, ", "))
	}
	return found, nil
}

func (m *connectedAccountDataModel) fill(account *api.ConnectedAccount) {
	is := account.UserIdentifier
	*m = connectedAccountDataModel{
		ConnectedAccountID: types.StringValue(account.ConnectedAccountID),
		UserIdentifier:     textOrNull(cmp.Or(is.Email, is.Username, is.APIURL)),
		DisplayName:        types.StringValue(account.DisplayName),
		AccountType:        textOrNull(account.AccountType),
		CustomerKey:        textOrNull(account.CustomerKey),
		ManageNewDevices:   types.BoolValue(account.AutomaticallyManageNewDevices),
		CreatedAt:          timestamp(account.CreatedAt),
		Errors:             problemsOf(account.Errors),
	}
}
