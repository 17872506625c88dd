package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*deviceResource)(nil)
	_ resource.ResourceWithImportState    = (*deviceResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*deviceResource)(nil)
	_ resource.ResourceWithValidateConfig = (*deviceResource)(nil)
)

// deviceResource holds the settings of a device that exists. It neither creates nor deletes the device.
type deviceResource struct{ identifiedResource }

func newDeviceResource() resource.Resource {
	return &deviceResource{identifiedResource{attribute: "device_id", noun: "device"}}
}

func (r *deviceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_device"
}

func (r *deviceResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The settings of a device that a connected account has. Creating the resource adopts " +
			"the device, and changes only the settings that the configuration has. Destroying it leaves the device " +
			"in the workspace with its last settings, and sends the server nothing.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{validators.Identifier{Hint: "Name a device."}},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "The identifier of the device. A change adopts another device.",
			},
			"name": schema.StringAttribute{
				Optional:      true,
				Computed:      true,
				Validators:    []validator.String{validators.NotEmpty{Hint: "Give a name, or leave it out."}},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "The name of the device in the workspace. Without it, the device keeps its " +
					"current name.",
			},
			"is_managed": schema.BoolAttribute{
				Optional:      true,
				Computed:      true,
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Whether the server reads and writes the device. With `false`, the codes on " +
					"the device stay as they are.",
			},
			"auto_lock_enabled": schema.BoolAttribute{
				Optional:      true,
				Computed:      true,
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Whether the lock locks itself after a delay. Null if the lock does not report " +
					"it.",
			},
			"auto_lock_delay_seconds": schema.Float64Attribute{
				Optional:      true,
				Computed:      true,
				Validators:    []validator.Float64{float64validator.Between(1, 60)},
				PlanModifiers: []planmodifier.Float64{float64planmodifier.UseStateForUnknown()},
				MarkdownDescription: "The delay after unlocking, 1 to 60 seconds. Required with `auto_lock_enabled " +
					"= true`.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true,
				Update: true,
				CreateDescription: "How long to wait until the lock has the auto-lock setting, such as `30s` or `10m`. " +
					"By default `5m`.",
				UpdateDescription: "How long to wait until the lock has the auto-lock setting, such as `30s` or `10m`. " +
					"By default `5m`.",
			}),
		},
	}
}

// ValidateConfig checks arguments that depend on each other.
func (r *deviceResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config deviceResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	enabled, delay := config.AutoLockEnabled, config.AutoLockDelaySeconds
	switch {
	case enabled.ValueBool() && delay.IsNull():
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("auto_lock_enabled"), "Missing auto_lock_delay_seconds",
			"`auto_lock_enabled` is true. Set `auto_lock_delay_seconds` to the delay after unlocking, 1 to 60 seconds.")
	case !enabled.ValueBool() && !enabled.IsUnknown() && !delay.IsNull() && !delay.IsUnknown():
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("auto_lock_delay_seconds"), "Conflicting arguments",
			"The delay has no effect without automatic locking. Set `auto_lock_enabled` to true, or leave "+
				"`auto_lock_delay_seconds` out.")
	}
	managed := config.IsManaged
	if !managed.IsNull() && !managed.IsUnknown() && !managed.ValueBool() && !enabled.IsNull() {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("auto_lock_enabled"), "Conflicting arguments",
			"The server does not write to a device with `is_managed = false`. Leave `auto_lock_enabled` out, or "+
				"manage the device.")
	}
}

