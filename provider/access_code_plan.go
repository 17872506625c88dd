package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

// cannotBeManagedKey is the key of the private state that records that the vendor does not allow a conversion.
const cannotBeManagedKey = "cannot_be_managed"

// These texts say what to do with a code that cannot be converted. stayUnmanaged is for a code in the state.
const (
	stayUnmanaged = staysUnmanaged + " Remove it from the state with a removed block, which does not touch the " +
		"lock:\n\n  removed {\n    from = deviceaccess_access_code.NAME\n    lifecycle {\n      destroy = false\n  " +
		"  }\n  }\n\nOr delete it in the lock's app, and let Terraform create another one."
	notImported = "Nothing was imported. " + staysUnmanaged + " Delete it in the lock's app, and let Terraform " +
		"create another one."
	staysUnmanaged = "The code stays on the lock, unmanaged."
)

// ValidateConfig checks rules that involve several attributes.
func (r *accessCodeResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config accessCodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	checkTimeFrame(config.StartsAt, config.EndsAt, &resp.Diagnostics)
	config.checkCreation(&resp.Diagnostics)
}

// ModifyPlan completes the plan of an access code, and announces a conversion.
func (r *accessCodeResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
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
	if !plan.StartsAt.IsUnknown() && !plan.EndsAt.IsUnknown() && !plan.Offline.IsUnknown() {
		plan.Type = types.StringValue(string(plan.plannedType()))
	}
	if !req.State.Raw.IsNull() {
		var state accessCodeModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		plan.warnOfUnknownLock(&resp.Diagnostics)
		r.planUpdate(ctx, req, resp, &plan, &state)
		if isReplaced := len(
			resp.RequiresReplace,
		)+len(
			plan.replacingAttributes(ctx, &state, req.Private, &resp.Diagnostics),
		) > 0; isReplaced {
			warnOfEnd(&resp.Diagnostics, plan.EndsAt)
		} else {
			plan.warnOfReading(ctx, req.Config, &state, &resp.Diagnostics)
		}
		if !plan.isOffline() {
			warnOfLostFrame(&resp.Diagnostics, plan.StartsAt, plan.EndsAt, &state)
		}
	} else {
		warnOfEnd(&resp.Diagnostics, plan.EndsAt)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// warnOfUnknownLock warns that a code with a device_id that is not known yet will be replaced, even if the lock turns
// out to be the same.
func (m *accessCodeModel) warnOfUnknownLock(diags *diag.Diagnostics) {
	if m.DeviceID.IsUnknown() {
		diagnostics.WarningAt(diags, path.Root("device_id"), "Access code will be replaced because its lock is not "+
			"known yet", "`device_id` is not known until apply, so apply deletes the code and creates another one, "+
			"even if the lock turns out to be the same. Without a configured PIN, the new code gets another "+
			"PIN.\n\nWrite `device_id` as a literal value. Or apply in two steps: first the resource that the "+
			"value comes from, with `terraform apply -target=ADDRESS`, then everything.")
	}
}

func (r *accessCodeResource) planUpdate(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
	plan, state *accessCodeModel,
) {
	if !state.IsManaged.IsNull() && !state.IsManaged.ValueBool() {
		r.planConversion(ctx, req, resp, plan)
	}
	if state.isOffline() {
		plan.planOffline(ctx, state, req.Private, resp)
	}
	_, changes := plan.updateRequest(state)
	changes = changes || hasUncertainChange(ctx, req.Private, &resp.Diagnostics)
	if !changes && plan.leavesPIN(ctx, req.Config, state, &resp.Diagnostics) {
		plan.Code = state.Code
	}
	if changes || plan.Name.IsUnknown() || plan.Code.IsUnknown() || plan.IsExternalModificationAllowed.IsUnknown() {
		plan.Status, plan.Errors = types.StringUnknown(), types.ListUnknown(problemType)
	}
	plan.keepBackup(state)
	if isBeingDeleted(state.Status) {
		plan.planAnother(resp)
	}
}

// keepBackup plans the backup codes of the state, which an update does not change. The next refresh shows others.
func (m *accessCodeModel) keepBackup(state *accessCodeModel) {
	if isSet(m.Backup) && isSet(state.Backup) {
		known := state.backup()
		m.Backup = backup{m.backup().UsePool, known.IsAvailable, known.PulledAccessCodeID}.object()
	}
}

// leavesPIN reports whether a PIN that the server hides stays unknown, so that the plan keeps the state's value.
func (m *accessCodeModel) leavesPIN(
	ctx context.Context,
	config tfsdk.Config,
	state *accessCodeModel,
	diags *diag.Diagnostics,
) bool {
	var configured types.String
	diags.Append(config.GetAttribute(ctx, path.Root("code"), &configured)...)
	return configured.IsNull() && state.IsManaged.ValueBool() && !state.writesOnly() && !m.Name.IsUnknown() &&
		!m.IsExternalModificationAllowed.IsUnknown()
}

// planConversion warns that apply converts the code, and marks the attributes that a conversion may set as unknown.
// It does not fail if the vendor allows no conversion, because Terraform also makes this plan before a destroy.
func (r *accessCodeResource) planConversion(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
	plan *accessCodeModel,
) {
	refused, diags := req.Private.GetKey(ctx, cannotBeManagedKey)
	resp.Diagnostics.Append(diags...)
	if string(refused) == "true" {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("is_managed"), "Access code cannot be converted to "+
			"managed",
			"Applying this plan will fail: "+errCannotBeManaged.Error()+".\n\n"+stayUnmanaged)
	} else {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("is_managed"), "Access code will be converted to managed",
			"The code "+plan.AccessCodeID.ValueString()+" is already on the lock and the workspace does not manage "+
				"it. Applying this plan converts it. Terraform can then change the code, and destroying it removes "+
				"the "+
				"PIN from the lock.")
		if isSet(plan.CommonCodeKey) {
			diagnostics.WarningAt(&resp.Diagnostics, path.Root("common_code_key"), sharesNoLonger, lostKey)
		}
	}
	plan.Status, plan.Errors = types.StringUnknown(), types.ListUnknown(problemType)
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

// The lock's vendor computes offline codes, and the lock accepts them without a connection. So their PINs cannot be
// chosen, and an issued code can be neither changed nor deleted until it ends.

// cannotDeleteOffline is the error type for deleting an issued offline code.
const cannotDeleteOffline = "cannot_delete_offline_access_code"

// checkCreation rejects settings that exclude each other. A value that is not known yet may turn out to be null, so it
// excludes nothing.
func (m *accessCodeModel) checkCreation(diags *diag.Diagnostics) {
	const conflict, noFrame = "Conflicting arguments", "Missing time frame"
	offline, usesPool := m.isOffline(), m.backup().UsePool.ValueBool()
	hasPIN, hasKey := isSet(m.Code) || isSet(m.CodeWO), isSet(m.CommonCodeKey)
	unframed, once := m.StartsAt.IsNull() && m.EndsAt.IsNull(), m.offline().IsOneTimeUse
	for _, rule := range []struct {
		broken  bool
		at      path.Path
		summary string
		detail  string
	}{
		{
			offline && hasPIN, path.Root("offline"), conflict,
			"The lock's vendor computes the PIN of an offline code, so it cannot be configured. Leave `code` and " +
				"`code_wo` out: `code` has the PIN after apply.",
		},
		{
			offline && unframed && !once.IsUnknown() && !once.ValueBool(), path.Root("offline"), noFrame,
			"An offline code needs a time frame. Set `starts_at` and `ends_at`; they are optional only with " +
				"`is_one_time_use`, and the code then starts immediately.",
		},
		{
			offline && usesPool, path.Root("backup"), conflict,
			"Offline codes have no backup codes, and need none: the lock accepts them without a connection. Leave " +
				"it out.",
		},
		{
			offline && m.IsExternalModificationAllowed.ValueBool(), path.Root("is_external_modification_allowed"),
			conflict, "An offline code cannot be changed at the lock. Leave it out.",
		},
		{
			offline && hasKey, path.Root("common_code_key"), conflict,
			"The lock's vendor computes the PIN of an offline code, so it cannot be shared. Leave " +
				"`common_code_key` out.",
		},
		{
			usesPool && unframed, path.Root("backup"), noFrame,
			"Only codes with a time frame have backup codes. Set `starts_at` and `ends_at`, or leave `backup` out.",
		},
		{
			hasPIN && isSet(m.PreferredCodeLength), path.Root("preferred_code_length"), conflict,
			"The length can be set only if the server chooses the PIN. Leave `preferred_code_length` out, or " +
				"`code` and `code_wo`.",
		},
		{
			hasPIN && hasKey, path.Root("common_code_key"), conflict,
			"A code with a `common_code_key` gets the PIN of the other codes with that key. Leave out `code` and " +
				"`code_wo`, or the key: codes with the same configured PIN share it anyway.",
		},
	} {
		if rule.broken {
			diagnostics.ErrorAt(diags, rule.at, rule.summary, rule.detail)
		}
	}
}

// fillFrame copies the time frame. An offline code keeps its configured time frame as long as the server's is that one,
// rounded.
func (m *accessCodeModel) fillFrame(code *api.AccessCode) {
	returned := &accessCodeModel{StartsAt: instantOf(code.StartsAt), EndsAt: instantOf(code.EndsAt)}
	returned.fillOffline(code.IsOfflineAccessCode, code.IsOneTimeUse)
	if imported := m.Type.IsNull(); imported || !code.IsOfflineAccessCode || !m.roundedTo(returned) {
		m.StartsAt, m.EndsAt = returned.StartsAt, returned.EndsAt
	}
}

// roundedTo reports whether two time frames of an offline code are equal except for rounding. A one-time code may
// have no time frame, or no end.
func (m *accessCodeModel) roundedTo(other *accessCodeModel) bool {
	step := time.Hour
	if rounding(m.offline().MaxTimeRounding).ValueString() == "1d" {
		step += 24 * time.Hour
	}
	once := other.offline().IsOneTimeUse.ValueBool()
	return (once && m.StartsAt.IsNull() || withinStep(m.StartsAt, other.StartsAt, step)) &&
		(once && m.EndsAt.IsNull() || withinStep(m.EndsAt, other.EndsAt, step))
}

func withinStep(a, b instant, step time.Duration) bool {
	ta, errA := time.Parse(time.RFC3339, a.ValueString())
	tb, errB := time.Parse(time.RFC3339, b.ValueString())
	return errA == nil && errB == nil && ta.Sub(tb).Abs() < step
}

// isIssued reports whether the code in the state is an offline code that the lock accepts until it ends.
func (m *accessCodeModel) isIssued() bool {
	ends, err := time.Parse(time.RFC3339, m.EndsAt.ValueString())
	ended := err == nil && !ends.After(time.Now())
	return m.isOffline() && !m.Code.IsNull() && !ended
}

// wasIssued is issued for a code of the server.
func wasIssued(code *api.AccessCode) bool {
	return code.IsOfflineAccessCode && code.Code != nil && (code.EndsAt == nil || code.EndsAt.After(time.Now()))
}

// rounding returns max_time_rounding in the shorter of its two spellings.
func rounding(configured types.String) types.String {
	switch configured.ValueString() {
	case "1hour":
		return types.StringValue("1h")
	case "1day":
		return types.StringValue("1d")
	}
	return configured
}

// roundsAtCreation is RequiresReplaceUnlessImported for max_time_rounding: another spelling is not a change.
type roundsAtCreation struct{}

func (roundsAtCreation) Description(c context.Context) string           { return roundsToTheHour.Description(c) }
func (m roundsAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (roundsAtCreation) PlanModifyString(
	ctx context.Context,
	req planmodifier.StringRequest,
	resp *planmodifier.StringResponse,
) {
	var before types.Object
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("offline"), &before)...)
	if before.IsNull() {
		return // the whole of offline is new
	}
	plan, state := rounding(req.PlanValue), rounding(req.StateValue)
	if plan.Equal(state) {
		resp.PlanValue = req.StateValue
		return
	}
	req.PlanValue, req.StateValue = plan, state
	roundsToTheHour.PlanModifyString(ctx, req, resp)
}

