package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
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
	_ resource.ResourceWithIdentity       = (*noiseThresholdResource)(nil)
	_ resource.ResourceWithImportState    = (*noiseThresholdResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*noiseThresholdResource)(nil)
	_ resource.ResourceWithValidateConfig = (*noiseThresholdResource)(nil)
)

type noiseThresholdResource struct{ identifiedResource }

func newNoiseThresholdResource() resource.Resource {
	return &noiseThresholdResource{identifiedResource{attribute: "noise_threshold_id", noun: "noise threshold"}}
}

func (r *noiseThresholdResource) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_noise_threshold"
}

func (r *noiseThresholdResource) Schema(
	ctx context.Context,
	_ resource.SchemaRequest,
	resp *resource.SchemaResponse,
) {
	same := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A noise threshold of a noise sensor: a level and the time of day in which it applies. " +
			"Creating, updating, and destroying it waits until the sensor has the change. A creation that the sensor " +
			"does not confirm in time is a warning, because the server keeps trying.",
		Attributes: map[string]schema.Attribute{
			"noise_threshold_id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       same,
				MarkdownDescription: "The identifier of the threshold.",
			},
			"device_id": schema.StringAttribute{
				Required: true,
				Validators: []validator.String{validators.Identifier{Hint: "Name a noise sensor; the data source " +
					"deviceaccess_noise_sensors lists them."}},
				PlanModifiers:       []planmodifier.String{planmodifiers.RequiresReplaceIfKnown{}},
				MarkdownDescription: "The noise sensor. A change replaces the threshold.",
			},
			"name": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{validators.NotEmpty{Hint: "Give a name, or leave it out."}},
				PlanModifiers:       same,
				MarkdownDescription: "The name of the threshold. By default the server chooses one.",
			},
			"starts_daily_at": schema.StringAttribute{
				Required:   true,
				Validators: []validator.String{validators.DailyTime{}},
				MarkdownDescription: "When the threshold starts to apply each day, such as `22:00:00` in the time zone " +
					"of the sensor, or `22:00:00[Europe/Paris]`.",
			},
			"ends_daily_at": schema.StringAttribute{
				Required:   true,
				Validators: []validator.String{validators.DailyTime{}},
				MarkdownDescription: "When the threshold ceases to apply, in the same form and time zone. A time " +
					"before `starts_daily_at` is on the next day.",
			},
			"noise_threshold_decibels": schema.Float64Attribute{
				Optional:            true,
				Computed:            true,
				Validators:          []validator.Float64{float64validator.AtLeast(0)},
				MarkdownDescription: "The level in decibels. Set it here or in `noise_threshold_nrs`.",
			},
			"noise_threshold_nrs": schema.Float64Attribute{
				Optional:   true,
				Computed:   true,
				Validators: []validator.Float64{float64validator.AtLeast(0)},
				MarkdownDescription: "The level as a Noise Risk Score, which only NoiseAware sensors have. Null if the " +
					"level is in decibels.",
			},
		},
		Blocks: map[string]schema.Block{
			"timeouts": timeoutsBlock(ctx, timeouts.Opts{
				Create: true,
				Update: true,
				Delete: true,
				CreateDescription: "How long to wait until the sensor has the threshold, such as `30s` or `10m`. By " +
					"default `5m`.",
				UpdateDescription: "How long to wait until the sensor has the change, such as `30s` or `10m`. By " +
					"default `5m`.",
				DeleteDescription: "How long to wait until the threshold is off the sensor, such as `30s` or `10m`. By " +
					"default `5m`.",
			}),
		},
	}
}

// ValidateConfig checks arguments that depend on each other.
func (r *noiseThresholdResource) ValidateConfig(
	ctx context.Context,
	req resource.ValidateConfigRequest,
	resp *resource.ValidateConfigResponse,
) {
	var config noiseThresholdModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	switch {
	case config.Decibels.IsNull() && config.NRS.IsNull():
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("noise_threshold_decibels"), "Missing level", "Set "+
			"`noise_threshold_decibels`, or `noise_threshold_nrs` for a sensor of NoiseAware.")
	case isSet(config.Decibels) && isSet(config.NRS):
		diagnostics.ErrorAt(
			&resp.Diagnostics,
			path.Root("noise_threshold_nrs"),
			"Conflicting arguments",
			"`noise_threshold_decibels` and `noise_threshold_nrs` are both set. Set one of them, and leave the other out.",
		)
	}
	if !isSet(config.StartsDailyAt) || !isSet(config.EndsDailyAt) {
		return
	}
	_, starts := validators.SplitDailyTime(config.StartsDailyAt.ValueString())
	_, ends := validators.SplitDailyTime(config.EndsDailyAt.ValueString())
	if starts != ends {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("ends_daily_at"), "Different time zones", "Both times of a "+
			"threshold must be in the same time zone. Write the same zone, or none, in `starts_daily_at` and "+
			"`ends_daily_at`.")
	}
}