// ModifyPlan checks a new or changed setting against the device.
func (r *deviceResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) || !r.isConnected() {
		return
	}
	var plan, config deviceResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() || plan.DeviceID.IsUnknown() {
		return
	}
	device, err := r.refreshDevice(ctx, r.api, plan.DeviceID.ValueString())
	switch {
	case api.IsNotFound(err):
		// Not an error: a device that was removed must not stop the plan of everything else.
		diagnostics.WarningAt(
			&resp.Diagnostics,
			path.Root("device_id"),
			"Device not found",
			"The workspace of the API "+
				"key has no device "+plan.DeviceID.ValueString()+", so applying this plan will fail. Correct `device_id`, "+
				"or remove the resource from the configuration.",
		)
	case err == nil && device.CanConfigureAutoLock != nil && !*device.CanConfigureAutoLock &&
		!config.AutoLockEnabled.IsNull():
		// Not an error, for the same reason.
		diagnostics.WarningAt(
			&resp.Diagnostics,
			path.Root("auto_lock_enabled"),
			"Automatic locking not supported",
			"The device "+device.DisplayName+" has no automatic locking that the server can configure, so applying this "+
				"plan will fail. Leave `auto_lock_enabled` and `auto_lock_delay_seconds` out.",
		)
	}
}

