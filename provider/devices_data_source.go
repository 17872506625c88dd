package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type devicesDataSource struct{ connectedDataSource }

func newDevicesDataSource() datasource.DataSource { return &devicesDataSource{} }

func (d *devicesDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_devices"
}

func (d *devicesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The devices of the workspace: all of them, or those that match every condition given.",
		Attributes: map[string]schema.Attribute{
			"device_type": schema.StringAttribute{Optional: true, MarkdownDescription: "Only devices of this type, such as `august_lock`."},
			"connected_account_id": schema.StringAttribute{
				Optional: true, Validators: []validator.String{isFilter{}},
				MarkdownDescription: "Only devices of this account at a vendor.",
			},
			"search": schema.StringAttribute{Optional: true, MarkdownDescription: "Only devices whose name contains this text. Case does not matter."},
			"devices": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The devices, first seen first.",
				NestedObject:        schema.NestedAttributeObject{Attributes: deviceAttributes()},
			},
		},
	}
}

// deviceAttributes are what deviceModel holds.
func deviceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"device_id":            computedText("The identifier of the device."),
		"device_type":          computedText("Its type, such as `august_lock`."),
		"display_name":         computedText("The name of the device."),
		"connected_account_id": computedText("The account at a vendor through which it is reached."),
		"manufacturer":         computedText("Who makes it. Null if that is not known."),
		"model":                computedText("Its model. Null if that is not known."),
		"location_name":        computedText("The place it is in. Null if that is not known."),
		"time_zone":            computedText("The time zone it is in, such as `Europe/Paris`. Null if that is not known."),
		"created_at":           computedText("When it was first seen."),
		"online":               schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it could be reached when it was last heard of."},
		"can_program_online_access_codes": schema.BoolAttribute{
			Computed: true, MarkdownDescription: "Whether access codes can be set on it. Null where the server does not say.",
		},
		"can_program_offline_access_codes": schema.BoolAttribute{
			Computed: true, MarkdownDescription: "Whether its vendor makes codes that it accepts without being told of them (`is_offline_access_code`). Null where the server does not say.",
		},
		"supported_code_lengths": schema.ListAttribute{
			Computed: true, ElementType: types.Int64Type,
			MarkdownDescription: "How many digits a PIN may have, ascending. Empty where the server does not say.",
		},
		"code_constraints": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "What else a PIN or a name must obey. Empty where the server does not say.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"constraint_type": computedText("What must be obeyed, such as `no_zeros` or `name_length`."),
				"min_length":      schema.Int64Attribute{Computed: true, MarkdownDescription: "The least number of characters. Null where it is about no length."},
				"max_length":      schema.Int64Attribute{Computed: true, MarkdownDescription: "The greatest number of characters. Null where it is about no length."},
			}},
		},
		"max_active_codes_supported": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "How many access codes it holds at once. One that is to open later takes its place when it is put there, an hour before it opens, or three days where the lock keeps its time frame. Null where the server does not say.",
		},
	}
}

func computedText(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func (d *devicesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model devicesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	devices, err := api.Collect(client.Devices(ctx, model.request()))
	if err != nil {
		report(&resp.Diagnostics, "List devices", err)
		return
	}
	model.fill(slices.DeleteFunc(devices, model.excludes))
	if len(model.Devices) == 0 && model.DeviceType.ValueString() != "" {
		model.warnOfType(ctx, client, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
