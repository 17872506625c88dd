package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

func (r *accessCodeResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "An access code: a PIN on a lock, which opens it always or for a time.\n\n" +
			"Creating, changing and deleting wait until the lock has done it. A code that is on the lock already, but is not managed by " +
			"the workspace, can be adopted by import: see the guide *Adopt existing codes*.",
		Attributes: map[string]schema.Attribute{
			"access_code_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier of the access code.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"device_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock that the code is on. Changing it makes a new code and deletes the old one, and so does a value that is not known yet when it is planned.",
				Validators:          []validator.String{validators.Identifier{Hint: "Name a lock; the data source deviceaccess_devices lists those there are."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The name of the code, as the app of the lock shows it. By default the server makes one.",
				Validators:          []validator.String{validators.NotEmpty{Hint: "Give it a name, or leave it out: then the server makes one."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"code": schema.StringAttribute{
				Optional: true, Computed: true, Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits, of which many locks take fewer lengths. By default the server makes one. It is kept in " +
					"the state, so use a backend that encrypts, or `code_wo`. Null with `code_wo`, and where the lock's vendor does not tell it.",
				Validators:    []validator.String{validators.PIN{}, validators.ConflictsWith{Attribute: "code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "The PIN, instead of `code`, where it must not get into the plan or the state. Needs Terraform 1.11 or newer, and " +
					"`code_wo_version`. What the PIN is on the server cannot be compared then, so one that was changed elsewhere is not noticed: raise the " +
					"version to write it again. An import knows no configuration and reads the PIN into the state; the apply after it takes it out. Taking `code_wo` out leaves the PIN " +
					"as it is and reads it into the state, of which the plan warns.",
				Validators: []validator.String{validators.PIN{}, validators.AlsoRequires{Attribute: "code_wo_version", Hint: "Set it to 1, and raise it to write the PIN again."}},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The version of `code_wo`, a number of your own. The PIN is written when it changes, and only then.",
				Validators:          []validator.Int64{validators.AlsoRequires{Attribute: "code_wo", Hint: "Set it to the PIN, or leave the version out."}},
			},
			"wait_for_set": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether creating and changing the code waits until the lock has it. By default what the provider's `wait_for_set` says, " +
					"else `true`. With `false`, apply ends when the server has taken it over, and the lock may still be without it.",
			},
			"keepers": keepersAttribute(),
			"starts_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "From when the code opens, in RFC 3339 with a time zone, such as `2026-11-21T15:00:00Z`. Goes together with `ends_at`; " +
					"without both the code opens always. A code of the future is not on the lock yet when apply ends, but scheduled.",
				Validators: []validator.String{validators.AlsoRequiresUnless{
					AlsoRequires: validators.AlsoRequires{Attribute: "ends_at", Hint: "Set both, or leave both out for a code that opens always."},
					Unless:       "is_one_time_use",
				}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"ends_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "Until when the code opens, in RFC 3339 with a time zone. Afterwards the server deletes the code, and Terraform plans to " +
					"create it again: take it out of the configuration, or move its time frame.",
				Validators:    []validator.String{validators.AlsoRequires{Attribute: "starts_at", Hint: "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"is_external_modification_allowed": schema.BoolAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Whether a change made at the lock stands, instead of being undone. A code that is created without it does not allow that. " +
					"Leaving it out later changes nothing: set it to `false` to have such changes undone again.",
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			},
			"type": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`ongoing`, or `time_bound` with a time frame.",
			},
			"status": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "How far the code is on its lock, such as `unset` (a code of the future, or one that was refused), `setting`, `set`, `removing` or `unknown` " +
					"(the lock was removed from its account at the vendor, or that account is disconnected). One that is `removing` and still configured is replaced by the next apply, which waits until it is gone.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"errors": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What keeps the code from working, in words, such as that its lock is offline or was removed; empty while nothing does. A refresh warns of " +
					"a code that is not on its lock because of that. Where one is about the code itself although that is `set`, its lock has refused a change and has it as before; the next apply sends the change again.",
				PlanModifiers: []planmodifier.List{listplanmodifier.UseStateForUnknown()},
			},
			"is_managed": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the workspace manages the code. `false` after an import as `<device_id>/<access_code_id>` or by identity, or when somebody gave " +
					"up its management; the next apply then converts it.",
				PlanModifiers: []planmodifier.Bool{planmodifiers.AlwaysTrue{}},
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the code was created, or first seen on the lock.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for the lock to take the code, such as `30s` or `10m`. By default `5m`.",
				UpdateDescription: "How long to wait for a change or a conversion, such as `30s` or `10m`. By default `5m`.",
				DeleteDescription: "How long to wait for the code to be off the lock, such as `30s` or `10m`. By default `5m`.",
			}),
		},
	}
	maps.Copy(resp.Schema.Attributes, creationAttributes())
}

// What servers take where nothing is configured.
var (
	schedulesNatively = planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(true)}
	roundsToTheHour   = planmodifiers.RequiresReplaceUnlessImported{Default: types.StringValue("1h")}
)

// replaces are the attributes that a code is replaced for by their own plan modifiers, but for common_code_key.
func (m *accessCodeModel) replaces(ctx context.Context, state *accessCodeModel, private privateState, diags *diag.Diagnostics) (changed path.Paths) {
	imported := planmodifiers.WasImported(ctx, private, diags)
	for _, part := range []struct {
		attribute   string
		setting     planmodifiers.RequiresReplaceUnlessImported
		plan, state attr.Value
	}{
		{"device_id", planmodifiers.RequiresReplaceUnlessImported{}, m.DeviceID, state.DeviceID},
		{"is_offline_access_code", planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}, m.IsOfflineAccessCode, state.IsOfflineAccessCode},
		{"is_one_time_use", planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}, m.IsOneTimeUse, state.IsOneTimeUse},
		{"max_time_rounding", roundsToTheHour, rounding(m.MaxTimeRounding), rounding(state.MaxTimeRounding)},
		{"prefer_native_scheduling", schedulesNatively, m.PreferNativeScheduling, state.PreferNativeScheduling},
		{"preferred_code_length", planmodifiers.RequiresReplaceUnlessImported{}, m.PreferredCodeLength, state.PreferredCodeLength},
		{"use_backup_access_code_pool", planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}, m.UseBackupAccessCodePool, state.UseBackupAccessCodePool},
	} {
		if part.setting.Differs(part.state, part.plan) && (!imported || !part.state.IsNull()) {
			changed = append(changed, path.Root(part.attribute))
		}
	}
	if planmodifiers.KeepersDiffer(state.Keepers, m.Keepers) {
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
			PlanModifiers:       []planmodifier.Int64{planmodifiers.RequiresReplaceUnlessImported{}},
		},
		"common_code_key": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "A name of your own for a PIN that several codes share: a code that is created with it gets the PIN of those that have it. Not " +
				"together with a PIN of your own. The resource `deviceaccess_access_code_set` does more: it puts one PIN on many locks, and changes it on all." + told +
				" A code that is adopted gets none, and one that was unmanaged in between has lost it: the state shows the one that is configured, with a warning when it is converted.",
			Validators:    []validator.String{validators.NotEmpty{Hint: "Give it a name, or leave it out."}},
			PlanModifiers: []planmodifier.String{planmodifiers.StateUnlessConfigured{}, sharesAtCreation{}},
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
			PlanModifiers: []planmodifier.Bool{planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}},
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
			PlanModifiers: []planmodifier.Bool{planmodifiers.DefaultOrState{Default: false}, planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}},
		},
		"is_one_time_use": schema.BoolAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Whether an offline code opens once, within 24 hours of `starts_at`. `ends_at` can be left out, and `starts_at`, too: then it begins now. By default `false`." + told,
			PlanModifiers:       []planmodifier.Bool{planmodifiers.DefaultOrState{Default: false}, planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(false)}},
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
