package provider

import (
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

// noiseThresholdList lists the thresholds of noise sensors for terraform query.
type noiseThresholdList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*noiseThresholdList)(nil)

func newNoiseThresholdList() list.ListResource { return &noiseThresholdList{} }

type noiseThresholdListModel struct {
	DeviceID types.String `tfsdk:"device_id"`
}

func (l *noiseThresholdList) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_noise_threshold"
}

func (l *noiseThresholdList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the thresholds of noise sensors, to bring them under Terraform with `terraform query " +
			"-generate-config-out` (Terraform 1.14 and newer).",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Optional: true,
				Validators: []validator.String{
					validators.Identifier{Hint: "Name a noise sensor, or leave it out for all."},
				},
				MarkdownDescription: "The noise sensor whose thresholds are listed. Without it, the thresholds of all " +
					"noise sensors are listed.",
			},
		},
	}
}

func (l *noiseThresholdList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config noiseThresholdListModel
	diags := req.Config.Get(ctx, &config)
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	devices := devicesWith(client.NoiseSensors(ctx, api.ListNoiseSensorsRequest{}), config.DeviceID.ValueString())
	stream.Results = listResults(
		ctx,
		req,
		"list noise thresholds",
		recordsOfDevices(devices, func(device api.Device) iter.Seq2[api.NoiseThreshold, error] {
			return client.NoiseThresholds(ctx, device.DeviceID)
		}),
		func(found deviceRecord[api.NoiseThreshold], result *list.ListResult) {
			model := noiseThresholdModel{Timeouts: noTimeouts("create", "update", "delete")}
			model.fill(&found.record)
			result.DisplayName = found.record.Name + " on " + found.device.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}
