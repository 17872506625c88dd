package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
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
	DeviceID                     types.String          `tfsdk:"device_id"`
	DeviceType                   types.String          `tfsdk:"device_type"`
	DisplayName                  types.String          `tfsdk:"display_name"`
	ConnectedAccountID           types.String          `tfsdk:"connected_account_id"`
	Manufacturer                 types.String          `tfsdk:"manufacturer"`
	Model                        types.String          `tfsdk:"model"`
	LocationName                 types.String          `tfsdk:"location_name"`
	TimeZone                     types.String          `tfsdk:"time_zone"`
	CreatedAt                    types.String          `tfsdk:"created_at"`
	Online                       types.Bool            `tfsdk:"online"`
	CanProgramOnlineAccessCodes  types.Bool            `tfsdk:"can_program_online_access_codes"`
	CanProgramOfflineAccessCodes types.Bool            `tfsdk:"can_program_offline_access_codes"`
	SupportedCodeLengths         []int64               `tfsdk:"supported_code_lengths"`
	CodeConstraints              []codeConstraintModel `tfsdk:"code_constraints"`
	MaxActiveCodesSupported      types.Int64           `tfsdk:"max_active_codes_supported"`
}

// codeConstraintModel is what a PIN or a name must obey.
type codeConstraintModel struct {
	ConstraintType types.String `tfsdk:"constraint_type"`
	MinLength      types.Int64  `tfsdk:"min_length"`
	MaxLength      types.Int64  `tfsdk:"max_length"`
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
	differs := func(wanted types.String, is string) bool {
		return wanted.ValueString() != "" && wanted.ValueString() != is
	}
	return differs(m.DeviceType, device.DeviceType) || differs(m.ConnectedAccountID, device.ConnectedAccountID)
}

// warnOfType says where a device type is none that there is, as one that is mistyped: what has a for_each over the devices
// would plan to delete all that it has made.
func (m *devicesModel) warnOfType(ctx context.Context, client *api.Client, diags *diag.Diagnostics) {
	const enough = 500 // devices that are looked through for the types that there are
	seen, kinds := 0, map[string]bool{}
	for device, err := range client.Devices(ctx, api.ListDevicesRequest{}) {
		if err != nil || device.DeviceType == m.DeviceType.ValueString() {
			return
		}
		kinds[device.DeviceType] = true
		if seen++; seen == enough {
			break
		}
	}
	if seen == enough { // there may be one behind them
		for device, err := range client.Devices(ctx, api.ListDevicesRequest{DeviceType: m.DeviceType.ValueString()}) {
			if err != nil || device.DeviceType == m.DeviceType.ValueString() {
				return
			}
		}
	}
	next := "Check that the API key belongs to the workspace that you mean: it has no devices."
	if len(kinds) > 0 {
		next = "Check its spelling. There are devices of the types " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") + "."
	}
	warnAt(diags, path.Root("device_type"), "No device of this type", fmt.Sprintf("The workspace of the API key has no device of the type %q, so `devices` is empty. "+
		"What has a `for_each` over it is planned to be deleted.\n\n%s", m.DeviceType.ValueString(), next))
}

func (m *devicesModel) fill(devices []api.Device) {
	m.Devices = make([]deviceModel, len(devices))
	for i := range devices {
		m.Devices[i].fill(&devices[i])
	}
}

func (m *deviceModel) fill(device *api.Device) {
	*m = deviceModel{
		DeviceID:                     types.StringValue(device.DeviceID),
		DeviceType:                   types.StringValue(device.DeviceType),
		DisplayName:                  types.StringValue(device.DisplayName),
		ConnectedAccountID:           types.StringValue(device.ConnectedAccountID),
		Manufacturer:                 textOrNull(device.Properties.Manufacturer),
		Model:                        textOrNull(device.Properties.Model.DisplayName),
		LocationName:                 textOrNull(device.Location.LocationName),
		TimeZone:                     textOrNull(device.Location.TimeZone),
		CreatedAt:                    timestamp(device.CreatedAt),
		Online:                       types.BoolValue(device.Properties.Online),
		CanProgramOnlineAccessCodes:  types.BoolPointerValue(device.CanProgramOnlineAccessCodes),
		CanProgramOfflineAccessCodes: types.BoolPointerValue(device.CanProgramOfflineAccessCodes),
		SupportedCodeLengths:         make([]int64, len(device.Properties.SupportedCodeLengths)),
		CodeConstraints:              make([]codeConstraintModel, len(device.Properties.CodeConstraints)),
	}
	for i, length := range device.Properties.SupportedCodeLengths {
		m.SupportedCodeLengths[i] = int64(length)
	}
	for i, constraint := range device.Properties.CodeConstraints {
		m.CodeConstraints[i] = codeConstraintModel{types.StringValue(constraint.ConstraintType), numberOrNull(constraint.MinLength), numberOrNull(constraint.MaxLength)}
	}
	m.MaxActiveCodesSupported = numberOrNull(device.Properties.MaxActiveCodesSupported)
}

func numberOrNull(number int) types.Int64 {
	if number <= 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(number))
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
