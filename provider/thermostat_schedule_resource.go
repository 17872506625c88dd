package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var (
	_ resource.ResourceWithIdentity       = (*thermostatScheduleResource)(nil)
	_ resource.ResourceWithImportState    = (*thermostatScheduleResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*thermostatScheduleResource)(nil)
	_ resource.ResourceWithValidateConfig = (*thermostatScheduleResource)(nil)
)

type thermostatScheduleResource struct{ identifiedResource }

func newThermostatScheduleResource() resource.Resource {
	return &thermostatScheduleResource{
		identifiedResource{attribute: "thermostat_schedule_id", noun: "thermostat schedule"},
	}
}

func (r *thermostatScheduleResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_thermostat_schedule"
}

func (r *thermostatScheduleResource) Schema(
	_ context.Context,
	_ resource.SchemaRequest,
	resp *resource.SchemaResponse,
) {
	same := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A schedule of a thermostat: from when until when the server sets it to a climate preset. " +
			"When it ends, the server sets the fallback preset of the thermostat once. A schedule that has ended is " +
			"no error, and stays in the state until its configuration changes.",
		Attributes: map[string]schema.Attribute{
			"thermostat_schedule_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The identifier of the schedule.",
			},
			"device_id": schema.StringAttribute{
				Required: true,
				Validators: []validator.String{validators.Identifier{Hint: "Name a thermostat; the data source " +
					"deviceaccess_thermostats lists them."}},
				PlanModifiers:       []planmodifier.String{planmodifiers.RequiresReplaceIfKnown{}},
				MarkdownDescription: "The thermostat. A change replaces the schedule.",
			},
			"climate_preset_key": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{validators.NotEmpty{Hint: "Name a preset of the thermostat."}},
				MarkdownDescription: "The key of the climate preset that the thermostat is set to.",
			},
			"name": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{validators.NotEmpty{Hint: "Give a name, or leave it out."}},
				MarkdownDescription: "The name of the schedule.",
			},
			"starts_at": schema.StringAttribute{
				Required:      true,
				CustomType:    instantType{},
				PlanModifiers: []planmodifier.String{planmodifiers.SameInstant{}},
				MarkdownDescription: "When the schedule starts, in RFC 3339 with a time zone. It differs from the " +
					"starts of the other schedules of the thermostat; a start in the past means now.",
			},
			"ends_at": schema.StringAttribute{
				Required:            true,
				CustomType:          instantType{},
				PlanModifiers:       []planmodifier.String{planmodifiers.SameInstant{}},
				MarkdownDescription: "When the schedule ends, in RFC 3339 with a time zone.",
			},
			"is_override_allowed": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(false),
				MarkdownDescription: "Whether a change at the thermostat lasts. By default `false`: the server sets " +
					"the preset again.",
			},
			"max_override_period_minutes": schema.Int64Attribute{
				Optional:   true,
				Validators: []validator.Int64{int64validator.Between(1, 525600)},
				MarkdownDescription: "For how many minutes a change at the thermostat lasts. Without it, the change " +
					"lasts until the next schedule or program starts.",
			},
			"created_at": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "When the schedule was created, in RFC 3339.",
			},
			"errors": problemsAttribute("Why the server could not set the thermostat. Empty if there are no errors.",
				listplanmodifier.UseStateForUnknown()),
		},
	}
}

// ValidateConfig checks arguments that depend on each other.
func (r *thermostatScheduleResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config thermostatScheduleModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	starts, ends := config.StartsAt.time(), config.EndsAt.time()
	if starts != nil && ends != nil && !ends.After(*starts) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("ends_at"), "Invalid time frame",
			"The schedule ends before it starts: `ends_at` must be after `starts_at`.")
	}
	allowed := config.IsOverrideAllowed
	if isSet(config.MaxOverridePeriodMinutes) && !allowed.IsUnknown() && !allowed.ValueBool() {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("max_override_period_minutes"), "Missing is_override_allowed",
			"The period has no effect while the server sets the preset again at once. Set `is_override_allowed` to "+
				"true, or leave `max_override_period_minutes` out.")
	}
}

