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

func (d *devicesDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_devices"
}

func (d *devicesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The devices of the workspace: all of them, or those that match every condition.",
		Attributes: map[string]schema.Attribute{
			"device_type": schema.StringAttribute{Optional: true, MarkdownDescription: "Only devices of this type, " +
				"such as `august_lock`."},
			"connected_account_id": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{validators.OptionalIdentifier{}},
				MarkdownDescription: "Only devices of this connected account.",
			},
			"search": schema.StringAttribute{Optional: true, MarkdownDescription: "Only devices whose name " +
				"contains this text. Case does not matter."},
			"devices": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The devices, in the order in which the server first saw them.",
				NestedObject:        schema.NestedAttributeObject{Attributes: deviceAttributes()},
			},
		},
	}
}

// deviceAttributes returns the attributes of deviceModel.
func deviceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"device_id":            computedText("The identifier of the device."),
		"device_type":          computedText("The type of the device, such as `august_lock`."),
		"display_name":         computedText("The name of the device."),
		"connected_account_id": computedText("The connected account that the device belongs to."),
		"manufacturer":         computedText("The manufacturer. Null if that is not known."),
		"model":                computedText("The model. Null if that is not known."),
		"location_name":        computedText("The place of the device. Null if that is not known."),
		"time_zone": computedText("The time zone of the device, such as `Europe/Paris`. Null if that is " +
			"not known."),
		"created_at": computedText("When the server first saw the device."),
		"online": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the server " +
			"could reach the device when it last heard from it."},
		"can_program_online_access_codes": schema.BoolAttribute{
			Computed: true,
			MarkdownDescription: "Whether the server can set access codes on the device. Null if the server does " +
				"not report it.",
		},
		"can_program_offline_access_codes": schema.BoolAttribute{
			Computed: true,
			MarkdownDescription: "Whether the device accepts codes that its vendor computes, without a connection " +
				"(`offline` of an access code). Null if the server does not report it.",
		},
		"supported_code_lengths": schema.ListAttribute{
			Computed:    true,
			ElementType: types.Int64Type,
			MarkdownDescription: "The allowed numbers of digits in a PIN, ascending. Empty if the server does not " +
				"report them.",
		},
		"code_constraints": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "Further rules for PINs and names. Empty if the server does not report them.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"constraint_type": computedText("The kind of rule, such as `no_zeros` or `name_length`."),
				"min_length": schema.Int64Attribute{Computed: true, MarkdownDescription: "The minimum number " +
					"of characters. Null if the rule is not about length."},
				"max_length": schema.Int64Attribute{Computed: true, MarkdownDescription: "The maximum number " +
					"of characters. Null if the rule is not about length."},
			}},
		},
		"max_active_codes_supported": schema.Int64Attribute{
			Computed: true,
			MarkdownDescription: "How many access codes the device holds at the same time. A future code takes its " +
				"place when the server sets it: an hour before it starts, or three days if the lock enforces the " +
				"time frame. Null if the server does not report it.",
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
		report(&resp.Diagnostics, "list devices", err)
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

// codeConstraintModel is a rule for PINs or names.
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

// excludes reports whether a device does not match the conditions: some servers ignore them. It does not check search,
// because servers may search more than names.
func (m *devicesModel) excludes(device api.Device) bool {
	differs := func(wanted types.String, is string) bool {
		return wanted.ValueString() != "" && wanted.ValueString() != is
	}
	return differs(m.DeviceType, device.DeviceType) || differs(m.ConnectedAccountID, device.ConnectedAccountID)
}

// warnOfType warns if no device of the workspace has the type, for example because it is mistyped. A for_each over the
// empty list would plan to delete everything.
func (m *devicesModel) warnOfType(ctx context.Context, client *api.Client, diags *diag.Diagnostics) {
	const enough = 500 // devices to examine for their types
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
	if seen == enough { // a further device may have the type
		for device, err := range client.Devices(ctx, api.ListDevicesRequest{DeviceType: m.DeviceType.ValueString()}) {
			if err != nil || device.DeviceType == m.DeviceType.ValueString() {
				return
			}
		}
	}
	next := "Check that the API key belongs to the right workspace: this one has no devices."
	if len(kinds) > 0 {
		next = "Check its spelling. The workspace has devices of the types " + strings.Join(
			slices.Sorted(maps.Keys(kinds)),
			", ",
		) + "."
	}
	diagnostics.WarningAt(diags, path.Root("device_type"), "No device of this type", fmt.Sprintf("The workspace of "+
		"the API key has no device of the type %q, so `devices` is empty. Terraform plans to delete resources with "+
		"a `for_each` over it.\n\n%s", m.DeviceType.ValueString(), next))
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
		m.CodeConstraints[i] = codeConstraintModel{
			types.StringValue(constraint.ConstraintType),
			numberOrNull(constraint.MinLength),
			numberOrNull(constraint.MaxLength),
		}
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