// ModifyPlan plans the unit that is not configured, and checks the sensor of a new threshold.
func (r *noiseThresholdResource) ModifyPlan(
	ctx context.Context,
	req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, state, config noiseThresholdModel
	exists := !req.State.Raw.IsNull()
	if exists {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.planLevel(&config, &state)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if exists && resp.Plan.Raw.Equal(req.State.Raw) || plan.DeviceID.IsUnknown() {
		return
	}
	checking, end, ok := r.checkContext(ctx, exists)
	defer end()
	if !ok {
		return
	}
	device, missing := r.planDevice(checking, plan.DeviceID.ValueString())
	switch {
	case missing != nil && !exists:
		missing.report(&resp.Diagnostics, path.Root("device_id"))
	case device == nil:
	case !isNoiseSensor(device):
		reportKind(&resp.Diagnostics, device, "noise sensor", "deviceaccess_noise_sensors")
	case isSet(config.NRS) && !strings.HasPrefix(device.DeviceType, "noiseaware"):
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("noise_threshold_nrs"), "Level in another unit", fmt.Sprintf(
			"Only sensors of NoiseAware have Noise Risk Scores, and %s is a %s. Set `noise_threshold_decibels` instead.",
			device.DisplayName,
			device.DeviceType,
		))
	}
}

func (r *noiseThresholdResource) Create(
	ctx context.Context,
	req resource.CreateRequest,
	resp *resource.CreateResponse,
) {
	const action = "create noise threshold"
	var model, config noiseThresholdModel
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
	answer, err := api.Call[api.NoiseThresholdCreatedResponse](
		ctx,
		client.CreateNoiseThreshold,
		model.createRequest(&config),
	)
	if err == nil {
		err = hasID("noise threshold", answer.NoiseThreshold.NoiseThresholdID)
	}
	if err != nil {
		reportCreate(&resp.Diagnostics, action, err)
		return
	}
	// The threshold exists now: Terraform must store it, so that it can delete the threshold if anything fails.
	planned := model
	model.complete(&planned, &answer.NoiseThreshold)
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, model.identity())...)

	id := answer.NoiseThreshold.NoiseThresholdID
	switch err := client.Await(ctx, answer.ActionAttempt); {
	case isRefusal(err):
		reportNext(&resp.Diagnostics, action, err, "The noise threshold "+id+" is marked as tainted: the next apply "+
			"deletes it and creates another one. First correct the problem in the message.")
		return
	case err != nil: // an error would taint the threshold, and the next apply would replace it
		warnOfSensor(&resp.Diagnostics, id, err)
		return
	}
	if threshold, err := readNoiseThreshold(ctx, client, id); err == nil {
		model.complete(&planned, threshold)
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	}
}

// warnOfSensor warns that apply ends before the sensor has a new threshold.
func warnOfSensor(diags *diag.Diagnostics, id string, err error) {
	text, next := sentence(err.Error()), nextStep(err)
	switch {
	case errors.Is(err, context.Canceled):
		text, next = "Terraform was interrupted while it waited for the sensor.", ""
	case errors.Is(err, context.DeadlineExceeded):
		next = "For a sensor that always takes longer, raise `timeouts { create }`."
	}
	text += "\n\nThe server has accepted the noise threshold " + id + ", and sets it when the sensor can be reached. " +
		"The threshold is in the state."
	if next != "" {
		text += "\n\n" + next
	}
	diagnostics.Warning(diags, "Noise threshold may not be on its sensor yet", text)
}

