package provider

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*climatePresetResource)(nil)
	_ resource.ResourceWithImportState    = (*climatePresetResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*climatePresetResource)(nil)
	_ resource.ResourceWithValidateConfig = (*climatePresetResource)(nil)
)

type climatePresetResource struct{ connectedResource }

func newClimatePresetResource() resource.Resource { return &climatePresetResource{} }

func (r *climatePresetResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_climate_preset"
}

func (r *climatePresetResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	choice := func(hint, description string, choices ...string) schema.Attribute {
		return schema.StringAttribute{
			Optional:      true,
			Computed:      true,
			Validators:    []validator.String{stringvalidator.OneOf(choices...)},
			PlanModifiers: []planmodifier.String{planmodifiers.StateUnlessConfigured{}},
			MarkdownDescription: description + ": `" + strings.Join(choices, "`, `") + "`. Without it, " + hint +
				".",
		}
	}
	attributes := map[string]schema.Attribute{
		"device_id": schema.StringAttribute{
			Required: true,
			Validators: []validator.String{validators.Identifier{Hint: "Name a thermostat; the data source " +
				"deviceaccess_thermostats lists them."}},
			PlanModifiers:       []planmodifier.String{planmodifiers.RequiresReplaceIfKnown{}},
			MarkdownDescription: "The thermostat that has the preset. A change replaces the preset.",
		},
		"climate_preset_key": schema.StringAttribute{
			Required:      true,
			Validators:    []validator.String{validators.NotEmpty{Hint: "Give the preset a key, such as `occupied`."}},
			PlanModifiers: []planmodifier.String{planmodifiers.RequiresReplaceIfKnown{}},
			MarkdownDescription: "The key by which schedules name the preset, unique on the thermostat. A change " +
				"replaces the preset.",
		},
		"name": schema.StringAttribute{
			Optional:            true,
			Validators:          []validator.String{validators.NotEmpty{Hint: "Give a name, or leave it out."}},
			MarkdownDescription: "The name of the preset, for people.",
		},
		"hvac_mode_setting": choice("the preset keeps its mode", "The mode", "off", "heat", "cool", "heat_cool", "eco"),
		"fan_mode_setting":  choice("the preset keeps its fan mode", "The mode of the fan", "auto", "on", "circulate"),
		"climate_preset_mode": choice("the preset keeps its purpose", "What the preset is for", "home", "away", "wake",
			"sleep", "occupied", "unoccupied"),
		"can_edit": schema.BoolAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Whether the preset can be changed. Imported presets of the device itself " +
				"sometimes cannot.",
		},
		"can_delete": schema.BoolAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Whether the preset can be deleted. Imported presets of the device itself " +
				"sometimes cannot.",
		},
	}
	heatingSetPoint.attributes(attributes, "The temperature up to which the thermostat heats,")
	coolingSetPoint.attributes(attributes, "The temperature down to which the thermostat cools,")
	resp.Schema = schema.Schema{
		MarkdownDescription: "A climate preset of a thermostat: a setting with a key, which schedules and programs " +
			"set. A preset changes only the settings that it has. A change of a preset that is in effect sets the " +
			"thermostat.",
		Attributes: attributes,
	}
}

// ValidateConfig checks arguments that depend on each other.
func (r *climatePresetResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config climatePresetModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	for kind, configured := range config.setPoints() {
		kind.checkUnits(configured, &resp.Diagnostics)
		if mode := config.HVACModeSetting.ValueString(); configured.isKnown() && kind.modeLacks(mode) {
			diagnostics.ErrorAt(&resp.Diagnostics, kind.attribute(configured), "Conflicting arguments", fmt.Sprintf(
				"The mode %q has no %s set point. Leave the set point out, or choose another `hvac_mode_setting`.",
				mode, kind))
		}
	}
}

// ModifyPlan plans the set points in both units, and checks what the plan introduces against the thermostat.
func (r *climatePresetResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	var plan, state, config climatePresetModel
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if req.Plan.Raw.IsNull() {
		state.warnOfDeletion(&resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.planSetPoints(&config, &state)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	r.checks.planPreset(plan.DeviceID.ValueString(), plan.ClimatePresetKey.ValueString())
	if exists && resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	if exists && len(resp.RequiresReplace) == 0 && isFalse(state.CanEdit.ValueBoolPointer()) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("climate_preset_key"), "Preset cannot be changed", fmt.Sprintf(
			"The preset %q belongs to the thermostat itself, and cannot be changed here. Write its current values, "+
				"or create a preset with another key.", state.ClimatePresetKey.ValueString()))
		return
	}
	r.checkPlan(ctx, &plan, &config, exists && len(resp.RequiresReplace) == 0, resp)
}

// checkPlan checks the preset against its thermostat.
func (r *climatePresetResource) checkPlan(
	ctx context.Context,
	plan, config *climatePresetModel,
	exists bool,
	resp *resource.ModifyPlanResponse,
) {
	if plan.DeviceID.IsUnknown() {
		return
	}
	// As for a resource of the state: without a refresh, a preset that is replaced would count as another one.
	ctx, end, ok := r.checkContext(ctx, true)
	defer end()
	if !ok {
		return
	}
	device, missing := r.planDevice(ctx, plan.DeviceID.ValueString())
	switch {
	case missing != nil && !exists:
		missing.report(&resp.Diagnostics, path.Root("device_id"))
	case device == nil:
	case !isThermostat(device):
		reportKind(&resp.Diagnostics, device, "thermostat", "deviceaccess_thermostats")
	default:
		limits := thermostatLimitsOf(device)
		for _, fault := range limits.check(plan.setting(config)) {
			diagnostics.ErrorAt(
				&resp.Diagnostics,
				fault.at,
				fault.summary,
				"Device "+device.DisplayName+": "+fault.text,
			)
		}
		preset := presetOf(device, plan.ClimatePresetKey.ValueString())
		if !exists && preset != nil && !r.walk.knows(plan.address()) {
			plan.warnOfDuplicate(preset, &resp.Diagnostics)
		}
	}
}

