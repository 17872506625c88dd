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
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
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
		MarkdownDescription: "An access code: a PIN that opens a lock, always or for a limited time.\n\nCreate, " +
			"update, and delete wait until the lock has carried them out. A PIN leaves a door only if the lock has " +
			"refused it, or a plan with known values has shown it. To adopt a code that is already on the " +
			"lock, import it: see the guide *Adopt existing codes*.",
		Attributes: map[string]schema.Attribute{
			"access_code_id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier of the access code.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"device_id": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The lock that holds the code. A change replaces the code, but only after a plan that " +
					"knows the lock.",
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock; the data source " +
					"deviceaccess_devices lists them."}},
				PlanModifiers: []planmodifier.String{planmodifiers.RequiresReplaceIfKnown{}},
			},
			"name": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "The name of the code, up to 255 characters; a new name alone keeps the PIN " +
					"on the door. By default the server chooses one.",
				Validators: []validator.String{validators.NotEmpty{Hint: "Give it a name, or leave it " +
					"out: then the server chooses one."}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"code": schema.StringAttribute{
				Optional:  true,
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits, of a length that the lock accepts. By default the " +
					"server chooses one; the state contains it.",
				Validators:    []validator.String{validators.PIN{}, validators.ConflictsWith{Attribute: "code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				WriteOnly: true,
				MarkdownDescription: "The PIN, write-only: neither the plan nor the state contains it. Requires " +
					"Terraform 1.11 or newer, and `code_wo_version`.",
				Validators: []validator.String{
					validators.PIN{},
					validators.AlsoRequires{
						Attribute: "code_wo_version",
						Hint:      "Set it to 1, and raise it to write the PIN again.",
					},
				},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "The version of `code_wo`, a number that you choose. The provider writes the " +
					"PIN when this number changes, and only then.",
				Validators: []validator.Int64{
					validators.AlsoRequires{Attribute: "code_wo", Hint: "Set it to the PIN, or leave the version " +
						"out."},
				},
			},
			"wait_until_on_lock": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether create and update wait until the lock has the code. By default the " +
					"provider's `wait_until_on_lock`, else `true`.",
			},
			"keepers": keepersAttribute(),
			"starts_at": schema.StringAttribute{
				Optional:   true,
				CustomType: instantType{},
				MarkdownDescription: "From when the code opens the lock, in RFC 3339 with a time zone, such as " +
					"`2026-11-21T15:00:00Z`. Requires `ends_at`; without both, the code opens always.",
				Validators: []validator.String{validators.AlsoRequiresUnless{
					AlsoRequires: validators.AlsoRequires{Attribute: "ends_at", Hint: "Set both, or leave both out " +
						"for a code that opens always."},
					Unless: path.Root("offline").AtName("is_one_time_use"),
				}},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"ends_at": schema.StringAttribute{
				Optional:   true,
				CustomType: instantType{},
				MarkdownDescription: "Until when the code opens the lock, in RFC 3339 with a time zone. Then the " +
					"server deletes the code, and Terraform plans to create it again.",
				Validators: []validator.String{
					validators.AlsoRequires{
						Attribute: "starts_at",
						Hint:      "Set both, or leave both out for a code that opens always.",
					},
				},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
			},
			"is_external_modification_allowed": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Whether changes made at the lock stay; otherwise the server reverts them. " +
					"`false` for a new code by default.",
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			},
			"type": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`ongoing`, or `time_bound` with a time frame.",
			},
			"status": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "The state of the code on its lock: `unset`, `setting`, `set`, `removing`, or " +
					"`unknown`. See *Status and errors* below.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"errors": problemsAttribute("Why the code does not work, such as an offline or removed lock. Empty if it "+
				"works.", listplanmodifier.UseStateForUnknown()),
			"is_managed": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the workspace manages the code. If `false`, the next apply converts " +
					"the code.",
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
				Create: true,
				Update: true,
				Delete: true,
				CreateDescription: "How long to wait for the lock to take the code, such as `30s` or `10m`. By " +
					"default `5m`.",
				UpdateDescription: "How long to wait for a change or a conversion, such as `30s` or `10m`. By " +
					"default `5m`.",
				DeleteDescription: "How long to wait for the code to be off the lock, such as `30s` or `10m`. By " +
					"default `5m`.",
			}),
		},
	}
	maps.Copy(resp.Schema.Attributes, creationAttributes())
}

// These are the settings with a default on the server.
var (
	usesNoPool = planmodifiers.RequiresReplaceUnlessImported{
		Default:   types.BoolValue(false),
		Attribute: "use_pool",
	}
	schedulesNatively = planmodifiers.RequiresReplaceUnlessImported{Default: types.BoolValue(true)}
	roundsToTheHour   = planmodifiers.RequiresReplaceUnlessImported{Default: types.StringValue("1h")}
)

