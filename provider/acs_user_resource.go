package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*acsUserResource)(nil)
	_ resource.ResourceWithImportState    = (*acsUserResource)(nil)
	_ resource.ResourceWithValidateConfig = (*acsUserResource)(nil)
)

type acsUserResource struct{ identifiedResource }

func newACSUserResource() resource.Resource {
	return &acsUserResource{identifiedResource{attribute: "acs_user_id", noun: "user"}}
}

func (r *acsUserResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_acs_user"
}

func (r *acsUserResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	same := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	optionalID := validators.Identifier{Hint: "Name a user identity, or leave it out."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A user of an access system. Creating, updating, and destroying it waits until the " +
			"access system has the change. A creation or an update that the access system does not confirm in time " +
			"is a warning, because the server keeps trying.",
		Attributes: map[string]schema.Attribute{
			"acs_user_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The identifier of the user.",
			},
			"acs_system_id": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{validators.Identifier{Hint: "Name an access system."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "The access system that the user belongs to. A change replaces the user.",
			},
			"full_name": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{validators.NotEmpty{Hint: "Give the name of the user."}},
				MarkdownDescription: "The name of the user.",
			},
			"email_address": schema.StringAttribute{
				Optional:      true,
				Computed:      true,
				Validators:    []validator.String{validators.NotEmpty{Hint: "Give an email address, or leave it out."}},
				PlanModifiers: same,
				MarkdownDescription: "The email address of the user. Servers cannot remove it: without it, the user " +
					"keeps the current one.",
			},
			"phone_number": schema.StringAttribute{
				Optional:      true,
				Computed:      true,
				Validators:    []validator.String{validators.NotEmpty{Hint: "Give a phone number, or leave it out."}},
				PlanModifiers: same,
				MarkdownDescription: "The phone number of the user in E.164 format, such as `+15555550100`. Servers " +
					"cannot remove it: without it, the user keeps the current one.",
			},
			"user_identity_id": schema.StringAttribute{
				Optional:   true,
				Validators: []validator.String{optionalID},
				MarkdownDescription: "The user identity of the user. A person can have one user on an access " +
					"system.",
			},
			"acs_access_group_ids": schema.SetAttribute{
				Optional:    true,
				ElementType: types.StringType,
				Validators: []validator.Set{
					setvalidator.ValueStringsAre(validators.Identifier{Hint: "Name an access group."}),
				},
				MarkdownDescription: "The access groups of the user, whose entrances open for the user. Without it, " +
					"Terraform does not read or change the groups.",
			},
			"starts_at": schema.StringAttribute{
				Optional:      true,
				CustomType:    instantType{},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
				MarkdownDescription: "From when the user has access, in RFC 3339 with a time zone. Without it, " +
					"access is not limited in time.",
			},
			"ends_at": schema.StringAttribute{
				Optional:   true,
				CustomType: instantType{},
				Validators: []validator.String{validators.AlsoRequires{Attribute: "starts_at", Hint: "Set both, or " +
					"leave `ends_at` out for access that does not end."}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
				MarkdownDescription: "Until when the user has access, in RFC 3339 with a time zone. Without it, " +
					"access does not end.",
			},
			"is_suspended": schema.BoolAttribute{
				Optional:      true,
				Computed:      true,
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Whether the user is denied access and keeps all settings. Without it, a " +
					"suspension made elsewhere stays.",
			},
			"connected_account_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The connected account of the access system.",
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "When the user was created, or first seen, in RFC 3339.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true,
				Update: true,
				Delete: true,
				CreateDescription: "How long to wait until the access system has the user, such as `30s` or `10m`. By " +
					"default `5m`.",
				UpdateDescription: "How long to wait until the access system has the change, such as `30s` or `10m`. " +
					"By default `5m`.",
				DeleteDescription: "How long to wait until the access system has deleted the user, such as `30s` or " +
					"`10m`. By default `5m`.",
			}),
		},
	}
}

// ValidateConfig rejects access that ends before it starts.
func (r *acsUserResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config acsUserResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	starts, errStarts := time.Parse(time.RFC3339, config.StartsAt.ValueString())
	ends, errEnds := time.Parse(time.RFC3339, config.EndsAt.ValueString())
	if errStarts == nil && errEnds == nil && !ends.After(starts) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("ends_at"), "Invalid time frame",
			"The access ends before it starts: `ends_at` must be after `starts_at`.")
	}
}