// changedOffline returns the parts of the attribute offline whose change replaces the code.
func (m *accessCodeModel) changedOffline(state *accessCodeModel, imported bool) (changed path.Paths) {
	at, plan, before := path.Root("offline"), m.offline(), state.offline()
	if m.Offline.IsUnknown() || m.isOffline() != state.isOffline() {
		return path.Paths{at}
	}
	if !plan.IsOneTimeUse.Equal(before.IsOneTimeUse) {
		changed = append(changed, at.AtName("is_one_time_use"))
	}
	if roundsToTheHour.Differs(rounding(before.MaxTimeRounding), rounding(plan.MaxTimeRounding)) &&
		(!imported || !before.MaxTimeRounding.IsNull()) {
		changed = append(changed, at.AtName("max_time_rounding"))
	}
	return changed
}

// planOffline replaces an offline code instead of changing it, and rejects both for an issued code, as the server
// would.
func (m *accessCodeModel) planOffline(
	ctx context.Context,
	state *accessCodeModel,
	private privateState,
	resp *resource.ModifyPlanResponse,
) {
	if m.roundedTo(state) && !m.StartsAt.IsNull() && !m.EndsAt.IsNull() {
		m.StartsAt, m.EndsAt = state.StartsAt, state.EndsAt
	}
	// A time that is not known yet may turn out to be unchanged. If it is not, apply fails.
	undecided := state.isIssued() && (m.StartsAt.IsUnknown() || m.EndsAt.IsUnknown())
	reframed := !undecided && !m.roundedTo(state)
	var changed path.Paths
	for _, part := range []struct {
		attribute string
		differs   bool
	}{
		{"name", isPlannedChange(m.Name, state.Name)},
		{"code", isPlannedChange(m.Code, state.Code) || m.writesOnly()},
		{"starts_at", reframed && !m.StartsAt.same(state.StartsAt)},
		{"ends_at", reframed && !m.EndsAt.same(state.EndsAt)},
		{"is_external_modification_allowed", isPlannedChange(m.IsExternalModificationAllowed, state.IsExternalModificationAllowed)},
	} {
		if part.differs {
			changed = append(changed, path.Root(part.attribute))
		}
	}
	resp.RequiresReplace = append(resp.RequiresReplace, changed...)
	changed = append(
		changed,
		m.replacingAttributes(ctx, state, private, &resp.Diagnostics)...) // other reasons for a replacement
	if len(changed) > 0 && state.isIssued() {
		diagnostics.FailureAt(&resp.Diagnostics, changed[0], "update access code", state.acceptedUntil()+" It can be "+
			"neither changed nor deleted before that.\n\nRestore its configuration, which has `offline`, and add "+
			"another resource for the new code. "+removeFromStateHelp)
	}
}

