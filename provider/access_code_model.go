package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type accessCodeModel struct {
	AccessCodeID                  types.String   `tfsdk:"access_code_id"`
	DeviceID                      types.String   `tfsdk:"device_id"`
	Name                          types.String   `tfsdk:"name"`
	Code                          types.String   `tfsdk:"code"`
	CodeWO                        types.String   `tfsdk:"code_wo"`
	CodeWOVersion                 types.Int64    `tfsdk:"code_wo_version"`
	StartsAt                      instant        `tfsdk:"starts_at"`
	EndsAt                        instant        `tfsdk:"ends_at"`
	IsExternalModificationAllowed types.Bool     `tfsdk:"is_external_modification_allowed"`
	PreferredCodeLength           types.Int64    `tfsdk:"preferred_code_length"`
	CommonCodeKey                 types.String   `tfsdk:"common_code_key"`
	PreferNativeScheduling        types.Bool     `tfsdk:"prefer_native_scheduling"`
	AttemptForOfflineDevice       types.Bool     `tfsdk:"attempt_for_offline_device"`
	UseBackupAccessCodePool       types.Bool     `tfsdk:"use_backup_access_code_pool"`
	IsBackupAccessCodeAvailable   types.Bool     `tfsdk:"is_backup_access_code_available"`
	PulledBackupAccessCodeID      types.String   `tfsdk:"pulled_backup_access_code_id"`
	IsOfflineAccessCode           types.Bool     `tfsdk:"is_offline_access_code"`
	IsOneTimeUse                  types.Bool     `tfsdk:"is_one_time_use"`
	MaxTimeRounding               types.String   `tfsdk:"max_time_rounding"`
	Type                          types.String   `tfsdk:"type"`
	Status                        types.String   `tfsdk:"status"`
	Errors                        types.List     `tfsdk:"errors"`
	IsManaged                     types.Bool     `tfsdk:"is_managed"`
	CreatedAt                     types.String   `tfsdk:"created_at"`
	WaitForSet                    types.Bool     `tfsdk:"wait_for_set"`
	Keepers                       types.Map      `tfsdk:"keepers"`
	Timeouts                      timeouts.Value `tfsdk:"timeouts"`
}

// fill takes over what the server says about a managed code.
func (m *accessCodeModel) fill(code *api.AccessCode) {
	m.AccessCodeID = types.StringValue(code.AccessCodeID)
	m.DeviceID = types.StringValue(code.DeviceID)
	m.Name = types.StringPointerValue(code.Name)
	m.fillPIN(code.Code)
	m.fillFrame(code)
	m.IsExternalModificationAllowed = types.BoolValue(code.IsExternalModificationAllowed)
	m.fillKey(code.CommonCodeKey)
	m.IsBackupAccessCodeAvailable = types.BoolValue(code.IsBackupAccessCodeAvailable)
	m.PulledBackupAccessCodeID = types.StringPointerValue(code.PulledBackupAccessCodeID)
	m.IsOfflineAccessCode, m.IsOneTimeUse = types.BoolValue(code.IsOfflineAccessCode), types.BoolValue(code.IsOneTimeUse)
	m.Type = types.StringValue(string(code.Type))
	m.Status, m.Errors = types.StringValue(string(code.Status)), textList(problemTexts(code.Errors, pinsOf(code.Code, m)...))
	m.IsManaged = types.BoolValue(true)
	m.CreatedAt = timestamp(code.CreatedAt)
}

// fillUnmanaged takes over what the server says about an unmanaged code.
func (m *accessCodeModel) fillUnmanaged(code *api.UnmanagedAccessCode) {
	m.AccessCodeID = types.StringValue(code.AccessCodeID)
	m.DeviceID = types.StringValue(code.DeviceID)
	m.Name = types.StringPointerValue(code.Name)
	m.fillPIN(code.Code)
	m.StartsAt, m.EndsAt = instantOf(code.StartsAt), instantOf(code.EndsAt)
	m.IsExternalModificationAllowed = types.BoolNull()
	m.fillKey(nil)
	m.IsBackupAccessCodeAvailable, m.PulledBackupAccessCodeID = types.BoolValue(false), types.StringNull()
	m.IsOfflineAccessCode, m.IsOneTimeUse = types.BoolValue(false), types.BoolValue(false)
	m.Type = types.StringValue(string(code.Type))
	m.Status, m.Errors = types.StringValue(code.Status), textList(problemTexts(code.Errors, pinsOf(code.Code, m)...))
	m.IsManaged = types.BoolValue(false)
	m.CreatedAt = timestamp(code.CreatedAt)
}

// fillPIN keeps the PIN that is known where the server does not tell it: that does not mean it has changed. A PIN
// that was written only does not get into the state.
func (m *accessCodeModel) fillPIN(pin *string) {
	if m.writesOnly() {
		m.Code = types.StringNull()
	} else if pin != nil || m.Code.IsUnknown() {
		m.Code = types.StringPointerValue(pin)
	}
}

// fillKey keeps the key that is known where the server tells none. A code loses it when its management is given up, and no
// conversion gives it back: that is no reason to take the PIN off the lock and make another.
func (m *accessCodeModel) fillKey(key *string) {
	if key != nil || m.CommonCodeKey.IsUnknown() {
		m.CommonCodeKey = types.StringPointerValue(key)
	}
}

// pinsOf are the PINs that a text about a code must not tell: the one that the server tells, and those that are known here.
func pinsOf(told *string, m *accessCodeModel) []string {
	pins := []string{m.Code.ValueString(), m.CodeWO.ValueString()}
	if told != nil {
		pins = append(pins, *told)
	}
	return pins
}

