package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// A deletion goes on when Terraform is no longer there: it was interrupted, or its time was up because the lock was offline. A code that is declared
// and on its way off its lock is as good as gone. It cannot be kept, and its PIN is free only once it has left, so what makes another waits for that.

const beingDeleted = "Access code is being deleted"

// isBeingDeleted says whether a code of the state is on its way off its lock.
func isBeingDeleted(status types.String) bool { return status.ValueString() == string(api.Removing) }

// planAnother replaces a code that is being deleted. Deleting it once more waits until it is gone.
func (m *accessCodeModel) planAnother(resp *resource.ModifyPlanResponse) {
	m.Status = types.StringUnknown()
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("status"))
	warnAt(&resp.Diagnostics, path.Root("status"), beingDeleted, "The code "+m.AccessCodeID.ValueString()+" is on its way off its lock, as after a destroy that was interrupted or did not end in time, and "+
		"cannot be kept. Applying this plan waits until it is gone and makes another; with another PIN, where the configuration has none.\n\nIf it is not to come back, take it out of the configuration.")
}

// warnOfDeletions says on which locks of the plan a code of the set is being deleted.
func (m *accessCodeSetModel) warnOfDeletions(ctx context.Context, diags *diag.Diagnostics, before map[string]lockCode) {
	wanted := m.devices(ctx)
	for _, deviceID := range slices.Sorted(maps.Keys(before)) {
		if slices.Contains(wanted, deviceID) && isBeingDeleted(before[deviceID].Status) {
			warnAt(diags, path.Root("access_codes").AtMapKey(deviceID), beingDeleted, "The code of the set on the lock "+deviceID+" is on its way off it, as after an apply that was interrupted or did not "+
				"end in time, and cannot be kept. Applying this plan waits until it is gone and makes another.\n\nIf it is not to come back, take the lock out of `device_ids`.")
		}
	}
}

// stillThere is what kept a code that is being deleted from being replaced.
type stillThere struct{ error }

func (e stillThere) Unwrap() error { return e.error }

func isStillThere(err error) bool {
	_, ok := errors.AsType[stillThere](err)
	return ok
}

// replace puts the code on a lock once the one that is being deleted there is gone.
func (m *accessCodeSetModel) replace(ctx context.Context, conn *connection, deviceID, id string) done {
	if err := deleteCode(ctx, conn.api, deviceID, id); err != nil && !errors.Is(err, errGone) {
		return m.failed(ctx, conn.api, id, stillThere{fmt.Errorf("its code %s is still being deleted: %w", id, err)})
	}
	return m.put(ctx, conn, deviceID)
}

// What can be done about a code that cannot be converted because it is being deleted.
const (
	leavesSoon    = "It leaves its lock when that is online, whatever is applied. "
	makesAnother  = leavesSoon + "Run Terraform again once it is gone: the next plan makes another in its place."
	noneToImport  = "Nothing was imported. " + leavesSoon + "Have Terraform create one in its place once it is gone, without importing it."
	putsItOnAgain = "The server goes on deleting it. Run Terraform again when the lock is online: once it is gone, the next apply makes another. For locks that always take longer, raise `timeouts`."
)
