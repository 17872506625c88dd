package provider

import (
	"context"
	"slices"

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
	if exists {
		warnOfLostFrame(&resp.Diagnostics, plan.StartsAt, plan.EndsAt, state.on("", ""))
		if !isKeptNoLonger(state.Keepers, plan.Keepers) {
			plan.warnOfReading(ctx, req.Config, &state, &resp.Diagnostics)
		}
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
		if plan.creates(ctx, &state, before) {
			warnOfEnd(&resp.Diagnostics, plan.EndsAt)
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// creates says whether the plan makes a code on any lock: what there is of the set before may be nothing.
func (m *accessCodeSetModel) creates(ctx context.Context, state *accessCodeSetModel, before map[string]lockCode) bool {
	return before == nil || isKeptNoLonger(state.Keepers, m.Keepers) || slices.ContainsFunc(m.devices(ctx), func(deviceID string) bool {
		code, known := before[deviceID]
		return !known || code.AccessCodeID.IsNull() || isBeingDeleted(code.Status)
	})
}
