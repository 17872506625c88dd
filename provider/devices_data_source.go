package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
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
				Optional: true, Validators: []validator.String{validators.OptionalIdentifier{}},
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
	diagnostics.WarningAt(diags, path.Root("device_type"), "No device of this type", fmt.Sprintf("The workspace of the API key has no device of the type %q, so `devices` is empty. "+
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