// replacingAttributes returns the attributes whose plan modifiers replace the code, except common_code_key.
func (m *accessCodeModel) replacingAttributes(
	ctx context.Context,
	state *accessCodeModel,
	private privateState,
	diags *diag.Diagnostics,
) (changed path.Paths) {
	imported := planmodifiers.WasImported(ctx, private, diags)
	for _, part := range []struct {
		attribute   path.Path
		setting     planmodifiers.RequiresReplaceUnlessImported
		plan, state attr.Value
	}{
		{path.Root("device_id"), planmodifiers.RequiresReplaceUnlessImported{}, m.DeviceID, state.DeviceID},
		{
			path.Root("prefer_native_scheduling"), schedulesNatively,
			m.PreferNativeScheduling, state.PreferNativeScheduling,
		},
		{
			path.Root("preferred_code_length"),
			planmodifiers.RequiresReplaceUnlessImported{},
			m.PreferredCodeLength, state.PreferredCodeLength,
		},
		{path.Root("backup").AtName("use_pool"), usesNoPool, m.backup().UsePool, state.backup().UsePool},
	} {
		if part.setting.Differs(part.state, part.plan) && (!imported || !part.state.IsNull()) {
			changed = append(changed, part.attribute)
		}
	}
	changed = append(changed, m.changedOffline(state, imported)...)
	if planmodifiers.KeepersDiffer(state.Keepers, m.Keepers) {
		changed = append(changed, path.Root("keepers"))
	}
	return changed
}

// creationAttributes returns the settings that count at creation only, and the attributes that follow from them.
func creationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"preferred_code_length": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "The number of digits of a PIN that the server chooses. Conflicts with `code` and " +
				"`code_wo`.",
			Validators:    []validator.Int64{int64validator.Between(4, 12)},
			PlanModifiers: []planmodifier.Int64{planmodifiers.RequiresReplaceUnlessImported{}},
		},
		"common_code_key": schema.StringAttribute{
			Optional: true,
			Computed: true,
			MarkdownDescription: "A name that you choose for a PIN that several codes share: a new code gets the " +
				"PIN of the codes with the same key. Conflicts with `code` and `code_wo`.",
			Validators:    []validator.String{validators.NotEmpty{Hint: "Give it a name, or leave it out."}},
			PlanModifiers: []planmodifier.String{planmodifiers.StateUnlessConfigured{}, sharesAtCreation{}},
		},
		"prefer_native_scheduling": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether the lock itself enforces the time frame, if it can; otherwise the server " +
				"sets and deletes the code in time. By default `true`.",
			PlanModifiers: []planmodifier.Bool{schedulesNatively},
		},
		"attempt_for_offline_device": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether create and update wait for a lock that is offline, instead of failing. By " +
				"default `true`.",
		},
		"backup": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Spare codes on the lock, one of which can replace this code. Without it, the code " +
				"has none.",
			PlanModifiers: []planmodifier.Object{usesNoPool},
			Attributes: map[string]schema.Attribute{
				"use_pool": schema.BoolAttribute{
					Required:            true,
					MarkdownDescription: "Whether the server keeps spare codes on the lock. Requires a time frame.",
				},
				"is_available": schema.BoolAttribute{
					Computed: true,
					MarkdownDescription: "Whether a backup code can be pulled to replace this code, as of the last " +
						"refresh.",
				},
				"pulled_access_code_id": schema.StringAttribute{
					Computed: true,
					MarkdownDescription: "The backup code that was pulled to replace this code. It is deleted " +
						"together with this code.",
				},
			},
		},
		"offline": schema.SingleNestedAttribute{
			Optional: true,
			MarkdownDescription: "Makes this an offline code: the vendor computes it, and the lock accepts it " +
				"without a connection. Write `offline = {}` for the defaults.",
			PlanModifiers: []planmodifier.Object{planmodifiers.PresenceRequiresReplace()},
			Attributes: map[string]schema.Attribute{
				"is_one_time_use": schema.BoolAttribute{
					Optional: true,
					Computed: true,
					Default:  booldefault.StaticBool(false),
					MarkdownDescription: "Whether the code opens once, within 24 hours of `starts_at`; the time " +
						"frame is then optional. By default `false`.",
					PlanModifiers: []planmodifier.Bool{planmodifiers.RequiresReplaceIfKnown{}},
				},
				"max_time_rounding": schema.StringAttribute{
					Optional: true,
					MarkdownDescription: "How far the vendor may widen the time frame: `1h` (or `1hour`), or `1d` " +
						"(or `1day`) for whole days. By default `1h`.",
					Validators:    []validator.String{stringvalidator.OneOf("1h", "1hour", "1d", "1day")},
					PlanModifiers: []planmodifier.String{roundsAtCreation{}},
				},
			},
		},
	}
}
