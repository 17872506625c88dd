package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ValidateConfig refuses what is no identifier of an access code: a code that is mistyped here is a code that is deleted. What
// identifiers look like servers decide, each for all of its own: where that of the lock is a UUID, those of its codes are.
func (r *exclusiveAccessCodesResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config exclusiveAccessCodesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	uuids := uuid.Validate(config.DeviceID.ValueString()) == nil
	for _, id := range slices.Sorted(maps.Keys(config.allowed())) {
		like := ""
		switch {
		case strings.ContainsAny(id, "/ ,"):
			like = "it has a slash, a comma or a blank"
		case uuids && uuid.Validate(id) != nil:
			like = "it is no UUID, as the `device_id` is"
		default:
			continue
		}
		refuseAt(&resp.Diagnostics, path.Root("access_code_ids").AtSetValue(types.StringValue(id)), "Check the access code",
			fmt.Sprintf("%q is not the `access_code_id` of a code: %s. The code that is meant would be deleted. The data sources deviceaccess_access_codes and "+
				"deviceaccess_unmanaged_access_codes list those there are.", id, like))
	}
}

// warnOfStrays warns of what may be on the lock, but is not there: maybe another code is meant, which is to go then.
func (m *exclusiveAccessCodesModel) warnOfStrays(onLock map[string]foreignCode, diags *diag.Diagnostics) {
	strays := m.allowed()
	maps.DeleteFunc(strays, func(id string, _ bool) bool { _, there := onLock[id]; return there || id == "" })
	if len(strays) == 0 {
		return
	}
	warnAt(diags, path.Root("access_code_ids"), "No such access codes on the lock",
		"These are in `access_code_ids`, but are no codes on the lock "+m.DeviceID.ValueString()+":\n  "+strings.Join(slices.Sorted(maps.Keys(strays)), "\n  ")+
			"\n\nIf one is mistyped, or of a code on another lock, the code that was meant is deleted with all others that are not in `access_code_ids`: correct it before "+
			"applying a plan that deletes codes. If its code has ended or was deleted, take it out.")
}

// lookForStrays is warnOfStrays for a lock that is watched already, and warns of codes that no longer may be there.
func (r *exclusiveAccessCodesResource) lookForStrays(ctx context.Context, plan, state *exclusiveAccessCodesModel, diags *diag.Diagnostics) {
	if !r.isConnected() || !plan.DeviceID.Equal(state.DeviceID) {
		return
	}
	if onLock, err := r.refreshCodesOn(ctx, r.api, plan.DeviceID.ValueString()); err == nil { // else the refresh has said so
		plan.warnOfStrays(onLock, diags)
		if ids, _ := plan.AccessCodeIDs.ToTerraformValue(ctx); ids.IsFullyKnown() {
			warnOfReleased(released(plan, state, onLock), diags)
		}
	}
}

// warnOfReleased warns, in plan and apply, of codes that no longer may be on the lock and are not deleted yet.
func warnOfReleased(codes map[string]foreignCode, diags *diag.Diagnostics) {
	deletable, stuck := split(codes)
	warnOfStuck(stuck, diags)
	if len(deletable) > 0 {
		warnAt(diags, path.Root("access_code_ids"), "Access codes stay on the lock until the next plan",
			"These codes are no longer in `access_code_ids`:"+listed(deletable)+"\n\nThis resource deletes none of them in this apply, so that their PINs go on opening the door, unless "+
				"another resource deletes them. The plan after it shows what is left of them in `deleted_access_codes`, and applying that plan takes it off the lock.")
	}
}
