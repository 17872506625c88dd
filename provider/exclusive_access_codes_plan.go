package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// ModifyPlan shows the codes that apply will delete. They come from the state alone: Terraform plans once more during
// apply, and what the lock has by then must not change what was shown. For the same reason a creation, which has no
// state, deletes nothing.
func (r *exclusiveAccessCodesResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		warn(&resp.Diagnostics, "Exclusive access codes end",
			"Destroying deviceaccess_exclusive_access_codes deletes no access code: what is on the lock stays, and is no longer watched.")
		return
	}
	var plan exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		plan.DeletedAccessCodes = types.MapValueMust(types.StringType, map[string]attr.Value{})
		r.announce(ctx, &plan, &resp.Diagnostics)
	} else {
		var state exclusiveAccessCodesModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		planDeletions(ctx, &plan, &state, &resp.Diagnostics)
		r.lookForStrays(ctx, &plan, &state, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planDeletions plans to delete what the state knows to be on the lock and the plan does not allow. While not all of that is
// known, nothing is promised: during apply it may turn out that nothing changes at all.
func planDeletions(ctx context.Context, plan, state *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	foreign, allowed := state.foreign(ctx), plan.allowed()
	maps.DeleteFunc(foreign, allowed.has)
	deletable, stuck := split(foreign)
	warnOfStuck(stuck, diags)
	ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx)
	switch {
	case !ids.IsFullyKnown():
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = types.MapUnknown(types.StringType), types.MapUnknown(foreignCodeType)
		if len(deletable) > 0 {
			warnAt(diags, path.Root("deleted_access_codes"), "Access codes may be deleted",
				"Not all of `access_code_ids` is known yet. Applying this plan deletes those of these codes that are not among them:"+listed(deletable))
		}
	case len(deletable) > 0:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = names(deletable), types.MapUnknown(foreignCodeType)
		warnAt(diags, path.Root("deleted_access_codes"), "Access codes will be deleted",
			"Applying this plan takes these codes off the lock "+plan.DeviceID.ValueString()+":"+listed(deletable))
	case plan.AccessCodeIDs.Equal(state.AccessCodeIDs) && plan.Timeouts.Equal(state.Timeouts):
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = state.DeletedAccessCodes, state.ForeignAccessCodes
	default:
		plan.DeletedAccessCodes, plan.ForeignAccessCodes = names(nil), types.MapUnknown(foreignCodeType)
	}
}

// warnOfStuck warns of codes that should go and cannot be deleted.
func warnOfStuck(stuck map[string]foreignCode, diags *diag.Diagnostics) {
	if len(stuck) == 0 {
		return
	}
	next := "Delete them in the app of the lock."
	for _, code := range stuck {
		if code.IsManaged.ValueBool() {
			next = "Offline codes open the lock until they end, and are gone then; to be rid of one before, block it at the lock with the vendor's app. Delete others in that app."
		}
	}
	warnAt(diags, path.Root("foreign_access_codes"), "Access codes that cannot be deleted",
		"The vendor of this lock does not let these codes be deleted, so they stay on it:"+listed(stuck)+"\n\n"+next)
}

// announce says what the plan after the creation will delete, as far as that can be told by now.
func (r *exclusiveAccessCodesResource) announce(ctx context.Context, plan *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	if r.connection == nil || r.api == nil || plan.DeviceID.IsUnknown() || plan.AccessCodeIDs.IsUnknown() {
		return
	}
	onLock, err := codesOn(ctx, r.api, plan.DeviceID.ValueString())
	if err != nil {
		report(diags, actionStock, err)
		return
	}
	foreign, _ := plan.setForeign(ctx, onLock)
	plan.ForeignAccessCodes = types.MapUnknown(foreignCodeType)
	takeStock(foreign, diags)
	plan.warnOfStrays(onLock, diags)
}

// takeStock warns of the codes that the next plan will delete.
func takeStock(foreign map[string]foreignCode, diags *diag.Diagnostics) {
	if deletable, _ := split(foreign); len(deletable) > 0 {
		warnAt(diags, path.Root("access_code_ids"), "There are other access codes on the lock",
			"These codes are not in `access_code_ids`:"+listed(deletable)+"\n\nThis apply deletes none of them. The plan after it shows them in "+
				"`deleted_access_codes`, and applying that plan takes them off the lock.")
	}
}

// offline warns that deletions will wait.
func offline(ctx context.Context, client *api.Client, deviceID string) string {
	device, err := deviceByID(ctx, client, deviceID)
	if err != nil || device.Properties.Online {
		return ""
	}
	return "The lock is offline, so that its codes are those it had when it was last heard of. "
}
