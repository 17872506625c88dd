package provider

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// thermostatScheduleList lists the schedules of thermostats for terraform query.
type thermostatScheduleList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*thermostatScheduleList)(nil)

func newThermostatScheduleList() list.ListResource { return &thermostatScheduleList{} }

type thermostatScheduleListModel struct {
	DeviceID types.String `tfsdk:"device_id"`
}

func (l *thermostatScheduleList) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_thermostat_schedule"
}

func (l *thermostatScheduleList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the schedules of thermostats, to bring them under Terraform with `terraform query " +
			"-generate-config-out` (Terraform 1.14 and newer).",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Optional: true,
				Validators: []validator.String{
					validators.Identifier{Hint: "Name a thermostat, or leave it out for all."},
				},
				MarkdownDescription: "The thermostat whose schedules are listed. Without it, the schedules of all " +
					"thermostats are listed.",
			},
		},
	}
}

func (l *thermostatScheduleList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config thermostatScheduleListModel
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
		"list thermostat schedules",
		recordsOfDevices(devices, func(device api.Device) iter.Seq2[api.ThermostatSchedule, error] {
			return client.ThermostatSchedules(ctx, device.DeviceID)
		}),
		func(found deviceRecord[api.ThermostatSchedule], result *list.ListResult) {
			var model thermostatScheduleModel
			model.fill(&found.record, time.Now())
			name := cmp.Or(model.Name.ValueString(), model.ClimatePresetKey.ValueString())
			result.DisplayName = name + " from " + model.StartsAt.ValueString() + " on " + found.device.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}