// ModifyPlan replaces a schedule that has ended and that the server does not have anymore, and checks what the plan
// introduces against the thermostat.
func (r *thermostatScheduleResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	var plan, state thermostatScheduleModel
	exists := !req.State.Raw.IsNull()
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		over, diags := req.Private.GetKey(ctx, endedKey)
		resp.Diagnostics.Append(diags...)
		if string(over) == "true" && len(resp.RequiresReplace) == 0 {
			resp.RequiresReplace = append(resp.RequiresReplace, plan.changedAttribute(&state))
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	isNew := !exists || len(resp.RequiresReplace) > 0
	if ends := plan.EndsAt.time(); isNew && ends != nil && !ends.After(time.Now()) {
		diagnostics.WarningAt(&resp.Diagnostics, path.Root("ends_at"), "The schedule has ended", "`ends_at` is "+
			plan.EndsAt.ValueString()+", which has passed. Servers do not create a schedule that has ended, so "+
			"applying this plan will fail.\n\nRemove the schedule from the configuration, or move its time frame.")
	}
	r.checkPlan(ctx, &plan, &state, exists, isNew, resp)
}

// checkPlan checks the schedule against its thermostat.
func (r *thermostatScheduleResource) checkPlan(
	ctx context.Context,
	plan, state *thermostatScheduleModel,
	exists, isNew bool,
	resp *resource.ModifyPlanResponse,
) {
	ctx, end, ok := r.checkContext(ctx, exists)
	defer end()
	if !ok || plan.DeviceID.IsUnknown() {
		return
	}
	device, missing := r.planDevice(ctx, plan.DeviceID.ValueString())
	switch {
	case missing != nil && isNew:
		missing.report(&resp.Diagnostics, path.Root("device_id"))
	case device == nil:
	case !isThermostat(device):
		reportKind(&resp.Diagnostics, device, "thermostat", "deviceaccess_thermostats")
	case plan.ClimatePresetKey.IsUnknown() || !isNew && plan.ClimatePresetKey.Equal(state.ClimatePresetKey):
	case device.Properties.AvailableClimatePresets != nil:
		key := plan.ClimatePresetKey.ValueString()
		if presetOf(device, key) == nil && !r.checks.hasPreset(device.DeviceID, key) {
			diagnostics.WarningAt(
				&resp.Diagnostics,
				path.Root("climate_preset_key"),
				"Climate preset not found",
				fmt.Sprintf(
					"The thermostat %s has no climate preset %q, so applying this plan will fail. Its presets: "+
						"%s.\n\nIf a deviceaccess_climate_preset of this configuration creates it, take the key from the "+
						"attribute `climate_preset_key` of that resource, so that Terraform creates the preset first.",
					device.DisplayName,
					key,
					presetKeys(device),
				),
			)
		}
	}
}

func (r *thermostatScheduleResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	var model thermostatScheduleModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	answer, err := api.Call[api.ThermostatScheduleResponse](
		ctx,
		client.CreateThermostatSchedule,
		model.createRequest(),
	)
	if err == nil {
		err = hasID("thermostat schedule", answer.ThermostatSchedule.ThermostatScheduleID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, "create thermostat schedule", err)
		return
	}
	schedule := &answer.ThermostatSchedule
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, schedule.WorkspaceID)...)
	// Terraform hands on the private state of a schedule that this one replaces.
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, endedKey, []byte("false"))...)
	model.fillComputed(schedule)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
}

func (r *thermostatScheduleResource) Read(
	ctx context.Context,
	req resource.ReadRequest,
	resp *resource.ReadResponse,
) {
	const action = "read thermostat schedule"
	var model thermostatScheduleModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	// The framework requires an identity even for a deleted resource, and Terraform before 1.12 stores none.
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)
	imported := model.CreatedAt.IsNull()
	if !imported && r.skipsRefresh(&resp.Diagnostics) {
		return
	}
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	schedule, err := r.refreshSchedule(ctx, client, &model)
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import thermostat schedule", "thermostat schedule",
			model.ThermostatScheduleID.ValueString(), "The list resource deviceaccess_thermostat_schedule lists "+
				"schedules.", err)
		return
	case api.IsNotFound(err):
		if !r.isDeleted(ctx, req.Private, action, &resp.Diagnostics) {
			return
		}
		if !model.hasEnded(time.Now()) {
			resp.State.RemoveResource(ctx)
			return
		}
		// Removing it from the state would plan to create a schedule that servers reject.
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, endedKey, []byte("true"))...)
		return
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	}
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, schedule.WorkspaceID)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, endedKey, []byte("false"))...)
	model.fill(schedule, time.Now())
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// endedKey is the key of the private state that records that the server does not have a schedule that has ended.
const endedKey = "ended"

