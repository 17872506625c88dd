package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

type acsUsersDataSource struct{ connectedDataSource }

func newACSUsersDataSource() datasource.DataSource { return &acsUsersDataSource{} }

type acsUsersModel struct {
	ACSSystemID    types.String   `tfsdk:"acs_system_id"`
	UserIdentityID types.String   `tfsdk:"user_identity_id"`
	IdentityEmail  types.String   `tfsdk:"user_identity_email_address"`
	IdentityPhone  types.String   `tfsdk:"user_identity_phone_number"`
	Search         types.String   `tfsdk:"search"`
	Users          []acsUserModel `tfsdk:"acs_users"`
}

type acsUserModel struct {
	ACSUserID          types.String `tfsdk:"acs_user_id"`
	ACSSystemID        types.String `tfsdk:"acs_system_id"`
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	UserIdentityID     types.String `tfsdk:"user_identity_id"`
	FullName           types.String `tfsdk:"full_name"`
	EmailAddress       types.String `tfsdk:"email_address"`
	PhoneNumber        types.String `tfsdk:"phone_number"`
	IsSuspended        types.Bool   `tfsdk:"is_suspended"`
	StartsAt           types.String `tfsdk:"starts_at"`
	EndsAt             types.String `tfsdk:"ends_at"`
	IsPending          types.Bool   `tfsdk:"is_pending"`
	CreatedAt          types.String `tfsdk:"created_at"`
	Problems           []string     `tfsdk:"problems"`
}

func (m *acsUserModel) fill(user *api.AcsUser) {
	m.ACSUserID = types.StringValue(user.AcsUserID)
	m.ACSSystemID = types.StringValue(user.AcsSystemID)
	m.ConnectedAccountID = textOrNull(user.ConnectedAccountID)
	m.UserIdentityID = textOrNull(user.UserIdentityID)
	m.FullName = textOrNull(user.FullName)
	m.EmailAddress = textOrNull(user.EmailAddress)
	m.PhoneNumber = textOrNull(user.PhoneNumber)
	m.IsSuspended = types.BoolPointerValue(user.IsSuspended)
	m.StartsAt, m.EndsAt = types.StringNull(), types.StringNull()
	if s := user.AccessSchedule; s != nil {
		m.StartsAt, m.EndsAt = timestamp(s.StartsAt), instantOf(s.EndsAt).StringValue
	}
	m.IsPending = types.BoolValue(len(user.PendingMutations) > 0)
	m.CreatedAt = timestamp(user.CreatedAt)
	m.Problems = []string{}
	for _, problem := range user.Errors {
		m.Problems = append(m.Problems, problem.ErrorCode)
	}
}

func (d *acsUsersDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_acs_users"
}

func (d *acsUsersDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The users of access systems that the workspace manages: all of them, or those that " +
			"match every condition.",
		Attributes: map[string]schema.Attribute{
			"acs_system_id": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{validators.OptionalIdentifier{}},
				MarkdownDescription: "Only users of this access system.",
			},
			"user_identity_id": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{validators.OptionalIdentifier{}},
				MarkdownDescription: "Only users of this user identity.",
			},
			"user_identity_email_address": schema.StringAttribute{Optional: true, MarkdownDescription: "Only users " +
				"of the user identity with this email address."},
			"user_identity_phone_number": schema.StringAttribute{Optional: true, MarkdownDescription: "Only users " +
				"of the user identity with this phone number, in E.164 format."},
			"search": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Only users whose name, email address, phone number or identifier contains " +
					"this text. Case does not matter.",
			},
			"acs_users": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The users, oldest first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"acs_user_id":          computedText("The identifier of the user."),
					"acs_system_id":        computedText("The access system that the user belongs to."),
					"connected_account_id": computedText("The connected account of the access system."),
					"user_identity_id":     computedText("The user identity of the user. Null if there is none."),
					"full_name":            computedText("The name of the user."),
					"email_address":        computedText("The email address of the user. Null if it has none."),
					"phone_number":         computedText("The phone number of the user. Null if it has none."),
					"is_suspended": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the " +
						"user is suspended, and so denied access. Null if that is not known."},
					"starts_at": computedText("From when the user has access, in RFC 3339. Null if " +
						"access is not limited in time."),
					"ends_at": computedText("Until when the user has access, in RFC 3339. Null if " +
						"access does not end."),
					"is_pending": schema.BoolAttribute{
						Computed:            true,
						MarkdownDescription: "Whether changes of the user have not reached the access system yet.",
					},
					"created_at": computedText("When the user was created, in RFC 3339."),
					"problems": schema.ListAttribute{
						Computed:    true,
						ElementType: types.StringType,
						MarkdownDescription: "The error codes of the user, such as " +
							"`failed_to_create_on_acs_system`. Empty if there are none.",
					},
				}},
			},
		},
	}
}

func (d *acsUsersDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model acsUsersModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	users, err := api.Collect(client.AcsUsers(ctx, api.ListAcsUsersRequest{
		AcsSystemID:              model.ACSSystemID.ValueString(),
		UserIdentityID:           model.UserIdentityID.ValueString(),
		Search:                   model.Search.ValueString(),
		UserIdentityEmailAddress: model.IdentityEmail.ValueString(),
		UserIdentityPhoneNumber:  model.IdentityPhone.ValueString(),
	}))
	if err != nil {
		report(&resp.Diagnostics, "list users of access systems", err)
		return
	}
	model.Users = make([]acsUserModel, len(users))
	for i, user := range users {
		model.Users[i].fill(&user)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