// warnOfDestroy warns that an issued offline code cannot be destroyed.
func (m *accessCodeModel) warnOfDestroy(diags *diag.Diagnostics) {
	if m.isIssued() {
		diagnostics.Warning(
			diags,
			"Offline access code cannot be deleted",
			m.acceptedUntil()+" Applying this plan will "+
				"fail before that.\n\n"+removeFromStateHelp,
		)
	}
}

// acceptedUntil says until when the lock accepts an offline code.
func (m *accessCodeModel) acceptedUntil() string {
	until := "it ends"
	if !m.EndsAt.IsNull() {
		until = m.EndsAt.ValueString()
	}
	return fmt.Sprintf("The lock's vendor has issued the offline access code %s %q, and the lock accepts it until "+
		"%s without a connection.",
		m.AccessCodeID.ValueString(), m.Name.ValueString(), until)
}

// removeFromStateHelp says how to remove an offline code from the state.
const removeFromStateHelp = "To remove the code from the state, use a removed block; the code opens the lock until it ends:\n\n  " +
	"removed {\n    from = deviceaccess_access_code.NAME\n    lifecycle {\n      destroy = false\n    }\n  }"

// sharesAtCreation replaces a code when its common_code_key changes, which counts at creation only. An imported or
// unmanaged code has no key and gets none: a replacement would remove its PIN from the lock.
type sharesAtCreation struct{}

