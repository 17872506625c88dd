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
		diagnostics.WarningAt(diags, path.Root("device_id"), "Access code is replaced because its lock is not known yet", "`device_id` comes from something that is only known after apply, so apply "+
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
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("is_managed"), "Access code cannot be converted to managed",
			"Applying this plan will fail: "+errCannotBeManaged.Error()+".\n\n"+stayUnmanaged)
	} else {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("is_managed"), "Access code will be converted to managed",
			"The code "+plan.AccessCodeID.ValueString()+" is on the lock already and is not managed by the workspace. Applying this plan converts it: "+
				"from then on Terraform changes it, and destroying it takes the PIN off the lock.")
		if isSet(plan.CommonCodeKey) {
			diagnostics.WarningAt(&resp.Diagnostics, path.Root("common_code_key"), sharesNoLonger, lostKey)
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

// Offline codes are made by the lock's vendor, and the lock accepts them without being told: so nobody can choose their
// digits, and those that were issued can be neither changed nor taken back before they end.

// cannotDeleteOffline is the type of the error by which a server says so.
const cannotDeleteOffline = "cannot_delete_offline_access_code"

// checkCreation refuses what no server would take: settings of which one rules the other out. What is not known yet may
// turn out to be null, and rules nothing out.
func (m *accessCodeModel) checkCreation(diags *diag.Diagnostics) {
	const action = "Check the access code"
	offline, hasPIN, hasKey := m.IsOfflineAccessCode.ValueBool(), isSet(m.Code) || isSet(m.CodeWO), isSet(m.CommonCodeKey)
	unframed := m.StartsAt.IsNull() && m.EndsAt.IsNull()
	for _, rule := range []struct {
		broken bool
		at     string
		detail string
	}{
		{offline && hasPIN, "is_offline_access_code",
			"The lock's vendor makes the PIN of an offline code, so none can be configured. Leave `code` and `code_wo` out: `code` tells the PIN after apply."},
		{offline && unframed && !m.IsOneTimeUse.IsUnknown() && !m.IsOneTimeUse.ValueBool(), "is_offline_access_code",
			"An offline code needs a time frame. Set `starts_at` and `ends_at`; only one with `is_one_time_use` does without, and begins when it is created."},
		{m.IsOneTimeUse.ValueBool() && !offline && !m.IsOfflineAccessCode.IsUnknown(), "is_one_time_use",
			"Only offline codes open once. Set `is_offline_access_code = true`, for a lock that can do that, or leave `is_one_time_use` out."},
		{offline && m.UseBackupAccessCodePool.ValueBool(), "use_backup_access_code_pool",
			"Offline codes have no backup codes, and need none: the lock knows them without being told. Leave it out."},
		{offline && m.IsExternalModificationAllowed.ValueBool(), "is_external_modification_allowed",
			"An offline code cannot be changed at the lock. Leave it out."},
		{offline && hasKey, "common_code_key",
			"The lock's vendor makes the PIN of an offline code, so it cannot be shared. Leave `common_code_key` out."},
		{m.UseBackupAccessCodePool.ValueBool() && unframed, "use_backup_access_code_pool",
			"Only codes with a time frame have backup codes. Set `starts_at` and `ends_at`, or leave `use_backup_access_code_pool` out."},
		{hasPIN && isSet(m.PreferredCodeLength), "preferred_code_length",
			"The length of a PIN can be asked for only where the server makes it. Leave `preferred_code_length` out, or `code` and `code_wo`."},
		{hasPIN && hasKey, "common_code_key",
			"A code with a `common_code_key` gets the PIN of the others that have it. Leave `code` and `code_wo` out, or the key: codes that are configured with the same PIN share it anyway."},
	} {
		if rule.broken {
			diagnostics.ErrorAt(diags, path.Root(rule.at), action, rule.detail)
		}
	}
}

// fillFrame takes over the time frame. An offline code keeps the one it was asked for while the server's is that,
// rounded.
func (m *accessCodeModel) fillFrame(code *api.AccessCode) {
	told := &accessCodeModel{StartsAt: instantOf(code.StartsAt), EndsAt: instantOf(code.EndsAt), IsOneTimeUse: types.BoolValue(code.IsOneTimeUse)}
	if imported := m.Type.IsNull(); imported || !code.IsOfflineAccessCode || !m.roundedTo(told) {
		m.StartsAt, m.EndsAt = told.StartsAt, told.EndsAt
	}
}

// roundedTo says whether the time frame of an offline code is the other's but for rounding. One that opens once may do
// without, or without its end.
func (m *accessCodeModel) roundedTo(other *accessCodeModel) bool {
	step := time.Hour
	if rounding(m.MaxTimeRounding).ValueString() == "1d" {
		step += 24 * time.Hour
	}
	once := other.IsOneTimeUse.ValueBool()
	return (once && m.StartsAt.IsNull() || near(m.StartsAt, other.StartsAt, step)) && (once && m.EndsAt.IsNull() || near(m.EndsAt, other.EndsAt, step))
}

func near(a, b instant, step time.Duration) bool {
	ta, errA := time.Parse(time.RFC3339, a.ValueString())
	tb, errB := time.Parse(time.RFC3339, b.ValueString())
	return errA == nil && errB == nil && ta.Sub(tb).Abs() < step
}

// issued says of a code in the state that the lock accepts it until it ends, whatever anybody does.
func (m *accessCodeModel) issued() bool {
	ends, err := time.Parse(time.RFC3339, m.EndsAt.ValueString())
	ended := err == nil && !ends.After(time.Now())
	return m.IsOfflineAccessCode.ValueBool() && !m.Code.IsNull() && !ended
}

// wasIssued is issued for a code as the server tells it.
func wasIssued(code *api.AccessCode) bool {
	return code.IsOfflineAccessCode && code.Code != nil && (code.EndsAt == nil || code.EndsAt.After(time.Now()))
}

// rounding is max_time_rounding in the shorter of its two spellings.
func rounding(configured types.String) types.String {
	switch configured.ValueString() {
	case "1hour":
		return types.StringValue("1h")
	case "1day":
		return types.StringValue("1d")
	}
	return configured
}

// roundsAtCreation is planmodifiers.RequiresReplaceUnlessImported for max_time_rounding: another spelling is no change.
type roundsAtCreation struct{}

func (roundsAtCreation) Description(c context.Context) string           { return roundsToTheHour.Description(c) }
func (m roundsAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (roundsAtCreation) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	plan, state := rounding(req.PlanValue), rounding(req.StateValue)
	if plan.Equal(state) {
		resp.PlanValue = req.StateValue
		return
	}
	req.PlanValue, req.StateValue = plan, state
	roundsToTheHour.PlanModifyString(ctx, req, resp)
}

// planOffline replaces an offline code that is to be changed, and refuses that for one that was issued: neither would
// the server do it.
func (m *accessCodeModel) planOffline(ctx context.Context, state *accessCodeModel, private privateState, resp *resource.ModifyPlanResponse) {
	if m.roundedTo(state) && !m.StartsAt.IsNull() && !m.EndsAt.IsNull() {
		m.StartsAt, m.EndsAt = state.StartsAt, state.EndsAt
	}
	// One that is not known yet may turn out to be what it was. If not, apply refuses.
	undecided := state.issued() && (m.StartsAt.IsUnknown() || m.EndsAt.IsUnknown())
	reframed := !undecided && !m.roundedTo(state)
	var changed path.Paths
	for _, part := range []struct {
		attribute string
		differs   bool
	}{
		{"name", planned(m.Name, state.Name)},
		{"code", planned(m.Code, state.Code) || m.writesOnly()},
		{"starts_at", reframed && !m.StartsAt.same(state.StartsAt)},
		{"ends_at", reframed && !m.EndsAt.same(state.EndsAt)},
		{"is_external_modification_allowed", planned(m.IsExternalModificationAllowed, state.IsExternalModificationAllowed)},
	} {
		if part.differs {
			changed = append(changed, path.Root(part.attribute))
		}
	}
	resp.RequiresReplace = append(resp.RequiresReplace, changed...)
	changed = append(changed, m.replaces(ctx, state, private, &resp.Diagnostics)...) // which it is replaced for anyway
	if len(changed) > 0 && state.issued() {
		diagnostics.ErrorAt(&resp.Diagnostics, changed[0], "Update access code", state.accepted()+" It can be neither changed nor deleted before that.\n\n"+
			"Put its configuration back as it was, and add another resource for the code that you want. "+letGo)
	}
}

// warnOfDestroy says that an offline code that was issued cannot be destroyed.
func (m *accessCodeModel) warnOfDestroy(diags *diag.Diagnostics) {
	if m.issued() {
		diagnostics.Warning(diags, "Offline access code cannot be deleted", m.accepted()+" Applying this plan will fail before that.\n\n"+letGo)
	}
}

// accepted says until when the lock accepts an offline code.
func (m *accessCodeModel) accepted() string {
	until := "it ends"
	if !m.EndsAt.IsNull() {
		until = m.EndsAt.ValueString()
	}
	return fmt.Sprintf("The lock's vendor has made the offline access code %s %q, and the lock accepts it until %s without being told.",
		m.AccessCodeID.ValueString(), m.Name.ValueString(), until)
}

// letGo is what can be done with an offline code that is in the way.
const letGo = "To have Terraform let go of the code, which opens the lock until it ends, take it out with a removed block:\n\n" +
	"  removed {\n    from = deviceaccess_access_code.NAME\n    lifecycle {\n      destroy = false\n    }\n  }"

// sharesAtCreation replaces a code when its common_code_key changes, which it is created with. One that was there before
// Terraform, or is not managed, has none and gets none: making another would take its PIN off the lock.
type sharesAtCreation struct{}

func (sharesAtCreation) Description(context.Context) string {
	return "Changing it makes another, unless it is null because of an import or because the code is unmanaged."
}
func (m sharesAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (sharesAtCreation) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
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

// What is said of a code that is to have a key and has none.
const (
	sharesNoLonger = "The code shares no PIN"
	lostKey        = "Codes get their `common_code_key` when they are created, and lose it when they are no longer managed. This one keeps its PIN, but does not share it with " +
		"the other codes of the key: applying this plan takes the key down in the state only. For a code that shares it, use `terraform apply -replace`, which takes the PIN off " +
		"the lock in between."
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
	diagnostics.WarningAt(&resp.Diagnostics, path.Root("status"), beingDeleted, "The code "+m.AccessCodeID.ValueString()+" is on its way off its lock, as after a destroy that was interrupted or did not end in time, and "+
		"cannot be kept. Applying this plan waits until it is gone and makes another; with another PIN, where the configuration has none.\n\nIf it is not to come back, take it out of the configuration.")
}

// warnOfDeletions says on which locks of the plan a code of the set is being deleted.
func (m *accessCodeSetModel) warnOfDeletions(ctx context.Context, diags *diag.Diagnostics, before map[string]lockCode) {
	wanted := m.devices(ctx)
	for _, deviceID := range slices.Sorted(maps.Keys(before)) {
		if slices.Contains(wanted, deviceID) && isBeingDeleted(before[deviceID].Status) {
			diagnostics.WarningAt(diags, path.Root("access_codes").AtMapKey(deviceID), beingDeleted, "The code of the set on the lock "+deviceID+" is on its way off it, as after an apply that was interrupted or did not "+
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

// readWriteOnly takes the PIN that is written only from the configuration, the one place that has it.
func (m *accessCodeModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

// readWriteOnly takes the PIN that is written only from the configuration, the one place that has it.
func (m *accessCodeSetModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

func readWriteOnly(ctx context.Context, config tfsdk.Config, pin *types.String) diag.Diagnostics {
	diags := config.GetAttribute(ctx, path.Root("code_wo"), pin)
	if !diags.HasError() && pin.ValueString() == "" {
		diagnostics.Error(&diags, "Check the PIN", "`code_wo` turned out to have no value. Give it one. Without `code_wo` and `code_wo_version` a code that is new gets a PIN that is made for it, "+
			"and one that exists keeps its PIN; either gets into the state.")
	}
	return diags
}

// warnOfReading says of a code whose PIN was written only, and is no longer, that the state has it from then on.
func (m *accessCodeModel) warnOfReading(ctx context.Context, config tfsdk.Config, state *accessCodeModel, diags *diag.Diagnostics) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

// warnOfReading says of a set whose PIN was written only, and is no longer, that the state has it from then on.
func (m *accessCodeSetModel) warnOfReading(ctx context.Context, config tfsdk.Config, state *accessCodeSetModel, diags *diag.Diagnostics) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

func warnOfReading(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var pin types.String
	diags.Append(config.GetAttribute(ctx, path.Root("code"), &pin)...)
	if pin.IsNull() {
		diagnostics.WarningAt(diags, path.Root("code"), "The PIN gets into the state", "`code_wo` is taken out, and `code` is not given. The code keeps its PIN, and applying this plan reads it into the state.\n\n"+
			"To keep it out of there, leave `code_wo` and `code_wo_version` as they were. If the PIN was only to be another, give that one.")
	}
}
