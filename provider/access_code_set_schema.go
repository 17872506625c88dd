package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func (r *accessCodeSetResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One person's access code on many locks: the same name, PIN and time frame on each.\n\n" +
			"Each lock is handled by itself. One that is added gets the code and the others are not touched; one that is taken out loses its " +
			"code; one whose code was changed or deleted is repaired. When a lock fails, the others keep what they got, the message names the " +
			"lock, and the next apply finishes; what waits for a lock that is offline the server finishes by itself. While the set is created, that message is a warning as long as some lock has taken the code: after an " +
			"error Terraform would replace the whole set. The example shows how to make the run fail.\n\n" +
			"Where the creation of a code was not answered, so that it may be on the lock all the same, the next apply looks there for one of that name and " +
			"PIN, and takes it over. Servers that do not tell PINs do not allow that: the message says where to look. Nor can it be told once `code_wo` is " +
			"another, or by a destroy with `code_wo`: a warning then names the codes of that name that are on the lock, and none of them is touched.",
		Attributes: map[string]schema.Attribute{
			"device_ids": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "The locks that the code is on.",
				Validators:          []validator.Set{isNotEmpty{"Name the locks; without any, leave the resource out."}, setvalidator.ValueStringsAre(isIdentifier{"Name a lock; the data source deviceaccess_devices lists those there are."})},
			},
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The name of the code on each lock, such as that of the person. Some locks take short names only.",
				Validators:          []validator.String{isNotEmpty{"Give it a name, such as that of the person."}},
			},
			"code": schema.StringAttribute{
				Optional: true, Computed: true, Sensitive: true,
				MarkdownDescription: "The PIN: 4 to 12 digits. By default one is chosen that fits all locks of `device_ids` and that none of them has " +
					"yet. It is kept in the state, so use a backend that encrypts, or `code_wo`. Null with `code_wo`.",
				Validators:    []validator.String{isPIN{}, goesWithout{"code_wo"}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseNonNullStateForUnknown()},
			},
			"code_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "The PIN, instead of `code`, where it must not get into the plan or the state. Needs Terraform 1.11 or newer, and " +
					"`code_wo_version`. Whether the locks still have it cannot be compared then: raise the version to write it again. A lock that is added " +
					"gets the PIN that is written here now. An import knows no configuration and reads the PIN into the state; the apply after it takes it out. Taking " +
					"`code_wo` out leaves the PIN as it is and reads it into the state, of which the plan warns.",
				Validators: []validator.String{isPIN{}, goesWith{"code_wo_version", "Set it to 1, and raise it to write the PIN again."}},
			},
			"code_wo_version": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The version of `code_wo`, a number of your own. When it changes, the PIN is written to all locks.",
				Validators:          []validator.Int64{goesWith{"code_wo", "Set it to the PIN, or leave the version out."}},
			},
			"starts_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "From when the code opens, in RFC 3339 with a time zone, such as `2026-11-21T15:00:00Z`. Goes together with `ends_at`; " +
					"without both the code opens always.",
				Validators:    []validator.String{goesWith{"ends_at", "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{keepsSpelling{}},
			},
			"ends_at": schema.StringAttribute{
				Optional: true, CustomType: instantType{},
				MarkdownDescription: "Until when the code opens, in RFC 3339 with a time zone. Afterwards the server deletes the codes, and Terraform " +
					"plans to create them again: take the set out of the configuration, or move its time frame.",
				Validators:    []validator.String{goesWith{"starts_at", "Set both, or leave both out for a code that opens always."}},
				PlanModifiers: []planmodifier.String{keepsSpelling{}},
			},
			"keepers": keepersAttribute(),
			"access_codes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The code on each lock, by `device_id`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"access_code_id": schema.StringAttribute{
						Computed: true, MarkdownDescription: "The identifier of the access code. Null where the lock has none, because it failed or was deleted.",
					},
					"status": schema.StringAttribute{
						Computed: true, MarkdownDescription: "How far the code is on the lock, such as `setting` or `set`; `missing` where there is none.",
					},
					"as_declared": schema.BoolAttribute{
						Computed: true, MarkdownDescription: "Whether the server has the code as it is declared, the lock has not refused that, and it is not being deleted. Where it is `false`, the next apply repairs it.",
					},
					"errors": schema.ListAttribute{
						Computed: true, ElementType: types.StringType, MarkdownDescription: "What keeps the code from working, in words.",
					},
				}},
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long to wait for the locks to take the code, such as `30s` or `10m`. By default `5m`.",
				UpdateDescription: "How long to wait for changes, such as `30s` or `10m`. By default `5m`.",
				DeleteDescription: "How long to wait for the code to be off the locks, such as `30s` or `10m`. By default `5m`.",
			}),
		},
	}
}