// reportKind adds the error for a device of another kind.
func reportKind(diags *diag.Diagnostics, device *api.Device, kind, source string) {
	diagnostics.ErrorAt(diags, path.Root("device_id"), "Not a "+kind, fmt.Sprintf("The device %s (%s) is not a %s. "+
		"The data source %s lists the devices that are.", device.DeviceID, device.DisplayName, kind, source))
}

func (r *climatePresetResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var model, config climatePresetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := api.Call[api.OkResponse](ctx, client.CreateClimatePreset, model.createRequest(&config))
	if err != nil {
		if isOfType(err, "duplicate_climate_preset") {
			reportNext(&resp.Diagnostics, "create climate preset", err, "To manage the preset that exists, import it "+
				"as `"+model.address()+"`. Otherwise choose another `climate_preset_key`.")
			return
		}
		reportCreate(&resp.Diagnostics, "create climate preset", err)
		return
	}
	model.CanEdit, model.CanDelete = types.BoolValue(true), types.BoolValue(true)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *climatePresetResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "read climate preset"
	var model climatePresetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	r.walk.know(model.address())
	imported := model.CanEdit.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	preset, workspaceID, err := r.refreshPreset(ctx, client, &model)
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import climate preset", "climate preset", model.address(), "The data source "+
			"deviceaccess_thermostats lists the presets of thermostats.", err)
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
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, workspaceID)...)
	model.fill(preset)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// refreshPreset reads a preset and its workspace, from the list of devices if that has the preset. The error satisfies
// api.IsNotFound if there is none.
func (r *climatePresetResource) refreshPreset(
	ctx context.Context,
	client *api.Client,
	model *climatePresetModel,
) (*api.ClimatePreset, string, error) {
	id, key := model.DeviceID.ValueString(), model.ClimatePresetKey.ValueString()
	if device := r.reads.Device(ctx, id); device != nil && presetOf(device, key) != nil {
		return presetOf(device, key), device.WorkspaceID, nil
	}
	device, err := deviceByID(ctx, client, id)
	if err != nil {
		return nil, "", err
	}
	preset := presetOf(device, key)
	if preset == nil {
		return nil, "", &api.ResponseError{
			Status:  http.StatusNotFound,
			Type:    "climate_preset_not_found",
			Message: "the device has no such climate preset",
		}
	}
	return preset, device.WorkspaceID, nil
}

func (r *climatePresetResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var model, state, config climatePresetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	for attribute, differs := range map[string]bool{
		"device_id":          !model.DeviceID.Equal(state.DeviceID),
		"climate_preset_key": !model.ClimatePresetKey.Equal(state.ClimatePresetKey),
	} {
		if differs {
			diagnostics.ErrorAt(&resp.Diagnostics, path.Root(attribute), unplannedReplacement, planAgain(attribute))
			return
		}
	}
	_, err := api.Call[api.OkResponse](ctx, client.UpdateClimatePreset, model.updateRequest(&config))
	if err != nil {
		report(&resp.Diagnostics, "update climate preset", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *climatePresetResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	const action = "delete climate preset"
	var model climatePresetModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := api.Call[api.OkResponse](ctx, client.DeleteClimatePreset, api.ClimatePresetRequest{
		DeviceID:         model.DeviceID.ValueString(),
		ClimatePresetKey: model.ClimatePresetKey.ValueString(),
	})
	switch {
	case api.IsNotFound(err):
		r.isDeleted(ctx, req.Private, action, &resp.Diagnostics)
	case err != nil:
		next := nextStep(err)
		if status := api.StatusOf(err); status == http.StatusBadRequest || status == http.StatusConflict {
			next = model.deletionAdvice()
		}
		// Terraform does not name the resource in an error of a destroy.
		reportNext(&resp.Diagnostics, action, &explainedError{
			fmt.Sprintf("the climate preset %s: %v", model.address(), err), err,
		}, next)
	}
}

// IdentitySchema describes climatePresetIdentity.
func (r *climatePresetResource) IdentitySchema(
	_ context.Context,
	_ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"device_id": identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The thermostat that has the preset.",
		},
		"climate_preset_key": identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The key of the preset.",
		},
	}}
}

// ImportState accepts DEVICE_ID/CLIMATE_PRESET_KEY or an identity. Read then reads the rest.
func (r *climatePresetResource) ImportState(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	var identity climatePresetIdentity
	if req.ID != "" {
		deviceID, key, _ := strings.Cut(req.ID, "/")
		identity = climatePresetIdentity{types.StringValue(deviceID), types.StringValue(key)}
	} else {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	deviceID, key := identity.DeviceID.ValueString(), identity.ClimatePresetKey.ValueString()
	switch {
	case resp.Diagnostics.HasError():
		return
	case deviceID == "" || key == "":
		diagnostics.Failure(
			&resp.Diagnostics,
			"import climate preset",
			fmt.Sprintf("%q does not name a climate preset. "+
				"Write DEVICE_ID/CLIMATE_PRESET_KEY; the data source deviceaccess_thermostats lists both.", req.ID),
		)
		return
	case strings.TrimSpace(key) != key:
		diagnostics.Error(&resp.Diagnostics, "Invalid identifier", fmt.Sprintf("The key %q begins or ends with a "+
			"space or a line break. Remove it.", key))
		return
	}
	req.ID, req.Identity = deviceID, nil // a key may have spaces and slashes
	if r.cannotImport(req, resp) {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("climate_preset_key"), identity.ClimatePresetKey)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity)...)
}
