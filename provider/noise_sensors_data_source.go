package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type noiseSensorsDataSource struct{ connectedDataSource }

func newNoiseSensorsDataSource() datasource.DataSource { return &noiseSensorsDataSource{} }

type noiseSensorsModel struct {
	deviceConditions

	NoiseSensors []noiseSensorModel `tfsdk:"noise_sensors"`
}

type noiseSensorModel struct {
	DeviceID           types.String `tfsdk:"device_id"`
	DeviceType         types.String `tfsdk:"device_type"`
	DisplayName        types.String `tfsdk:"display_name"`
	ConnectedAccountID types.String `tfsdk:"connected_account_id"`
	Manufacturer       types.String `tfsdk:"manufacturer"`
	LocationName       types.String `tfsdk:"location_name"`
	TimeZone           types.String `tfsdk:"time_zone"`
	Online             types.Bool   `tfsdk:"online"`
	Capabilities       []string     `tfsdk:"capabilities_supported"`
}

func (d *noiseSensorsDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_noise_sensors"
}

func (d *noiseSensorsDataSource) Schema(
	_ context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	attributes := deviceConditionAttributes("noise sensors", "minut_sensor", "minut")
	attributes["noise_sensors"] = schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The noise sensors, in the order in which the server first saw them.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"device_id":            computedText("The identifier of the noise sensor."),
			"device_type":          computedText("The type of the noise sensor, such as `minut_sensor`."),
			"display_name":         computedText("The name of the noise sensor."),
			"connected_account_id": computedText("The connected account that the noise sensor belongs to."),
			"manufacturer":         computedText("The manufacturer. Null if that is not known."),
			"location_name":        computedText("The place of the noise sensor. Null if that is not known."),
			"time_zone": computedText("The time zone of the noise sensor, such as `Europe/Paris`. Null if that is " +
				"not known."),
			"online": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether the server could reach the noise sensor when it last heard from the " +
					"noise sensor.",
			},
			"capabilities_supported": schema.ListAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "What the device can do, such as `noise_detection`.",
			},
		}},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The noise sensors of the workspace: all of them, or those that match every condition.",
		Attributes:          attributes,
	}
}

func (d *noiseSensorsDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	var model noiseSensorsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	devices, err := api.Collect(client.NoiseSensors(ctx, model.request()))
	if err != nil {
		report(&resp.Diagnostics, "list noise sensors", err)
		return
	}
	model.NoiseSensors = []noiseSensorModel{}
	for _, device := range slices.DeleteFunc(devices, model.excludes) {
		var sensor noiseSensorModel
		sensor.fill(&device)
		model.NoiseSensors = append(model.NoiseSensors, sensor)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (m *noiseSensorsModel) request() api.ListNoiseSensorsRequest {
	return api.ListNoiseSensorsRequest{
		DeviceType:         m.DeviceType.ValueString(),
		Manufacturer:       m.Manufacturer.ValueString(),
		ConnectedAccountID: m.ConnectedAccountID.ValueString(),
		ConnectWebviewID:   m.ConnectWebviewID.ValueString(),
		CustomerKey:        m.CustomerKey.ValueString(),
	}
}

func (m *noiseSensorModel) fill(device *api.Device) {
	*m = noiseSensorModel{
		DeviceID:           types.StringValue(device.DeviceID),
		DeviceType:         types.StringValue(device.DeviceType),
		DisplayName:        types.StringValue(device.DisplayName),
		ConnectedAccountID: types.StringValue(device.ConnectedAccountID),
		Manufacturer:       textOrNull(device.Properties.Manufacturer),
		LocationName:       textOrNull(device.Location.LocationName),
		TimeZone:           textOrNull(device.Location.TimeZone),
		Online:             types.BoolValue(device.Properties.Online),
		Capabilities:       append([]string{}, device.CapabilitiesSupported...),
	}
}
