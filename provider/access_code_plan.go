package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// alwaysManaged plans is_managed = true, whatever it is now: a code in the configuration is meant to be
// managed, so an unmanaged one shows up as an update, which converts it.
type alwaysManaged struct{}

func (alwaysManaged) Description(context.Context) string {
	return "An unmanaged code is converted by apply."
}
func (m alwaysManaged) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (alwaysManaged) PlanModifyBool(_ context.Context, _ planmodifier.BoolRequest, resp *planmodifier.BoolResponse) {
	resp.PlanValue = types.BoolValue(true)
}

// cannotBeManagedKey is where the resource's private state keeps that the vendor does not allow a conversion.
const cannotBeManagedKey = "cannot_be_managed"

// What can be done with a code that cannot be converted: stayUnmanaged when it is in Terraform's state already.
const (
	stayUnmanaged = staysUnmanaged + " Take it out of Terraform with a removed block, which does not touch the lock:\n\n" +
		"  removed {\n    from = deviceaccess_access_code.NAME\n    lifecycle {\n      destroy = false\n    }\n  }\n\n" +
		"Or delete it in the app of the lock, and let Terraform create one in its place."
	notImported    = "Nothing was imported. " + staysUnmanaged + " Delete it in the app of the lock, and let Terraform create one in its place."
	staysUnmanaged = "The code stays on the lock as it is, unmanaged."
)

// ValidateConfig checks what one attribute alone cannot tell.
func (r *accessCodeResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config accessCodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	checkTimeFrame(config.StartsAt, config.EndsAt, &resp.Diagnostics)
	config.checkCreation(&resp.Diagnostics)
}

// ModifyPlan completes the plan of an access code, and announces a conversion.
func (r *accessCodeResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		var state accessCodeModel
		if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); !resp.Diagnostics.HasError() {
			state.warnOfDestroy(&resp.Diagnostics)
		}
		return
	}
	var plan accessCodeModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.writesOnly() {
		plan.Code = types.StringNull()
	}
	plan.Type = types.StringUnknown()
	if !plan.StartsAt.IsUnknown() && !plan.EndsAt.IsUnknown() && !plan.IsOfflineAccessCode.IsUnknown() {
		plan.Type = types.StringValue(string(plan.plannedType()))
	}
	if !req.State.Raw.IsNull() {
		var state accessCodeModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		plan.warnOfUnknownLock(&resp.Diagnostics)
		r.planUpdate(ctx, req, resp, &plan, &state)
		if isReplaced := len(resp.RequiresReplace)+len(plan.replaces(ctx, &state, req.Private, &resp.Diagnostics)) > 0; isReplaced {
			warnOfEnd(&resp.Diagnostics, plan.EndsAt)
		} else {
			plan.warnOfReading(ctx, req.Config, &state, &resp.Diagnostics)
		}
		if !plan.IsOfflineAccessCode.ValueBool() {
			warnOfLostFrame(&resp.Diagnostics, plan.StartsAt, plan.EndsAt, &state)
		}
	} else {
		warnOfEnd(&resp.Diagnostics, plan.EndsAt)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// warnOfUnknownLock says that a code is replaced whose lock is not known yet, which may turn out to be the one that it is on.
func (m *accessCodeModel) warnOfUnknownLock(diags *diag.Diagnostics) {
	if m.DeviceID.IsUnknown() {
		warnAt(diags, path.Root("device_id"), "Access code is replaced because its lock is not known yet", "`device_id` comes from something that is only known after apply, so apply "+
			"deletes the code and makes another, also if it turns out to be the same lock; with another PIN, where the configuration has none.\n\n"+
			"Write the `device_id` itself. Or apply in two steps: first what it waits for, with `terraform apply -target=ADDRESS`, then everything.")
	}
}

func (r *accessCodeResource) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan, state *accessCodeModel) {
	if !state.IsManaged.IsNull() && !state.IsManaged.ValueBool() {
		r.planConversion(ctx, req, resp, plan)
	}
	if state.IsOfflineAccessCode.ValueBool() {
		plan.planOffline(ctx, state, req.Private, resp)
	}
	_, changes := plan.updateRequest(state)
	changes = changes || doubtsChange(ctx, req.Private, &resp.Diagnostics)
	if !changes && plan.leavesPIN(ctx, req.Config, state, &resp.Diagnostics) {
		plan.Code = state.Code
	}
	if changes || plan.Name.IsUnknown() || plan.Code.IsUnknown() || plan.IsExternalModificationAllowed.IsUnknown() {
		plan.Status, plan.Errors = types.StringUnknown(), types.ListUnknown(types.StringType)
		plan.IsBackupAccessCodeAvailable, plan.PulledBackupAccessCodeID = types.BoolUnknown(), types.StringUnknown()
	}
	if isBeingDeleted(state.Status) {
		plan.planAnother(resp)
	}
}

// leavesPIN says whether a PIN that is not known, because the server does not tell it, is none that a change of anything else
// would make known.
func (m *accessCodeModel) leavesPIN(ctx context.Context, config tfsdk.Config, state *accessCodeModel, diags *diag.Diagnostics) bool {
	var configured types.String
	diags.Append(config.GetAttribute(ctx, path.Root("code"), &configured)...)
	return configured.IsNull() && state.IsManaged.ValueBool() && !state.writesOnly() && !m.Name.IsUnknown() && !m.IsExternalModificationAllowed.IsUnknown()
}

// planConversion warns that apply converts the code, and leaves open what a conversion may fill in. It does not
// fail where the vendor allows no conversion: Terraform makes such a plan also on its way to destroying.
func (r *accessCodeResource) planConversion(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan *accessCodeModel) {
	refused, diags := req.Private.GetKey(ctx, cannotBeManagedKey)
	resp.Diagnostics.Append(diags...)
	if string(refused) == "true" {
		warnAt(&resp.Diagnostics, path.Root("is_managed"), "Access code cannot be converted to managed",
			"Applying this plan will fail: "+errCannotBeManaged.Error()+".\n\n"+stayUnmanaged)
	} else {
		warnAt(&resp.Diagnostics, path.Root("is_managed"), "Access code will be converted to managed",
			"The code "+plan.AccessCodeID.ValueString()+" is on the lock already and is not managed by the workspace. Applying this plan converts it: "+
				"from then on Terraform changes it, and destroying it takes the PIN off the lock.")
		if isSet(plan.CommonCodeKey) {
			warnAt(&resp.Diagnostics, path.Root("common_code_key"), sharesNoLonger, lostKey)
		}
	}
	plan.Status, plan.Errors = types.StringUnknown(), types.ListUnknown(types.StringType)
	if plan.Name.IsNull() {
		plan.Name = types.StringUnknown()
	}
	if plan.Code.IsNull() && !plan.writesOnly() {
		plan.Code = types.StringUnknown()
	}
	if plan.IsExternalModificationAllowed.IsNull() {
		plan.IsExternalModificationAllowed = types.BoolUnknown()
	}
}
