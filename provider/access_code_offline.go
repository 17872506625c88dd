package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

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
			refuseAt(diags, path.Root(rule.at), action, rule.detail)
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

// roundsAtCreation is countsAtCreation for max_time_rounding: another spelling is no change.
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
		refuseAt(&resp.Diagnostics, changed[0], "Update access code", state.accepted()+" It can be neither changed nor deleted before that.\n\n"+
			"Put its configuration back as it was, and add another resource for the code that you want. "+letGo)
	}
}

// warnOfDestroy says that an offline code that was issued cannot be destroyed.
func (m *accessCodeModel) warnOfDestroy(diags *diag.Diagnostics) {
	if m.issued() {
		warn(diags, "Offline access code cannot be deleted", m.accepted()+" Applying this plan will fail before that.\n\n"+letGo)
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