func (r *deviceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	const action = "adopt device"
	var model, config deviceResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Create(ctx, r.defaults().create)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// An error stores no state: the device is there anyway, and the next apply adopts it.
	device, err := model.apply(ctx, client, &config)
	if err != nil {
		reportDevice(&resp.Diagnostics, action, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, device.WorkspaceID)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *deviceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "read device"
	var model deviceResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.Name.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	device, err := r.refreshDevice(ctx, client, model.DeviceID.ValueString())
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import device", "device", model.DeviceID.ValueString(), whereLocksAre, err)
		return
	case api.IsNotFound(err):
		if r.isDeleted(ctx, req.Private, action, &resp.Diagnostics) {
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, device.WorkspaceID)...)
	model.fill(device)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *deviceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model, config deviceResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := model.apply(ctx, client, &config); err != nil {
		reportDevice(&resp.Diagnostics, "update device", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// Delete leaves the device with its last settings: Terraform has not created it.
func (r *deviceResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// refreshDevice is findDevice for many devices: it uses the list of managed devices.
func (c *connection) refreshDevice(ctx context.Context, client *api.Client, id string) (*api.Device, error) {
	if listed := c.reads.Device(ctx, id); listed != nil {
		return listed, nil
	}
	return findDevice(ctx, client, id)
}

// findDevice reads a device, managed or not. Of an unmanaged device, it returns only what deviceResourceModel needs.
// The error satisfies api.IsNotFound if there is none.
func findDevice(ctx context.Context, client *api.Client, id string) (*api.Device, error) {
	device, err := deviceByID(ctx, client, id)
	if !api.IsNotFound(err) {
		return device, err
	}
	answer, unmanagedErr := api.Call[api.UnmanagedDeviceResponse](
		ctx,
		client.GetUnmanagedDevice,
		api.GetDeviceRequest{DeviceID: id},
	)
	switch {
	case api.IsNoRoute(unmanagedErr):
		return nil, err
	case unmanagedErr != nil:
		return nil, unmanagedErr
	}
	return &api.Device{
		DeviceID:             answer.Device.DeviceID,
		DisplayName:          answer.Device.DisplayName,
		WorkspaceID:          answer.Device.WorkspaceID,
		CanConfigureAutoLock: answer.Device.CanConfigureAutoLock,
	}, sameID("device", answer.Device.DeviceID, id)
}

// reportDevice is report that shows a setting which the lock has not taken at its attribute.
func reportDevice(diags *diag.Diagnostics, action string, err error) {
	if _, ok := errors.AsType[*api.AttemptError](err); !ok {
		report(diags, action, err)
		return
	}
	diagnostics.FailureAt(
		diags,
		path.Root("auto_lock_enabled"),
		action,
		sentence(err.Error())+"\n\nThe server sends the "+
			"setting to the lock once. Run Terraform again when the lock is online.",
	)
}

// deviceIdentity identifies a device in Terraform 1.12 and newer.
type deviceIdentity struct {
	DeviceID types.String `tfsdk:"device_id"`
}

type deviceResourceModel struct {
	DeviceID             types.String   `tfsdk:"device_id"`
	Name                 types.String   `tfsdk:"name"`
	IsManaged            types.Bool     `tfsdk:"is_managed"`
	AutoLockEnabled      types.Bool     `tfsdk:"auto_lock_enabled"`
	AutoLockDelaySeconds types.Float64  `tfsdk:"auto_lock_delay_seconds"`
	Timeouts             timeouts.Value `tfsdk:"timeouts"`
}

func (m *deviceResourceModel) identity() deviceIdentity { return deviceIdentity{m.DeviceID} }

func (m *deviceResourceModel) fill(device *api.Device) {
	m.DeviceID = types.StringValue(device.DeviceID)
	m.Name = types.StringValue(device.DisplayName)
	m.IsManaged = types.BoolValue(device.IsManaged)
	m.AutoLockEnabled = types.BoolPointerValue(device.Properties.AutoLockEnabled)
	m.AutoLockDelaySeconds = types.Float64PointerValue(device.Properties.AutoLockDelaySeconds)
}

// apply gives the device the settings that the configuration has, and fills in the others. It returns the device as it
// was before.
func (m *deviceResourceModel) apply(
	ctx context.Context,
	client *api.Client,
	config *deviceResourceModel,
) (*api.Device, error) {
	id := m.DeviceID.ValueString()
	before, err := findDevice(ctx, client, id)
	if err != nil {
		return nil, err
	}
	managed := before.IsManaged
	if config.IsManaged.ValueBool() && !managed {
		request := api.UpdateUnmanagedDeviceRequest{DeviceID: id, IsManaged: new(true)}
		if _, err := api.Call[api.OkResponse](ctx, client.UpdateUnmanagedDevice, request); err != nil {
			return nil, err
		}
		managed = true
	}
	if err := configureAutoLock(ctx, client, before, config); err != nil {
		return nil, err
	}
	change := api.UpdateDeviceRequest{DeviceID: id}
	if !config.Name.IsNull() && config.Name.ValueString() != before.DisplayName {
		change.Name = config.Name.ValueStringPointer()
	}
	if managed && !config.IsManaged.IsNull() && !config.IsManaged.ValueBool() {
		change.IsManaged = new(false)
	}
	switch {
	case change.Name != nil && !managed:
		return nil, errNotRenamed
	case change.Name != nil || change.IsManaged != nil:
		if _, err := api.Call[api.OkResponse](ctx, client.UpdateDevice, change); err != nil {
			return nil, err
		}
	}
	after, err := findDevice(ctx, client, id)
	if err != nil {
		return nil, err
	}
	m.complete(after)
	return before, nil
}

// errNotRenamed is the error of a new name for an unmanaged device.
var errNotRenamed = errors.New("the device is not managed, so the server does not rename it. Set `is_managed` to " +
	"true, or leave `name` out")

// configureAutoLock waits until the lock has the configured setting.
func configureAutoLock(ctx context.Context, client *api.Client, before *api.Device, config *deviceResourceModel) error {
	var current deviceResourceModel
	current.fill(before)
	enabled, delay := config.AutoLockEnabled, config.AutoLockDelaySeconds
	if enabled.IsNull() || enabled.Equal(current.AutoLockEnabled) &&
		(delay.IsNull() || delay.Equal(current.AutoLockDelaySeconds)) {
		return nil
	}
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.ConfigureAutoLock, api.ConfigureAutoLockRequest{
		DeviceID:             before.DeviceID,
		AutoLockEnabled:      enabled.ValueBool(),
		AutoLockDelaySeconds: delay.ValueFloat64Pointer(),
	})
	if err != nil {
		return err
	}
	return client.Await(ctx, answer.ActionAttempt)
}

// complete fills in the settings that are not planned.
func (m *deviceResourceModel) complete(device *api.Device) {
	planned := *m
	m.fill(device)
	if !planned.Name.IsUnknown() {
		m.Name = planned.Name
	}
	if !planned.IsManaged.IsUnknown() {
		m.IsManaged = planned.IsManaged
	}
	if !planned.AutoLockEnabled.IsUnknown() {
		m.AutoLockEnabled = planned.AutoLockEnabled
	}
	if !planned.AutoLockDelaySeconds.IsUnknown() {
		m.AutoLockDelaySeconds = planned.AutoLockDelaySeconds
	}
}