// refreshSchedule reads a schedule from the list of its thermostat, and separately if that does not have it.
func (r *thermostatScheduleResource) refreshSchedule(
	ctx context.Context,
	client *api.Client,
	model *thermostatScheduleModel,
) (*api.ThermostatSchedule, error) {
	id := model.ThermostatScheduleID.ValueString()
	if listed := r.reads.ThermostatSchedule(ctx, model.DeviceID.ValueString(), id); listed != nil {
		return listed, nil
	}
	answer, err := api.Call[api.ThermostatScheduleResponse](
		ctx,
		client.GetThermostatSchedule,
		api.ThermostatScheduleRequest{ThermostatScheduleID: id},
	)
	if err != nil {
		return nil, err
	}
	return &answer.ThermostatSchedule, sameID(
		"thermostat schedule",
		answer.ThermostatSchedule.ThermostatScheduleID,
		id,
	)
}

func (r *thermostatScheduleResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	var model, state thermostatScheduleModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if !model.DeviceID.Equal(state.DeviceID) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("device_id"), unplannedReplacement, planAgain("device_id"))
		return
	}
	if request, changes := model.updateRequest(&state); changes {
		if _, err := api.Call[api.OkResponse](ctx, client.UpdateThermostatSchedule, request); err != nil {
			report(&resp.Diagnostics, "update thermostat schedule", err)
			return
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *thermostatScheduleResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	const action = "delete thermostat schedule"
	var model thermostatScheduleModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := model.ThermostatScheduleID.ValueString()
	request := api.ThermostatScheduleRequest{ThermostatScheduleID: id}
	_, err := api.Call[api.OkResponse](ctx, client.DeleteThermostatSchedule, request)
	switch {
	case api.IsNotFound(err):
		r.isDeleted(ctx, req.Private, action, &resp.Diagnostics)
	case err != nil:
		// Terraform does not name the resource in an error of a destroy.
		report(&resp.Diagnostics, action, &explainedError{
			fmt.Sprintf("the schedule %s on the device %s: %v", id, model.DeviceID.ValueString(), err), err,
		})
	}
}

// thermostatScheduleIdentity identifies a schedule in Terraform 1.12 and newer.
type thermostatScheduleIdentity struct {
	ThermostatScheduleID types.String `tfsdk:"thermostat_schedule_id"`
}

type thermostatScheduleModel struct {
	ThermostatScheduleID     types.String `tfsdk:"thermostat_schedule_id"`
	DeviceID                 types.String `tfsdk:"device_id"`
	ClimatePresetKey         types.String `tfsdk:"climate_preset_key"`
	Name                     types.String `tfsdk:"name"`
	StartsAt                 instant      `tfsdk:"starts_at"`
	EndsAt                   instant      `tfsdk:"ends_at"`
	IsOverrideAllowed        types.Bool   `tfsdk:"is_override_allowed"`
	MaxOverridePeriodMinutes types.Int64  `tfsdk:"max_override_period_minutes"`
	CreatedAt                types.String `tfsdk:"created_at"`
	Errors                   types.List   `tfsdk:"errors"`
}

func (m *thermostatScheduleModel) identity() thermostatScheduleIdentity {
	return thermostatScheduleIdentity{m.ThermostatScheduleID}
}

// hasEnded reports whether the schedule is known to have ended.
func (m *thermostatScheduleModel) hasEnded(now time.Time) bool {
	ends := m.EndsAt.time()
	return ends != nil && !ends.After(now)
}

// fill copies a schedule of a server. Servers move a start in the past to the time of the request. If both starts have
// passed, the difference has no effect, so the state keeps its own.
func (m *thermostatScheduleModel) fill(schedule *api.ThermostatSchedule, now time.Time) {
	m.fillComputed(schedule)
	m.DeviceID = types.StringValue(schedule.DeviceID)
	m.ClimatePresetKey = types.StringValue(schedule.ClimatePresetKey)
	m.Name = textOrNull(textOf(schedule.Name))
	if known := m.StartsAt.time(); known == nil || known.After(now) || schedule.StartsAt.After(now) {
		m.StartsAt = instantOf(&schedule.StartsAt)
	}
	m.EndsAt = instantOf(&schedule.EndsAt)
	m.IsOverrideAllowed = types.BoolValue(schedule.IsOverrideAllowed != nil && *schedule.IsOverrideAllowed)
	m.MaxOverridePeriodMinutes = types.Int64Null()
	if minutes := schedule.MaxOverridePeriodMinutes; minutes != nil {
		m.MaxOverridePeriodMinutes = types.Int64Value(int64(*minutes))
	}
}

func (m *thermostatScheduleModel) fillComputed(schedule *api.ThermostatSchedule) {
	m.ThermostatScheduleID = types.StringValue(schedule.ThermostatScheduleID)
	m.CreatedAt = timestamp(schedule.CreatedAt)
	m.Errors = problemList(schedule.Errors)
}

// changedAttribute returns an attribute that differs from the state, for Terraform to show as the reason of a
// replacement.
func (m *thermostatScheduleModel) changedAttribute(state *thermostatScheduleModel) path.Path {
	switch {
	case !m.EndsAt.same(state.EndsAt):
		return path.Root("ends_at")
	case !m.StartsAt.same(state.StartsAt):
		return path.Root("starts_at")
	case !m.ClimatePresetKey.Equal(state.ClimatePresetKey):
		return path.Root("climate_preset_key")
	case !m.Name.Equal(state.Name):
		return path.Root("name")
	case !m.IsOverrideAllowed.Equal(state.IsOverrideAllowed):
		return path.Root("is_override_allowed")
	}
	return path.Root("max_override_period_minutes")
}

func (m *thermostatScheduleModel) createRequest() api.CreateThermostatScheduleRequest {
	return api.CreateThermostatScheduleRequest{
		DeviceID:                 m.DeviceID.ValueString(),
		ClimatePresetKey:         m.ClimatePresetKey.ValueString(),
		Name:                     m.Name.ValueString(),
		StartsAt:                 m.StartsAt.ValueString(),
		EndsAt:                   m.EndsAt.ValueString(),
		IsOverrideAllowed:        m.IsOverrideAllowed.ValueBool(),
		MaxOverridePeriodMinutes: minutes(m.MaxOverridePeriodMinutes),
	}
}

// updateRequest asks for what differs from the state, and reports whether anything does.
func (m *thermostatScheduleModel) updateRequest(
	state *thermostatScheduleModel,
) (request api.UpdateThermostatScheduleRequest, changes bool) {
	request.ThermostatScheduleID = m.ThermostatScheduleID.ValueString()
	if !m.ClimatePresetKey.Equal(state.ClimatePresetKey) {
		request.ClimatePresetKey, changes = m.ClimatePresetKey.ValueString(), true
	}
	if !m.Name.Equal(state.Name) {
		request.Name, changes = new(m.Name.ValueString()), true // an empty text removes the name
	}
	if !m.StartsAt.same(state.StartsAt) {
		request.StartsAt, changes = m.StartsAt.ValueString(), true
	}
	if !m.EndsAt.same(state.EndsAt) {
		request.EndsAt, changes = m.EndsAt.ValueString(), true
	}
	if !m.IsOverrideAllowed.Equal(state.IsOverrideAllowed) {
		request.IsOverrideAllowed, changes = m.IsOverrideAllowed.ValueBoolPointer(), true
	}
	if !m.MaxOverridePeriodMinutes.Equal(state.MaxOverridePeriodMinutes) {
		request.MaxOverridePeriodMinutes, changes = api.Change[int]{
			Given: true,
			To:    minutes(m.MaxOverridePeriodMinutes),
		}, true
	}
	return request, changes
}

func minutes(number types.Int64) *int {
	if !isSet(number) {
		return nil
	}
	return new(int(number.ValueInt64()))
}
