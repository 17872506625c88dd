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

func (r *exclusiveAccessCodesResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The only access codes that may be on a lock: apply deletes all others, managed or not, that the plan has shown.\n\n" +
			"**This takes PINs off a door.** It acts on the lock of `device_id` only, and deletes only what a plan has shown in " +
			"`deleted_access_codes`. Creating the resource deletes nothing: it takes stock, and the next plan shows what is to go. After an import " +
			"the first plan shows it. A code that appears between plan and apply is left on the lock, with a warning; so is one that is taken " +
			"out of `access_code_ids`, which the plan after that shows; and so are codes that their vendor does not let be deleted, such as offline codes that were issued. Destroying the resource deletes nothing.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock. Changing it ends the watch over one lock and begins it over another, and deletes nothing.",
				Validators:          []validator.String{isIdentifier{"Name a lock; the data source deviceaccess_devices lists those there are."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"access_code_ids": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "The codes that may be on the lock, and with them the backup codes that were pulled in their place. With none, all codes are to go.",
				Validators:          []validator.Set{setvalidator.ValueStringsAre(isIdentifier{"Name an access code."})},
			},
			"foreign_access_codes": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The codes on the lock that are not in `access_code_ids`, by `access_code_id`, as of the last refresh.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":           schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the code. Null where the lock keeps none."},
					"is_managed":     schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the workspace manages it."},
					"can_be_deleted": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether its vendor lets it be deleted. Where not, it stays; so does an offline code that was issued, until it ends."},
					"backup_of":      schema.StringAttribute{Computed: true, MarkdownDescription: "The code in whose place it was pulled, if it is a backup code. It may be on the lock while that one may."},
				}},
			},
			"deleted_access_codes": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "In a plan, the codes that apply will delete: the name by `access_code_id`. In the state, those that the last apply has deleted.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Update:            true,
				UpdateDescription: "How long to wait for the codes to be off the lock, such as `30s` or `10m`. By default `5m`.",
			}),
		},
	}
}
