package provider

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// defaultTimeout is how long the lock may take. Locks on batteries wake up every few minutes.
const defaultTimeout = 5 * time.Minute

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
				Validators:          []validator.String{isIdentifier{"Name a lock; the data source deviceaccess_devices lists those there are."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The name of the code, as the app of the lock shows it. By default the server makes one.",
				Validators:          []validator.String{isNotEmpty{"Give it a name, or leave it out: then the server makes one."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"code": schema.StringAttribute{
				Optional: true, Computed: true, Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits, of which many locks take fewer lengths. By default the server makes one. It is kept in " +
					"the state, so use a backend that encrypts, or `code_wo`. Null with `code_wo`, and where the lock's vendor does not tell it.",
				Validators:    []validator.String{isPIN{}, goesWithout{"code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "The PIN, instead of `code`, where it must not get into the plan or the state. Needs Terraform 1.11 or newer, and " +
					"`code_wo_version`. What the PIN is on the server cannot be compared then, so one that was changed elsewhere is not noticed: raise the " +
					"version to write it again. An import knows no configuration and reads the PIN into the state; the apply after it takes it out. Taking `code_wo` out leaves the PIN " +
					"as it is and reads it into the state, of which the plan warns.",
				Validators: []validator.String{isPIN{}, goesWith{"code_wo_version", "Set it to 1, and raise it to write the PIN again."}},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The version of `code_wo`, a number of your own. The PIN is written when it changes, and only then.",
				Validators:          []validator.Int64{goesWith{"code_wo", "Set it to the PIN, or leave the version out."}},
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
				Validators:    []validator.String{goesWithUnless{goesWith{"ends_at", "Set both, or leave both out for a code that opens always."}, "is_one_time_use"}},
				PlanModifiers: []planmodifier.String{keepsSpelling{}},
			},
			"ends_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "Until when the code opens, in RFC 3339 with a time zone. Afterwards the server deletes the code, and Terraform plans to " +
					"create it again: take it out of the configuration, or move its time frame.",
				Validators:    []validator.String{goesWith{"starts_at", "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{keepsSpelling{}},
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
				PlanModifiers: []planmodifier.Bool{alwaysManaged{}},
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
