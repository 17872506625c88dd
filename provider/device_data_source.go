package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var _ datasource.DataSourceWithConfigValidators = (*deviceDataSource)(nil)

type deviceDataSource struct{ connectedDataSource }

func newDeviceDataSource() datasource.DataSource { return &deviceDataSource{} }

type namedDeviceModel struct {
	Name types.String `tfsdk:"name"`
	deviceModel
}

func (d *deviceDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_device"
}

func (d *deviceDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := deviceAttributes()
	attributes["device_id"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{validators.Identifier{Hint: "Name a device, or leave it out and " +
			"give its `name`."}},
		MarkdownDescription: "The identifier of the device. Set this or `name`.",
	}
	attributes["name"] = schema.StringAttribute{
		Optional: true,
		Validators: []validator.String{validators.NotEmpty{Hint: "Give the name of a device, or leave it " +
			"out and give its `device_id`."}},
		MarkdownDescription: "The name of the device, exactly as in `display_name`. Two devices of that name are " +
			"an error.",
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "One device of the workspace, by its identifier or by its name.",
		Attributes:          attributes,
	}
}

func (d *deviceDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{
		datasourcevalidator.ExactlyOneOf(path.MatchRoot("device_id"), path.MatchRoot("name")),
	}
}

func (d *deviceDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	const action = "read device"
	var model namedDeviceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	var device *api.Device
	var err error
	if model.Name.IsNull() {
		device, err = deviceByID(ctx, client, model.DeviceID.ValueString())
	} else if device, err = deviceByName(ctx, client, model.Name.ValueString()); device == nil && err == nil {
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("name"), action, fmt.Sprintf("The workspace of the API "+
			"key has no device with the name %q. The data source deviceaccess_devices lists "+
			"them.", model.Name.ValueString()))
		return
	}
	if err != nil {
		report(&resp.Diagnostics, action, err)
		return
	}
	model.fill(device)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// deviceByID reads a device. The error satisfies api.IsNotFound if there is none.
func deviceByID(ctx context.Context, client *api.Client, id string) (*api.Device, error) {
	answer, err := api.Call[api.DeviceResponse](ctx, client.GetDevice, api.GetDeviceRequest{DeviceID: id})
	if err != nil {
		return nil, err
	}
	return &answer.Device, sameID("device", answer.Device.DeviceID, id)
}

// deviceByName finds the device with a name. It returns nil if there is none, and an error if there are several: a
// server that reads a device by name returns any of them.
func deviceByName(ctx context.Context, client *api.Client, name string) (*api.Device, error) {
	devices, err := api.Collect(client.Devices(ctx, api.ListDevicesRequest{Search: name}))
	if err != nil {
		return nil, err
	}
	var found *api.Device
	var ids []string
	for i := range devices {
		if devices[i].DisplayName == name {
			found = &devices[i]
			ids = append(ids, found.DeviceID)
		}
	}
	if len(ids) > 1 {
		return nil, fmt.Errorf("%d devices have the name %q: %s. Name one by its "+
			"device_id", len(ids), name, strings.Join(ids, ", "))
	}
	return found, nil
}
