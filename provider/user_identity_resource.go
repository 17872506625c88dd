package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity    = (*userIdentityResource)(nil)
	_ resource.ResourceWithImportState = (*userIdentityResource)(nil)
)

type userIdentityResource struct{ identifiedResource }

func newUserIdentityResource() resource.Resource {
	return &userIdentityResource{identifiedResource{attribute: "user_identity_id", noun: "user identity"}}
}

func (r *userIdentityResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_user_identity"
}

func (r *userIdentityResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	same := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	optional := func(hint, description string) schema.Attribute {
		return schema.StringAttribute{
			Optional:            true,
			Validators:          []validator.String{validators.NotEmpty{Hint: hint}},
			MarkdownDescription: description,
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A user identity: a person as your application knows them, who can have a user on " +
			"several access systems. Destroying it also deletes its users from their access systems.",
		Attributes: map[string]schema.Attribute{
			"user_identity_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The identifier of the user identity.",
			},
			"user_identity_key": optional("Give a key, or leave it out.", "The key of the person in your own "+
				"application, unique in the workspace."),
			"full_name": optional("Give a name, or leave it out.", "The name of the person."),
			"email_address": optional("Give an email address, or leave it out.", "The email address of the person, "+
				"unique in the workspace."),
			"phone_number": optional("Give a phone number, or leave it out.", "The phone number of the person in "+
				"E.164 format, such as `+15555550100`. It is unique in the workspace."),
			"created_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "When the user identity was created, in RFC 3339.",
			},
		},
	}
}

func (r *userIdentityResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var model userIdentityModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	answer, err := api.Call[api.UserIdentityResponse](ctx, client.CreateUserIdentity, model.createRequest())
	if err == nil {
		err = hasID("user identity", answer.UserIdentity.UserIdentityID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, "create user identity", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, answer.UserIdentity.WorkspaceID)...)
	model.fillComputed(&answer.UserIdentity)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *userIdentityResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model userIdentityModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.CreatedAt.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	identity, err := r.refreshUserIdentity(ctx, client, model.UserIdentityID.ValueString())
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import user identity", "user identity", model.UserIdentityID.ValueString(),
			"The list resource deviceaccess_user_identity lists user identities.", err)
		return
	case api.IsNotFound(err):
		if r.isDeleted(ctx, req.Private, "read user identity", &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, "read user identity", err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, identity.WorkspaceID)...)
	model.fill(identity)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// refreshUserIdentity reads a user identity from the list, and separately if the list does not have it.
func (r *userIdentityResource) refreshUserIdentity(
	ctx context.Context,
	client *api.Client,
	id string,
) (*api.UserIdentity, error) {
	if listed := r.reads.UserIdentity(ctx, id); listed != nil {
		return listed, nil
	}
	answer, err := api.Call[api.UserIdentityResponse](
		ctx,
		client.GetUserIdentity,
		api.GetUserIdentityRequest{UserIdentityID: id},
	)
	if err != nil {
		return nil, err
	}
	return &answer.UserIdentity, sameID("user identity", answer.UserIdentity.UserIdentityID, id)
}

func (r *userIdentityResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var model, state userIdentityModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := api.Call[api.OkResponse](ctx, client.UpdateUserIdentity, model.updateRequest(&state)); err != nil {
		report(&resp.Diagnostics, "update user identity", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *userIdentityResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	var model userIdentityModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := model.UserIdentityID.ValueString()
	_, err := api.Call[api.OkResponse](ctx, client.DeleteUserIdentity, api.UserIdentityRequest{UserIdentityID: id})
	switch {
	case api.IsNotFound(err):
		r.isDeleted(ctx, req.Private, "delete user identity", &resp.Diagnostics)
	case err != nil:
		// Terraform does not name the resource in an error of a destroy.
		err = &explainedError{"the user identity " + id + ": " + err.Error(), err}
		report(&resp.Diagnostics, "delete user identity", err)
	}
}

// userIdentityIdentity identifies a user identity in Terraform 1.12 and newer.
type userIdentityIdentity struct {
	UserIdentityID types.String `tfsdk:"user_identity_id"`
}

type userIdentityModel struct {
	UserIdentityID  types.String `tfsdk:"user_identity_id"`
	UserIdentityKey types.String `tfsdk:"user_identity_key"`
	FullName        types.String `tfsdk:"full_name"`
	EmailAddress    types.String `tfsdk:"email_address"`
	PhoneNumber     types.String `tfsdk:"phone_number"`
	CreatedAt       types.String `tfsdk:"created_at"`
}

func (m *userIdentityModel) identity() userIdentityIdentity {
	return userIdentityIdentity{m.UserIdentityID}
}

func (m *userIdentityModel) fill(identity *api.UserIdentity) {
	m.fillComputed(identity)
	m.UserIdentityKey = types.StringPointerValue(identity.UserIdentityKey)
	m.FullName = types.StringPointerValue(identity.FullName)
	m.EmailAddress = types.StringPointerValue(identity.EmailAddress)
	m.PhoneNumber = types.StringPointerValue(identity.PhoneNumber)
}

func (m *userIdentityModel) fillComputed(identity *api.UserIdentity) {
	m.UserIdentityID = types.StringValue(identity.UserIdentityID)
	m.CreatedAt = timestamp(identity.CreatedAt)
}

func (m *userIdentityModel) createRequest() api.CreateUserIdentityRequest {
	return api.CreateUserIdentityRequest{
		UserIdentityKey: m.UserIdentityKey.ValueString(),
		FullName:        m.FullName.ValueString(),
		EmailAddress:    m.EmailAddress.ValueString(),
		PhoneNumber:     m.PhoneNumber.ValueString(),
	}
}

// updateRequest asks for what differs from the state.
func (m *userIdentityModel) updateRequest(state *userIdentityModel) api.UpdateUserIdentityRequest {
	return api.UpdateUserIdentityRequest{
		UserIdentityID:  m.UserIdentityID.ValueString(),
		UserIdentityKey: changeOf(state.UserIdentityKey, m.UserIdentityKey),
		FullName:        changeOf(state.FullName, m.FullName),
		EmailAddress:    changeOf(state.EmailAddress, m.EmailAddress),
		PhoneNumber:     changeOf(state.PhoneNumber, m.PhoneNumber),
	}
}

// changeOf returns the change from the state to the plan. It is zero if both are equal.
func changeOf(state, plan types.String) api.Change[string] {
	if plan.Equal(state) {
		return api.Change[string]{}
	}
	return api.Change[string]{Given: true, To: plan.ValueStringPointer()}
}
