package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What servers take where nothing is configured.
var (
	schedulesNatively = countsAtCreation{types.BoolValue(true)}
	roundsToTheHour   = countsAtCreation{types.StringValue("1h")}
)

// replaces are the attributes that a code is replaced for by their own plan modifiers, but for common_code_key.
func (m *accessCodeModel) replaces(ctx context.Context, state *accessCodeModel, private privateState, diags *diag.Diagnostics) (changed path.Paths) {
	imported := wasImported(ctx, private, diags)
	for _, part := range []struct {
		attribute   string
		setting     countsAtCreation
		plan, state attr.Value
	}{
		{"device_id", countsAtCreation{}, m.DeviceID, state.DeviceID},
		{"is_offline_access_code", countsAtCreation{types.BoolValue(false)}, m.IsOfflineAccessCode, state.IsOfflineAccessCode},
		{"is_one_time_use", countsAtCreation{types.BoolValue(false)}, m.IsOneTimeUse, state.IsOneTimeUse},
		{"max_time_rounding", roundsToTheHour, rounding(m.MaxTimeRounding), rounding(state.MaxTimeRounding)},
		{"prefer_native_scheduling", schedulesNatively, m.PreferNativeScheduling, state.PreferNativeScheduling},
		{"preferred_code_length", countsAtCreation{}, m.PreferredCodeLength, state.PreferredCodeLength},
		{"use_backup_access_code_pool", countsAtCreation{types.BoolValue(false)}, m.UseBackupAccessCodePool, state.UseBackupAccessCodePool},
	} {
		if part.setting.differs(part.state, part.plan) && (!imported || !part.state.IsNull()) {
			changed = append(changed, path.Root(part.attribute))
		}
	}
	if isKeptNoLonger(state.Keepers, m.Keepers) {
		changed = append(changed, path.Root("keepers"))
	}
	return changed
}

// creationAttributes are what an access code is created with and cannot be given later on, and what follows from it.
func creationAttributes() map[string]schema.Attribute {
	const untold = " Another value makes a new code and deletes the old one. Servers do not tell it afterwards: after an import it is null, and setting it replaces nothing."
	const told = " Another value makes a new code and deletes the old one."
	return map[string]schema.Attribute{
		"preferred_code_length": schema.Int64Attribute{
			Optional:            true,
			MarkdownDescription: "How many digits a PIN has that the server makes, where the lock allows it. Not together with a PIN of your own." + untold,
			Validators:          []validator.Int64{int64validator.Between(4, 12)},
			PlanModifiers:       []planmodifier.Int64{countsAtCreation{}},
		},
		"common_code_key": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "A name of your own for a PIN that several codes share: a code that is created with it gets the PIN of those that have it. Not " +
				"together with a PIN of your own. The resource `deviceaccess_access_code_set` does more: it puts one PIN on many locks, and changes it on all." + told +
				" A code that is adopted gets none, and one that was unmanaged in between has lost it: the state shows the one that is configured, with a warning when it is converted.",
			Validators:    []validator.String{isNotEmpty{"Give it a name, or leave it out."}},
			PlanModifiers: []planmodifier.String{kept{}, sharesAtCreation{}},
		},
		"prefer_native_scheduling": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether the lock itself may keep the time frame, where it can. With `false` the server sets and deletes the code in time. " +
				"By default `true`." + untold,
			PlanModifiers: []planmodifier.Bool{schedulesNatively},
		},
		"attempt_for_offline_device": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether creating and changing the code waits for a lock that is offline. With `false` the server refuses it. By default `true`. " +
				"It is no property of the code, so that changing it changes nothing.",
		},
		"use_backup_access_code_pool": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether other codes are kept on the lock ahead of time, one of which can be pulled in place of this one when it does not work: see the " +
				"guide *Backup codes and offline codes*. Needs a time frame. By default `false`." + untold,
			PlanModifiers: []planmodifier.Bool{countsAtCreation{types.BoolValue(false)}},
		},
		"is_backup_access_code_available": schema.BoolAttribute{
			Computed:            true,
			MarkdownDescription: "Whether a backup code can be pulled in its place now, as of the last refresh.",
			PlanModifiers:       []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
		},
		"pulled_backup_access_code_id": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The backup code that was pulled in its place. It is deleted with this one.",
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"is_offline_access_code": schema.BoolAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Whether the vendor makes the code, and the lock accepts it without being told of it: for locks whose `can_program_offline_access_codes` (see the data source `deviceaccess_device`) " +
				"is true. Needs a time frame. Nobody can choose its PIN, and until it has ended it can be neither changed nor deleted. By default `false`." + told,
			PlanModifiers: []planmodifier.Bool{keptOr{false}, countsAtCreation{types.BoolValue(false)}},
		},
		"is_one_time_use": schema.BoolAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Whether an offline code opens once, within 24 hours of `starts_at`. `ends_at` can be left out, and `starts_at`, too: then it begins now. By default `false`." + told,
			PlanModifiers:       []planmodifier.Bool{keptOr{false}, countsAtCreation{types.BoolValue(false)}},
		},
		"max_time_rounding": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "How much the time frame of an offline code may be widened: `1h` (or `1hour`), or `1d` (or `1day`) for a code that lasts whole days. " +
				"By default `1h`. The state keeps the time frame that is configured." + untold,
			Validators:    []validator.String{stringvalidator.OneOf("1h", "1hour", "1d", "1day")},
			PlanModifiers: []planmodifier.String{roundsAtCreation{}},
		},
	}
}
