package provider

import (
	"cmp"
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// climatePresetList lists the climate presets that can be changed for terraform query.
type climatePresetList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*climatePresetList)(nil)

func newClimatePresetList() list.ListResource { return &climatePresetList{} }

type climatePresetListModel struct {
	DeviceID types.String `tfsdk:"device_id"`
}

func (l *climatePresetList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_climate_preset"
}

func (l *climatePresetList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the climate presets of thermostats, to bring them under Terraform with `terraform query " +
			"-generate-config-out` (Terraform 1.14 and newer). It leaves out the presets of the devices themselves that " +
			"cannot be changed.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Optional: true,
				Validators: []validator.String{
					validators.Identifier{Hint: "Name a thermostat, or leave it out for all."},
				},
				MarkdownDescription: "The thermostat whose presets are listed. Without it, the presets of all thermostats " +
					"are listed.",
			},
		},
	}
}

func (l *climatePresetList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config climatePresetListModel
	diags := req.Config.Get(ctx, &config)
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	devices := devicesWith(client.Thermostats(ctx, api.ListThermostatsRequest{}), config.DeviceID.ValueString())
	stream.Results = listResults(
		ctx,
		req,
		"list climate presets",
		recordsOfDevices(devices, ownPresets),
		func(found deviceRecord[api.ClimatePreset], result *list.ListResult) {
			model := climatePresetModel{DeviceID: types.StringValue(found.device.DeviceID)}
			model.fill(&found.record)
			name := cmp.Or(found.record.DisplayName, found.record.ClimatePresetKey)
			result.DisplayName = name + " on " + found.device.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}

// ownPresets yields the presets of a thermostat that can be changed.
func ownPresets(device api.Device) iter.Seq2[api.ClimatePreset, error] {
	return func(yield func(api.ClimatePreset, error) bool) {
		if device.Properties.AvailableClimatePresets == nil {
			return
		}
		for _, preset := range *device.Properties.AvailableClimatePresets {
			if preset.CanEdit && !yield(preset, nil) {
				return
			}
		}
	}
}
