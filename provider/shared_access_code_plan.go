package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// keepLocks plans the locks of the state, if device_ids is not fully known and may leave out one of them. A code
// leaves a lock only after a plan has shown it. Terraform accepts the value of the state as a planned value.
func (m *sharedAccessCodeModel) keepLocks(ctx context.Context, state *sharedAccessCodeModel, diags *diag.Diagnostics) {
	configured := m.DeviceIDs.Elements()
	leavesOut := func(id attr.Value) bool { return !slices.ContainsFunc(configured, id.Equal) }
	if ids, _ := m.DeviceIDs.ToTerraformValue(ctx); ids.IsFullyKnown() ||
		!slices.ContainsFunc(state.DeviceIDs.Elements(), leavesOut) {
		return
	}
	m.DeviceIDs = state.DeviceIDs
	diagnostics.WarningAt(diags, path.Root("device_ids"), "The locks of the shared code are not known yet",
		"`device_ids` is not known until apply, so this plan keeps the code on its locks and adds none:\n  "+
			strings.Join(state.devices(ctx), "\n  ")+"\n\nRun Terraform again after this apply: the next plan shows "+
			"the locks that change. If this apply also changes the code, and the locks turn out to be others, Terraform "+
			"reports an inconsistent plan. The code then does not change until the next apply.")
}

// warnOfDifferences warns about the codes of the state that differ from the shared code, as after an import. The
// plan does not show their PINs and names, because the state has only those of the shared code.
func (r *sharedAccessCodeResource) warnOfDifferences(
	ctx context.Context,
	config tfsdk.Config,
	plan sharedAccessCodeModel,
	before map[string]lockCode,
	diags *diag.Diagnostics,
) {
	if !r.isConnected() {
		return
	}
	diags.Append(plan.readWriteOnly(ctx, config)...)
	locks := slices.DeleteFunc(plan.devices(ctx), func(deviceID string) bool {
		code := before[deviceID]
		return code.AccessCodeID.ValueString() == "" || code.AsDeclared.ValueBool() || isBeingDeleted(code.Status)
	})
	found := onEach(locks, func(deviceID string) foundCode {
		return readOnLock(ctx, r.refreshCode, r.api, deviceID, before[deviceID].AccessCodeID.ValueString())
	})
	var differing, converted, stuck []string
	for _, deviceID := range locks {
		one := found[deviceID]
		differences := plan.differences(one)
		if one.nothing() || one.managed != nil && differences == nil {
			continue
		}
		lock := "\n  " + r.warnings.cachedLockName(ctx, r.api, deviceID)
		switch {
		case one.unmanaged != nil && one.unmanaged.CannotBeManaged:
			stuck = append(stuck, lock)
			continue
		case one.unmanaged != nil:
			converted = append(converted, lock)
		}
		if differences != nil {
			differing = append(differing, lock+": another "+strings.Join(differences, ", "))
		}
	}
	plan.warnOfChanges(differing, converted, stuck, diags)
}

// differences lists what a code has otherwise than the plan. A PIN that the server hides counts as equal.
func (m *sharedAccessCodeModel) differences(found foundCode) (differences []string) {
	var actual sharedAccessCodeModel
	if found.nothing() {
		return nil
	}
	actual.adopt(found)
	if pin := actual.Code.ValueString(); pin != "" && m.pin() != "" && pin != m.pin() {
		differences = append(differences, "PIN")
	}
	if !m.Name.IsUnknown() && !m.Name.Equal(actual.Name) {
		differences = append(differences, "name")
	}
	framed := !m.StartsAt.IsUnknown() && !m.EndsAt.IsUnknown()
	if framed && (!m.StartsAt.same(actual.StartsAt) || !m.EndsAt.same(actual.EndsAt)) {
		differences = append(differences, "time frame")
	}
	return differences
}

// warnOfChanges warns about locks whose codes change, are converted, and cannot be converted. The summaries have the
// name, because Terraform groups warnings of the same summary.
func (m *sharedAccessCodeModel) warnOfChanges(differing, converted, stuck []string, diags *diag.Diagnostics) {
	name := fmt.Sprintf("%q", m.hide(m.Name.ValueString()))
	at := path.Root("device_ids")
	if len(differing) > 0 {
		diagnostics.WarningAt(diags, at, "The shared code "+name+" changes codes on locks",
			"The codes on these locks differ from the shared code:"+strings.Join(differing, "")+"\n\nApplying this "+
				"plan makes them equal: a PIN that differs stops opening its door. To keep the PIN of a lock, remove "+
				"the lock from `device_ids`, and declare its code with deviceaccess_access_code.")
	}
	if len(converted) > 0 {
		diagnostics.WarningAt(diags, at, "Access codes of "+name+" will be converted to managed",
			"The workspace does not manage the codes on these locks:"+strings.Join(converted, "")+"\n\nApplying this "+
				"plan converts them. Terraform can then change them, and destroying the shared code removes the PIN "+
				"from the locks.")
	}
	if len(stuck) > 0 {
		diagnostics.WarningAt(diags, at, "Access codes of "+name+" cannot be converted to managed",
			"Applying this plan will fail on these locks:"+strings.Join(stuck, "")+"\n\n"+
				sentence(
					errCannotBeManaged.Error(),
				)+" The codes stay on the locks, unmanaged. Remove these locks from "+
				"`device_ids`, or delete the codes in the locks' app.")
	}
}