func (r *noiseThresholdResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	const action = "read noise threshold"
	var model noiseThresholdModel
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
	id := model.NoiseThresholdID.ValueString()
	threshold, err := r.reads.NoiseThreshold(ctx, model.DeviceID.ValueString(), id), error(nil)
	if threshold == nil {
		threshold, err = readNoiseThreshold(ctx, client, id)
	}
	switch {
	case err != nil && imported:
		reportImport(&resp.Diagnostics, "import noise threshold", "noise threshold", id, "The list resource "+
			"deviceaccess_noise_threshold lists thresholds.", err)
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
	resp.Diagnostics.Append(r.rememberWorkspace(ctx, resp.Private, "")...)
	model.fill(threshold)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func readNoiseThreshold(ctx context.Context, client *api.Client, id string) (*api.NoiseThreshold, error) {
	answer, err := api.Call[api.NoiseThresholdResponse](
		ctx,
		client.GetNoiseThreshold,
		api.NoiseThresholdRequest{NoiseThresholdID: id},
	)
	if err != nil {
		return nil, err
	}
	return &answer.NoiseThreshold, sameID("noise threshold", answer.NoiseThreshold.NoiseThresholdID, id)
}

func (r *noiseThresholdResource) Update(
	ctx context.Context,
	req resource.UpdateRequest,
	resp *resource.UpdateResponse,
) {
	const action = "update noise threshold"
	var model, state, config noiseThresholdModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Update(ctx, r.defaults().update)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !model.DeviceID.Equal(state.DeviceID) {
		diagnostics.ErrorAt(&resp.Diagnostics, path.Root("device_id"), unplannedReplacement, planAgain("device_id"))
		return
	}
	// Store these now, in case the rest fails: the next destroy uses the timeouts.
	state.Timeouts = model.Timeouts
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	planned := model
	if request, changes := model.updateRequest(&config, &state); changes {
		answer, err := api.Call[api.ActionAttemptResponse](ctx, client.UpdateNoiseThreshold, request)
		if err == nil {
			err = client.Await(ctx, answer.ActionAttempt)
		}
		if err != nil {
			reportNext(&resp.Diagnostics, action, err, sensorAdvice(err, "update"))
			return
		}
	}
	threshold, err := readNoiseThreshold(ctx, client, model.NoiseThresholdID.ValueString())
	if err != nil {
		report(&resp.Diagnostics, "read noise threshold after its update", err)
		return
	}
	model.complete(&planned, threshold)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// sensorAdvice says what to do if the sensor has not confirmed a change or a deletion.
func sensorAdvice(err error, operation string) string {
	switch {
	case keepsTrying(err) && operation == "delete":
		return "The threshold may still be on the sensor. The server keeps trying; run Terraform again when the " +
			"sensor is online. " + raiseDelete
	case keepsTrying(err):
		return "The server keeps trying to make the change; you need not repeat it when the sensor is online. For a " +
			"sensor that always takes longer, raise `timeouts { update }`."
	case attemptFailed(err) || operation == "delete" && api.StatusOf(err) == http.StatusBadRequest:
		return "Correct the problem in the message, then run Terraform again. To keep the threshold on the sensor " +
			"without Terraform, remove it from the state with a `removed` block and `destroy = false`."
	}
	return nextStep(err)
}

func (r *noiseThresholdResource) Delete(
	ctx context.Context,
	req resource.DeleteRequest,
	resp *resource.DeleteResponse,
) {
	const action = "delete noise threshold"
	var model noiseThresholdModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	client := r.client(&resp.Diagnostics)
	timeout, diags := model.Timeouts.Delete(ctx, r.defaults().delete)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	id, deviceID := model.NoiseThresholdID.ValueString(), model.DeviceID.ValueString()
	request := api.DeleteNoiseThresholdRequest{NoiseThresholdID: id, DeviceID: deviceID}
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.DeleteNoiseThreshold, request)
	if api.IsNotFound(err) {
		r.isDeleted(ctx, req.Private, action, &resp.Diagnostics)
		return
	}
	if err == nil {
		err = client.Await(ctx, answer.ActionAttempt)
	}
	if err != nil {
		// Terraform does not name the resource in an error of a destroy.
		text := fmt.Sprintf(
			"the noise threshold %s %q on the device %s: %v",
			id,
			model.Name.ValueString(),
			deviceID,
			err,
		)
		reportNext(&resp.Diagnostics, action, &explainedError{text, err}, sensorAdvice(err, "delete"))
	}
}

// noiseThresholdIdentity identifies a noise threshold in Terraform 1.12 and newer.
type noiseThresholdIdentity struct {
	NoiseThresholdID types.String `tfsdk:"noise_threshold_id"`
}

type noiseThresholdModel struct {
	NoiseThresholdID types.String   `tfsdk:"noise_threshold_id"`
	DeviceID         types.String   `tfsdk:"device_id"`
	Name             types.String   `tfsdk:"name"`
	StartsDailyAt    types.String   `tfsdk:"starts_daily_at"`
	EndsDailyAt      types.String   `tfsdk:"ends_daily_at"`
	Decibels         types.Float64  `tfsdk:"noise_threshold_decibels"`
	NRS              types.Float64  `tfsdk:"noise_threshold_nrs"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`
}

func (m *noiseThresholdModel) identity() noiseThresholdIdentity {
	return noiseThresholdIdentity{m.NoiseThresholdID}
}

func (m *noiseThresholdModel) fill(threshold *api.NoiseThreshold) {
	*m = noiseThresholdModel{
		NoiseThresholdID: types.StringValue(threshold.NoiseThresholdID),
		DeviceID:         types.StringValue(threshold.DeviceID),
		Name:             types.StringValue(threshold.Name),
		StartsDailyAt:    types.StringValue(threshold.StartsDailyAt),
		EndsDailyAt:      types.StringValue(threshold.EndsDailyAt),
		Decibels:         types.Float64Value(threshold.NoiseThresholdDecibels),
		NRS:              types.Float64PointerValue(threshold.NoiseThresholdNrs),
		Timeouts:         m.Timeouts,
	}
}

// complete fills in what is not planned. What is planned stays as Terraform knows it.
func (m *noiseThresholdModel) complete(planned *noiseThresholdModel, threshold *api.NoiseThreshold) {
	m.fill(threshold)
	m.DeviceID, m.StartsDailyAt, m.EndsDailyAt = planned.DeviceID, planned.StartsDailyAt, planned.EndsDailyAt
	if !planned.Name.IsUnknown() {
		m.Name = planned.Name
	}
	if !planned.Decibels.IsUnknown() {
		m.Decibels = planned.Decibels
	}
	if !planned.NRS.IsUnknown() {
		m.NRS = planned.NRS
	}
}

// planLevel plans the level in the unit that is not configured. Only the sensor converts a Noise Risk Score to decibels.
func (m *noiseThresholdModel) planLevel(config, state *noiseThresholdModel) {
	switch {
	case config.Decibels.IsUnknown() || config.NRS.IsUnknown():
		m.Decibels, m.NRS = types.Float64Unknown(), types.Float64Unknown()
	case isSet(config.Decibels):
		m.NRS = types.Float64Null()
	case config.NRS.Equal(state.NRS):
		m.Decibels = state.Decibels
	default:
		m.Decibels = types.Float64Unknown()
	}
}

func (m *noiseThresholdModel) createRequest(config *noiseThresholdModel) api.CreateNoiseThresholdRequest {
	return api.CreateNoiseThresholdRequest{
		DeviceID:               m.DeviceID.ValueString(),
		Name:                   m.Name.ValueString(),
		StartsDailyAt:          m.StartsDailyAt.ValueString(),
		EndsDailyAt:            m.EndsDailyAt.ValueString(),
		NoiseThresholdDecibels: config.Decibels.ValueFloat64Pointer(),
		NoiseThresholdNrs:      config.NRS.ValueFloat64Pointer(),
	}
}

// updateRequest asks for what differs from the state, and reports whether anything does.
func (m *noiseThresholdModel) updateRequest(
	config, state *noiseThresholdModel,
) (request api.UpdateNoiseThresholdRequest, changes bool) {
	request.NoiseThresholdID, request.DeviceID = m.NoiseThresholdID.ValueString(), m.DeviceID.ValueString()
	if isSet(m.Name) && !m.Name.Equal(state.Name) {
		request.Name, changes = m.Name.ValueString(), true
	}
	if !m.StartsDailyAt.Equal(state.StartsDailyAt) || !m.EndsDailyAt.Equal(state.EndsDailyAt) {
		// Together, because both have the same time zone.
		request.StartsDailyAt, request.EndsDailyAt = m.StartsDailyAt.ValueString(), m.EndsDailyAt.ValueString()
		changes = true
	}
	if isSet(config.Decibels) && (!config.Decibels.Equal(state.Decibels) || !state.NRS.IsNull()) {
		request.NoiseThresholdDecibels, changes = config.Decibels.ValueFloat64Pointer(), true
	}
	if isSet(config.NRS) && !config.NRS.Equal(state.NRS) {
		request.NoiseThresholdNrs, changes = config.NRS.ValueFloat64Pointer(), true
	}
	return request, changes
}
