package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type devicesModel struct {
	DeviceType         types.String  `tfsdk:"device_type"`
	ConnectedAccountID types.String  `tfsdk:"connected_account_id"`
	Search             types.String  `tfsdk:"search"`
	Devices            []deviceModel `tfsdk:"devices"`
}

type deviceModel struct {
	DeviceID                    types.String `tfsdk:"device_id"`
	DeviceType                  types.String `tfsdk:"device_type"`
	DisplayName                 types.String `tfsdk:"display_name"`
	ConnectedAccountID          types.String `tfsdk:"connected_account_id"`
	Manufacturer                types.String `tfsdk:"manufacturer"`
	Model                       types.String `tfsdk:"model"`
	LocationName                types.String `tfsdk:"location_name"`
	TimeZone                    types.String `tfsdk:"time_zone"`
	CreatedAt                   types.String `tfsdk:"created_at"`
	Online                      types.Bool   `tfsdk:"online"`
	CanProgramOnlineAccessCodes types.Bool   `tfsdk:"can_program_online_access_codes"`
	SupportedCodeLengths        []int64      `tfsdk:"supported_code_lengths"`
	MaxActiveCodesSupported     types.Int64  `tfsdk:"max_active_codes_supported"`
}

func (m *devicesModel) request() api.ListDevicesRequest {
	return api.ListDevicesRequest{
		DeviceType:         m.DeviceType.ValueString(),
		ConnectedAccountID: m.ConnectedAccountID.ValueString(),
		Search:             m.Search.ValueString(),
	}
}

// excludes says of a device that it was not asked for: some servers ignore conditions. Names are left to the server,
// which may search more than them.
func (m *devicesModel) excludes(device api.Device) bool {
	return !m.DeviceType.IsNull() && device.DeviceType != m.DeviceType.ValueString() ||
		!m.ConnectedAccountID.IsNull() && device.ConnectedAccountID != m.ConnectedAccountID.ValueString()
}

func (m *devicesModel) fill(devices []api.Device) {
	m.Devices = make([]deviceModel, len(devices))
	for i := range devices {
		m.Devices[i].fill(&devices[i])
	}
}

func (m *deviceModel) fill(device *api.Device) {
	*m = deviceModel{
		DeviceID:                    types.StringValue(device.DeviceID),
		DeviceType:                  types.StringValue(device.DeviceType),
		DisplayName:                 types.StringValue(device.DisplayName),
		ConnectedAccountID:          types.StringValue(device.ConnectedAccountID),
		Manufacturer:                textOrNull(device.Properties.Manufacturer),
		Model:                       textOrNull(device.Properties.Model.DisplayName),
		LocationName:                textOrNull(device.Location.LocationName),
		TimeZone:                    textOrNull(device.Location.TimeZone),
		CreatedAt:                   timestamp(device.CreatedAt),
		Online:                      types.BoolValue(device.Properties.Online),
		CanProgramOnlineAccessCodes: types.BoolPointerValue(device.CanProgramOnlineAccessCodes),
		SupportedCodeLengths:        make([]int64, len(device.Properties.SupportedCodeLengths)),
	}
	for i, length := range device.Properties.SupportedCodeLengths {
		m.SupportedCodeLengths[i] = int64(length)
	}
	if most := device.Properties.MaxActiveCodesSupported; most > 0 {
		m.MaxActiveCodesSupported = types.Int64Value(int64(most))
	}
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