// writesOnly says whether the PIN is given by code_wo.
func (m *accessCodeModel) writesOnly() bool { return !m.CodeWOVersion.IsNull() }

// pin is the PIN that is asked for, "" if the server is to make one.
func (m *accessCodeModel) pin() string {
	if m.writesOnly() {
		return m.CodeWO.ValueString()
	}
	return m.Code.ValueString()
}

// applied is the state after the plan was applied. What was planned has come true, as Terraform demands; should
// the server see it otherwise, the next refresh shows it.
func (m *accessCodeModel) applied(code *api.AccessCode) *accessCodeModel {
	state := *m
	state.CodeWO = types.StringNull() // what is written only is never kept
	state.fill(code)
	for _, text := range []struct{ planned, filled *types.String }{
		{&m.Name, &state.Name}, {&m.Code, &state.Code}, {&m.Type, &state.Type}, {&m.Status, &state.Status}, {&m.CreatedAt, &state.CreatedAt},
		{&m.CommonCodeKey, &state.CommonCodeKey}, {&m.PulledBackupAccessCodeID, &state.PulledBackupAccessCodeID},
	} {
		if !text.planned.IsUnknown() {
			*text.filled = *text.planned
		}
	}
	for _, yes := range []struct{ planned, filled *types.Bool }{
		{&m.IsExternalModificationAllowed, &state.IsExternalModificationAllowed}, {&m.IsOfflineAccessCode, &state.IsOfflineAccessCode},
		{&m.IsOneTimeUse, &state.IsOneTimeUse}, {&m.IsBackupAccessCodeAvailable, &state.IsBackupAccessCodeAvailable},
	} {
		if !yes.planned.IsUnknown() {
			*yes.filled = *yes.planned
		}
	}
	if !m.Errors.IsUnknown() {
		state.Errors = m.Errors
	}
	state.StartsAt, state.EndsAt = m.StartsAt, m.EndsAt
	return &state
}

// createRequest asks for the planned code. What is not configured is left to the server.
func (m *accessCodeModel) createRequest() api.CreateAccessCodeRequest {
	return api.CreateAccessCodeRequest{
		DeviceID:                      m.DeviceID.ValueString(),
		Name:                          m.Name.ValueString(),
		Code:                          m.pin(),
		StartsAt:                      m.StartsAt.ValueString(),
		EndsAt:                        m.EndsAt.ValueString(),
		IsExternalModificationAllowed: known(m.IsExternalModificationAllowed),
		PreferredCodeLength:           int(m.PreferredCodeLength.ValueInt64()),
		CommonCodeKey:                 m.CommonCodeKey.ValueString(),
		PreferNativeScheduling:        known(m.PreferNativeScheduling),
		AttemptForOfflineDevice:       known(m.AttemptForOfflineDevice),
		UseBackupAccessCodePool:       m.UseBackupAccessCodePool.ValueBool(),
		IsOfflineAccessCode:           m.IsOfflineAccessCode.ValueBool(),
		IsOneTimeUse:                  m.IsOneTimeUse.ValueBool(),
		MaxTimeRounding:               api.CreateAccessCodeRequestMaxTimeRounding(m.MaxTimeRounding.ValueString()),
	}
}

func (m *accessCodeModel) convertRequest() api.ConvertAccessCodeRequest {
	return api.ConvertAccessCodeRequest{
		AccessCodeID:                  m.AccessCodeID.ValueString(),
		IsExternalModificationAllowed: known(m.IsExternalModificationAllowed),
	}
}

// updateRequest asks for what the plan changes about the state, and says whether there is anything. Of an offline code
// nothing can be changed.
func (m *accessCodeModel) updateRequest(state *accessCodeModel) (request api.UpdateAccessCodeRequest, changes bool) {
	request.AccessCodeID, request.AttemptForOfflineDevice = state.AccessCodeID.ValueString(), known(m.AttemptForOfflineDevice)
	if state.IsOfflineAccessCode.ValueBool() {
		return request, false
	}
	if planned(m.Name, state.Name) {
		request.Name, changes = m.Name.ValueStringPointer(), true
	}
	if planned(m.Code, state.Code) || m.writesOnly() && !m.CodeWOVersion.Equal(state.CodeWOVersion) {
		request.Code, changes = m.pin(), true
	}
	if planned(m.IsExternalModificationAllowed, state.IsExternalModificationAllowed) {
		request.IsExternalModificationAllowed, changes = known(m.IsExternalModificationAllowed), true
	}
	if !m.StartsAt.same(state.StartsAt) || !m.EndsAt.same(state.EndsAt) {
		request.Type, changes = m.plannedType(), true
		request.StartsAt, request.EndsAt = m.StartsAt.ValueString(), m.EndsAt.ValueString()
	}
	return request, changes
}

// plannedType is the type that a code with this time frame has.
func (m *accessCodeModel) plannedType() api.AccessCodeType {
	if m.StartsAt.IsNull() && m.EndsAt.IsNull() && !m.IsOfflineAccessCode.ValueBool() {
		return api.Ongoing
	}
	return api.TimeBound
}

// planned says whether the plan has a value of its own, other than the state's.
func planned(plan, state attr.Value) bool {
	return isSet(plan) && !plan.Equal(state)
}

func isSet(value attr.Value) bool { return !value.IsNull() && !value.IsUnknown() }

func known(value types.Bool) *bool {
	if value.IsUnknown() {
		return nil
	}
	return value.ValueBoolPointer()
}

func timestamp(t time.Time) types.String { return instantOf(&t).StringValue }