func (r *acsUserResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const action = "create user of an access system"
	var model acsUserResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Create(ctx, r.defaults().create)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := api.Call[api.AcsUserResponse](waiting, client.CreateAcsUser, model.createRequest(ctx))
	if err == nil {
		err = hasID("user", answer.AcsUser.AcsUserID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, action, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, answer.AcsUser.WorkspaceID)...)
	suspends := model.IsSuspended.ValueBool()
	model.complete(&answer.AcsUser)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	if suspends {
		if err := setSuspended(waiting, client, model.AcsUserID.ValueString(), true); err != nil {
			warnNotSuspended(&resp.Diagnostics, err)
			return
		}
	}
	warnPending(&resp.Diagnostics, awaitAcsUser(waiting, client, model.AcsUserID.ValueString()))
}

func (r *acsUserResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "read user of an access system"
	var model acsUserResourceModel
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
	user := r.reads.AcsUser(ctx, model.AcsSystemID.ValueString(), model.AcsUserID.ValueString())
	var err error
	if user == nil {
		user, err = readAcsUser(ctx, client, model.AcsUserID.ValueString())
	}
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import user of an access system", "user of an access system",
			model.AcsUserID.ValueString(), "The data source deviceaccess_acs_users lists users.", err)
		return
	case api.IsNotFound(err):
		if r.isDeleted(ctx, req.Private, action, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, user.WorkspaceID)...)
	model.fill(user)
	if !model.AccessGroupIDs.IsNull() {
		groups, err := accessGroupsOf(ctx, client, user.AcsUserID)
		if err != nil {
			report(&resp.Diagnostics, action, err)
			return
		}
		model.AccessGroupIDs = setOf(groups)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *acsUserResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model, state acsUserResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := model.apply(ctx, client, &state); err != nil {
		report(&resp.Diagnostics, "update user of an access system", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	warnPending(&resp.Diagnostics, awaitAcsUser(ctx, client, model.AcsUserID.ValueString()))
}

func (r *acsUserResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	const action = "delete user of an access system"
	var model acsUserResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Delete(ctx, r.defaults().delete)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	id := model.AcsUserID.ValueString()
	_, err := api.Call[api.OkResponse](ctx, client.DeleteAcsUser, api.AcsUserRequest{AcsUserID: id})
	if api.IsNotFound(err) {
		r.isDeleted(ctx, req.Private, action, &resp.Diagnostics)
		return
	}
	if err == nil {
		err = awaitAcsUser(ctx, client, id)
	}
	if err != nil && !api.IsNotFound(err) {
		// Terraform does not name the resource in an error of a destroy.
		text := "the user " + id + " (" + model.FullName.ValueString() + "): " + err.Error()
		report(&resp.Diagnostics, action, &explainedError{text, err})
	}
}

func readAcsUser(ctx context.Context, client *api.Client, id string) (*api.AcsUser, error) {
	answer, err := api.Call[api.AcsUserResponse](ctx, client.GetAcsUser, api.AcsUserRequest{AcsUserID: id})
	if err != nil {
		return nil, err
	}
	return &answer.AcsUser, sameID("user", answer.AcsUser.AcsUserID, id)
}

// awaitAcsUser waits until the access system has every change of the user. After a deletion, the error satisfies
// api.IsNotFound.
func awaitAcsUser(ctx context.Context, client *api.Client, id string) error {
	var last *api.AcsUser
	err := api.Poll(ctx, func() (bool, error) {
		user, err := readAcsUser(ctx, client, id)
		if err == nil {
			last = user
		}
		return err == nil && len(user.PendingMutations) == 0 && !deletionIsPending(user), err
	})
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) || last == nil {
		return err
	}
	text := "the access system had not confirmed the change when the time was up" + api.PollFailureSuffix(err)
	for _, problem := range last.Errors {
		text += "; the user has the error: " + strings.TrimSuffix(problem.Message, ".") + " (" + problem.ErrorCode + ")"
	}
	return &explainedError{text, err}
}

// deletionIsPending reports whether the access system still has a user whose deletion the server has accepted.
func deletionIsPending(user *api.AcsUser) bool {
	for _, warning := range user.Warnings {
		if warning.WarningCode == "being_deleted" {
			return true
		}
	}
	return false
}

// warnPending warns that the access system does not have an accepted change yet. An error would taint a new user.
func warnPending(diags *diag.Diagnostics, err error) {
	if err != nil {
		diagnostics.Warning(diags, "Change has not reached the access system", sentence(err.Error())+"\n\nThe server "+
			"keeps trying. The data source deviceaccess_acs_users shows the state of the user.")
	}
}

// warnNotSuspended warns that a new user is not suspended. An error would taint the user. The next refresh finds the
// difference.
func warnNotSuspended(diags *diag.Diagnostics, err error) {
	diagnostics.WarningAt(diags, path.Root("is_suspended"), "User may not be suspended", sentence(err.Error())+
		"\n\nThe server has created the user, who can open doors until the suspension. Apply again to suspend the user.")
}

func setSuspended(ctx context.Context, client *api.Client, id string, suspended bool) error {
	operation := client.UnsuspendAcsUser
	if suspended {
		operation = client.SuspendAcsUser
	}
	_, err := api.Call[api.OkResponse](ctx, operation, api.AcsUserRequest{AcsUserID: id})
	return err
}

// acsUserIdentity identifies a user of an access system in Terraform 1.12 and newer.
type acsUserIdentity struct {
	AcsUserID types.String `tfsdk:"acs_user_id"`
}

type acsUserResourceModel struct {
	AcsUserID          types.String   `tfsdk:"acs_user_id"`
	AcsSystemID        types.String   `tfsdk:"acs_system_id"`
	FullName           types.String   `tfsdk:"full_name"`
	EmailAddress       types.String   `tfsdk:"email_address"`
	PhoneNumber        types.String   `tfsdk:"phone_number"`
	UserIdentityID     types.String   `tfsdk:"user_identity_id"`
	AccessGroupIDs     types.Set      `tfsdk:"acs_access_group_ids"`
	StartsAt           instant        `tfsdk:"starts_at"`
	EndsAt             instant        `tfsdk:"ends_at"`
	IsSuspended        types.Bool     `tfsdk:"is_suspended"`
	ConnectedAccountID types.String   `tfsdk:"connected_account_id"`
	CreatedAt          types.String   `tfsdk:"created_at"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

func (m *acsUserResourceModel) identity() acsUserIdentity { return acsUserIdentity{m.AcsUserID} }

func (m *acsUserResourceModel) fill(user *api.AcsUser) {
	*m = acsUserResourceModel{
		AcsUserID:          types.StringValue(user.AcsUserID),
		AcsSystemID:        types.StringValue(user.AcsSystemID),
		FullName:           types.StringValue(user.FullName),
		EmailAddress:       textOrNull(user.EmailAddress),
		PhoneNumber:        textOrNull(user.PhoneNumber),
		UserIdentityID:     textOrNull(user.UserIdentityID),
		StartsAt:           instant{types.StringNull()},
		EndsAt:             instant{types.StringNull()},
		IsSuspended:        types.BoolPointerValue(user.IsSuspended),
		ConnectedAccountID: textOrNull(user.ConnectedAccountID),
		CreatedAt:          timestamp(user.CreatedAt),
		AccessGroupIDs:     m.AccessGroupIDs,
		Timeouts:           m.Timeouts,
	}
	if schedule := user.AccessSchedule; schedule != nil {
		m.StartsAt, m.EndsAt = instantOf(&schedule.StartsAt), instantOf(schedule.EndsAt)
	}
}

// complete fills in what is not planned. What is planned stays as Terraform knows it.
func (m *acsUserResourceModel) complete(user *api.AcsUser) {
	planned := *m
	m.fill(user)
	m.FullName, m.UserIdentityID = planned.FullName, planned.UserIdentityID
	m.StartsAt, m.EndsAt = planned.StartsAt, planned.EndsAt
	if !planned.EmailAddress.IsUnknown() {
		m.EmailAddress = planned.EmailAddress
	}
	if !planned.PhoneNumber.IsUnknown() {
		m.PhoneNumber = planned.PhoneNumber
	}
	if !planned.IsSuspended.IsUnknown() {
		m.IsSuspended = planned.IsSuspended
	}
}

func (m *acsUserResourceModel) createRequest(ctx context.Context) api.CreateAcsUserRequest {
	return api.CreateAcsUserRequest{
		AcsSystemID:    m.AcsSystemID.ValueString(),
		FullName:       m.FullName.ValueString(),
		EmailAddress:   m.EmailAddress.ValueString(),
		PhoneNumber:    m.PhoneNumber.ValueString(),
		UserIdentityID: m.UserIdentityID.ValueString(),
		AccessSchedule: m.schedule(),

		AcsAccessGroupIds: sortedStrings(ctx, m.AccessGroupIDs),
	}
}

// schedule returns the time frame, or nil if there is none.
func (m *acsUserResourceModel) schedule() *api.AcsAccessScheduleRequest {
	if m.StartsAt.IsNull() {
		return nil
	}
	return &api.AcsAccessScheduleRequest{StartsAt: m.StartsAt.ValueString(), EndsAt: m.EndsAt.ValueString()}
}

// apply sends what differs from the state.
func (m *acsUserResourceModel) apply(ctx context.Context, client *api.Client, state *acsUserResourceModel) error {
	id := m.AcsUserID.ValueString()
	if !m.UserIdentityID.Equal(state.UserIdentityID) {
		if err := m.moveToIdentity(ctx, client, state.UserIdentityID); err != nil {
			return err
		}
	}
	if request, changes := m.updateRequest(state); changes {
		if _, err := api.Call[api.OkResponse](ctx, client.UpdateAcsUser, request); err != nil {
			return err
		}
	}
	if !m.AccessGroupIDs.IsNull() && !m.AccessGroupIDs.Equal(state.AccessGroupIDs) {
		if err := m.moveToGroups(ctx, client); err != nil {
			return err
		}
	}
	if !m.IsSuspended.Equal(state.IsSuspended) {
		return setSuspended(ctx, client, id, m.IsSuspended.ValueBool())
	}
	return nil
}

// updateRequest asks for what differs from the state, and reports whether anything does.
func (m *acsUserResourceModel) updateRequest(state *acsUserResourceModel) (api.UpdateAcsUserRequest, bool) {
	request := api.UpdateAcsUserRequest{AcsUserID: m.AcsUserID.ValueString()}
	changes := false
	for _, field := range []struct {
		to        *string
		was, will types.String
	}{
		{&request.FullName, state.FullName, m.FullName},
		{&request.EmailAddress, state.EmailAddress, m.EmailAddress},
		{&request.PhoneNumber, state.PhoneNumber, m.PhoneNumber},
	} {
		if !field.will.Equal(field.was) {
			*field.to, changes = field.will.ValueString(), true
		}
	}
	if !m.StartsAt.same(state.StartsAt) || !m.EndsAt.same(state.EndsAt) {
		request.AccessSchedule, changes = api.AcsAccessScheduleChange{Given: true, To: m.schedule()}, true
	}
	return request, changes
}

// accessGroupsOf returns the identifiers of the access groups that a user must have.
func accessGroupsOf(ctx context.Context, client *api.Client, id string) ([]string, error) {
	request := api.ListAcsAccessGroupsRequest{AcsUserID: id}
	answer, err := api.Call[api.AcsAccessGroupsResponse](ctx, client.ListAcsAccessGroups, request)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, group := range answer.AcsAccessGroups {
		ids = append(ids, group.AcsAccessGroupID)
	}
	return ids, nil
}

func setOf(texts []string) types.Set {
	values := make([]attr.Value, len(texts))
	for i, text := range texts {
		values[i] = types.StringValue(text)
	}
	return types.SetValueMust(types.StringType, values)
}

// moveToGroups gives the user the planned access groups. It adds before it removes, so that access does not lapse.
func (m *acsUserResourceModel) moveToGroups(ctx context.Context, client *api.Client) error {
	id, planned := m.AcsUserID.ValueString(), sortedStrings(ctx, m.AccessGroupIDs)
	current, err := accessGroupsOf(ctx, client, id)
	if err != nil {
		return err
	}
	for _, group := range planned {
		if slices.Contains(current, group) {
			continue
		}
		request := api.AddAcsUserToAccessGroupRequest{AcsUserID: id, AcsAccessGroupID: group}
		if _, err := api.Call[api.OkResponse](ctx, client.AddAcsUserToAccessGroup, request); err != nil {
			return err
		}
	}
	for _, group := range current {
		if slices.Contains(planned, group) {
			continue
		}
		request := api.AcsAccessGroupMemberRequest{AcsUserID: id, AcsAccessGroupID: group}
		if _, err := api.Call[api.OkResponse](ctx, client.RemoveAcsUserFromAccessGroup, request); err != nil {
			return err
		}
	}
	return nil
}

// moveToIdentity gives the user the planned user identity, or none.
func (m *acsUserResourceModel) moveToIdentity(ctx context.Context, client *api.Client, from types.String) error {
	id := m.AcsUserID.ValueString()
	if !from.IsNull() {
		_, err := api.Call[api.OkResponse](
			ctx,
			client.RemoveAcsUserFromUserIdentity,
			api.RemoveAcsUserFromUserIdentityRequest{AcsUserID: id, UserIdentityID: from.ValueString()},
		)
		if err != nil && !api.IsNotFound(err) { // the user identity may be deleted
			return err
		}
	}
	if m.UserIdentityID.IsNull() {
		return nil
	}
	_, err := api.Call[api.OkResponse](
		ctx,
		client.AddAcsUserToUserIdentity,
		api.AddAcsUserToUserIdentityRequest{AcsUserID: id, UserIdentityID: m.UserIdentityID.ValueString()},
	)
	return err
}