func (sharesAtCreation) Description(context.Context) string {
	return "A change replaces the code, unless the value is null because of an import or because the code is " +
		"unmanaged."
}
func (m sharesAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (sharesAtCreation) PlanModifyString(
	ctx context.Context,
	req planmodifier.StringRequest,
	resp *planmodifier.StringResponse,
) {
	if req.State.Raw.IsNull() || req.PlanValue.Equal(req.StateValue) {
		return
	}
	var managed types.Bool
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("is_managed"), &managed)...)
	adopted := !managed.ValueBool() || planmodifiers.WasImported(ctx, req.Private, &resp.Diagnostics)
	switch {
	case !req.StateValue.IsNull() || !adopted:
		resp.RequiresReplace = true
	case managed.ValueBool(): // else the conversion warns
		diagnostics.WarningAt(&resp.Diagnostics, req.Path, sharesNoLonger, lostKey)
	}
}

// These texts warn about a code without its configured key.
const (
	sharesNoLonger = "The code shares no PIN"
	lostKey        = "Codes get their `common_code_key` at creation, and lose it when they become unmanaged. This " +
		"code keeps its PIN, but does not share the PIN of the other codes with the key: applying this plan stores " +
		"the key in the state only. For a code that shares the PIN, use `terraform apply -replace`, which removes " +
		"the PIN from the lock in between."
)

// A deletion continues after Terraform was interrupted or its timeout ended because the lock was offline. A
// configured code that is being deleted cannot be kept, and its PIN is free only after it has left the lock. So a
// replacement waits for that.

const beingDeleted = "Access code is being deleted"

// isBeingDeleted reports whether the server is deleting a code.
func isBeingDeleted(status types.String) bool { return status.ValueString() == string(api.Removing) }

