package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ValidateConfig checks what one attribute alone cannot tell.
func (r *accessCodeSetResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config accessCodeSetModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	checkTimeFrame(config.StartsAt, config.EndsAt, &resp.Diagnostics)
}

// ModifyPlan plans lock by lock: what is as declared stays as it is known, and only the locks to work on become
// unknown.
func (r *accessCodeSetResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state accessCodeSetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	exists := !req.State.Raw.IsNull()
	var before map[string]lockCode
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		before = state.codes(ctx)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.writesOnly() {
		plan.Code = types.StringNull()
	}
	plan.AccessCodes = types.MapUnknown(lockCodeType)
	if known, _ := plan.DeviceIDs.ToTerraformValue(ctx); known.IsFullyKnown() {
		codes := map[string]attr.Value{}
		for _, deviceID := range plan.devices(ctx) {
			if exists && !plan.todo(&state, before, deviceID) {
				codes[deviceID] = state.AccessCodes.Elements()[deviceID]
			} else {
				codes[deviceID] = types.ObjectUnknown(lockCodeType.AttrTypes)
			}
		}
		plan.AccessCodes = types.MapValueMust(lockCodeType, codes)
		plan.warnOfDeletions(ctx, &resp.Diagnostics, before)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}