// planAnother replaces a code that is being deleted. Deleting it again waits until it has left the lock.
func (m *accessCodeModel) planAnother(resp *resource.ModifyPlanResponse) {
	m.Status = types.StringUnknown()
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("status"))
	diagnostics.WarningAt(
		&resp.Diagnostics,
		path.Root("status"),
		beingDeleted,
		"The code "+m.AccessCodeID.ValueString()+" is being deleted from its lock, as after a destroy that was "+
			"interrupted or timed out, and cannot be kept. Applying this plan waits until the code has left the lock "+
			"and creates another one. Without a configured PIN, the new code gets another PIN.\n\nTo stop that, remove "+
			"the code from the configuration.",
	)
}

// warnOfDeletions warns about locks of the plan on which a code of the shared code is being deleted.
func (m *sharedAccessCodeModel) warnOfDeletions(
	ctx context.Context,
	diags *diag.Diagnostics,
	before map[string]lockCode,
) {
	wanted := m.devices(ctx)
	for _, deviceID := range slices.Sorted(maps.Keys(before)) {
		if slices.Contains(wanted, deviceID) && isBeingDeleted(before[deviceID].Status) {
			diagnostics.WarningAt(diags, path.Root("access_codes").AtMapKey(deviceID), beingDeleted, "The code of "+
				"the shared code on the lock "+deviceID+" is being deleted, as after an apply that was interrupted or "+
				"timed out, and cannot be kept. Applying this plan waits until the code has left the lock and "+
				"creates another one.\n\nTo stop that, remove the lock from `device_ids`.")
		}
	}
}

// stillThere is the error of a replacement whose old code is still being deleted.
type stillThere struct{ error }

func (e stillThere) Unwrap() error { return e.error }

func isStillThere(err error) bool {
	_, ok := errors.AsType[stillThere](err)
	return ok
}

// replace creates the code on a lock after the old one, which is being deleted, has left the lock.
func (m *sharedAccessCodeModel) replace(ctx context.Context, conn *connection, deviceID, id string) lockResult {
	if err := deleteCode(ctx, conn.api, deviceID, id); err != nil && !errors.Is(err, errGone) {
		return m.failedResult(
			ctx,
			conn.api,
			id,
			stillThere{fmt.Errorf("its code %s is still being deleted: %w", id, err)},
		)
	}
	return m.createOn(ctx, conn, deviceID)
}

// These texts say what to do about a code that is being deleted.
const (
	leavesSoon   = "The server deletes it when its lock is online. "
	makesAnother = leavesSoon + "Run Terraform again after that: the next plan creates another code."
	noneToImport = "Nothing was imported. " + leavesSoon + "After that, let Terraform create another code, " +
		"without an import."
	putsItOnAgain = "The server continues to delete it. Run Terraform again when the lock is online: after the " +
		"deletion, the next apply creates another code. For locks that always take longer, raise `timeouts`."
)

// readWriteOnly reads code_wo from the configuration, because neither the plan nor the state has it.
func (m *accessCodeModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

// readWriteOnly reads code_wo from the configuration, because neither the plan nor the state has it.
func (m *sharedAccessCodeModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

func readWriteOnly(ctx context.Context, config tfsdk.Config, pin *types.String) diag.Diagnostics {
	diags := config.GetAttribute(ctx, path.Root("code_wo"), pin)
	if !diags.HasError() && pin.ValueString() == "" {
		diagnostics.Error(&diags, "Empty code_wo", "`code_wo` turned out to be empty. Set it to a PIN. Without "+
			"`code_wo` and `code_wo_version`, a new code gets a generated PIN and an existing code keeps its PIN; "+
			"the state then contains the PIN.")
	}
	return diags
}

// warnOfReading warns that the state will contain the PIN of a code if its code_wo is removed.
func (m *accessCodeModel) warnOfReading(
	ctx context.Context,
	config tfsdk.Config,
	state *accessCodeModel,
	diags *diag.Diagnostics,
) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

// warnOfReading warns that the state will contain the PIN of a shared code if its code_wo is removed.
func (m *sharedAccessCodeModel) warnOfReading(
	ctx context.Context,
	config tfsdk.Config,
	state *sharedAccessCodeModel,
	diags *diag.Diagnostics,
) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

func warnOfReading(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var pin types.String
	diags.Append(config.GetAttribute(ctx, path.Root("code"), &pin)...)
	if pin.IsNull() {
		diagnostics.WarningAt(diags, path.Root("code"), "The state will contain the PIN", "`code_wo` was removed, "+
			"and `code` is not set. The code keeps its PIN, and applying this plan reads the PIN into the "+
			"state.\n\nTo keep the PIN out of the state, restore `code_wo` and `code_wo_version`. To change the "+
			"PIN, set `code_wo` or `code` to the new one.")
	}
}
