package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type accessCodeSetModel struct {
	DeviceIDs     types.Set      `tfsdk:"device_ids"`
	Name          types.String   `tfsdk:"name"`
	Code          types.String   `tfsdk:"code"`
	CodeWO        types.String   `tfsdk:"code_wo"`
	CodeWOVersion types.Int64    `tfsdk:"code_wo_version"`
	StartsAt      instant        `tfsdk:"starts_at"`
	EndsAt        instant        `tfsdk:"ends_at"`
	Keepers       types.Map      `tfsdk:"keepers"`
	AccessCodes   types.Map      `tfsdk:"access_codes"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
}

// lockCode is the code of a set on one lock.
type lockCode struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	Status       types.String `tfsdk:"status"`
	AsDeclared   types.Bool   `tfsdk:"as_declared"`
	Errors       []string     `tfsdk:"errors"`
}

var lockCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"access_code_id": types.StringType, "status": types.StringType, "as_declared": types.BoolType,
	"errors": types.ListType{ElemType: types.StringType},
}}

// missing is the status of a lock that has no code of the set.
const missing = "missing"

func noCode(errors ...string) lockCode {
	return lockCode{Status: types.StringValue(missing), AsDeclared: types.BoolValue(false), Errors: append([]string{}, errors...)}
}

// unless is the code, as it is not declared if that is so.
func (c lockCode) unless(so bool) lockCode {
	if so {
		c.AsDeclared = types.BoolValue(false)
	}
	return c
}

// devices are the locks of the set, in order. They must be known.
func (m *accessCodeSetModel) devices(ctx context.Context) []string {
	var ids []string
	m.DeviceIDs.ElementsAs(ctx, &ids, false)
	slices.Sort(ids)
	return ids
}

// codes are the codes of the set by lock; nil when they are not known.
func (m *accessCodeSetModel) codes(ctx context.Context) map[string]lockCode {
	var codes map[string]lockCode
	m.AccessCodes.ElementsAs(ctx, &codes, false)
	return codes
}

// setCodes takes over the codes of all locks.
func (m *accessCodeSetModel) setCodes(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.AccessCodes, diags = types.MapValueFrom(ctx, lockCodeType, codes)
	return diags
}

// setDevices takes over the locks.
func (m *accessCodeSetModel) setDevices(ctx context.Context, codes map[string]lockCode) (diags diag.Diagnostics) {
	m.DeviceIDs, diags = types.SetValueFrom(ctx, types.StringType, slices.Collect(maps.Keys(codes)))
	return diags
}

// on is the code that the set wants on a lock.
func (m *accessCodeSetModel) on(deviceID, id string) *accessCodeModel {
	return &accessCodeModel{
		AccessCodeID: types.StringValue(id), DeviceID: types.StringValue(deviceID),
		Name: m.Name, Code: m.Code, CodeWO: m.CodeWO, CodeWOVersion: m.CodeWOVersion, StartsAt: m.StartsAt, EndsAt: m.EndsAt,
	}
}

// writesOnly says whether the PIN is given by code_wo.
func (m *accessCodeSetModel) writesOnly() bool { return !m.CodeWOVersion.IsNull() }

// hidesPIN says whether nobody can tell from a code that it has the PIN of the set: that is written only, or the server does not tell it.
func (m *accessCodeSetModel) hidesPIN(code *api.AccessCode) bool {
	return m.writesOnly() || code.Code == nil
}

// pin is the PIN of the set, "" while none is known.
func (m *accessCodeSetModel) pin() string { return m.on("", "").pin() }

// changes says whether the plan wants other codes on the locks than the state.
func (m *accessCodeSetModel) changes(state *accessCodeSetModel) bool {
	if m.Code.IsUnknown() || m.Name.IsUnknown() || m.StartsAt.IsUnknown() || m.EndsAt.IsUnknown() {
		return true
	}
	_, changes := m.on("", "").updateRequest(state.on("", ""))
	return changes
}

// managed is what the state says about a managed code. Where the server does not tell the PIN, it has not changed. One that its lock has refused is
// not as declared, whatever the server wants it to be, nor is one that is being deleted.
func (m *accessCodeSetModel) managed(code *api.AccessCode) lockCode {
	actual := m.on(code.DeviceID, code.AccessCodeID)
	actual.fill(code)
	_, changes := m.on(code.DeviceID, code.AccessCodeID).updateRequest(actual)
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID), Status: types.StringValue(string(code.Status)),
		AsDeclared: types.BoolValue(!changes && !refused(code) && code.Status != api.Removing), Errors: m.texts(code.Errors, code.Code),
	}
}

// unmanaged is what the state says about a code that somebody has given up: apply converts it.
func (m *accessCodeSetModel) unmanaged(code *api.UnmanagedAccessCode) lockCode {
	return lockCode{
		AccessCodeID: types.StringValue(code.AccessCodeID), Status: types.StringValue(code.Status),
		AsDeclared: types.BoolValue(false), Errors: m.texts(code.Errors, code.Code),
	}
}

// texts are the errors of a code in words, without the PIN that the set wants and the one that the server tells.
func (m *accessCodeSetModel) texts(problems []api.Problem, told *string) []string {
	return problemTexts(problems, pinsOf(told, m.on("", ""))...)
}

func (m *accessCodeSetModel) hide(text string) string {
	return api.Redact(text, m.pin())
}

// adopt takes over name, PIN and time frame from a code, after an import.
func (m *accessCodeSetModel) adopt(found foundCode) {
	var code accessCodeModel
	if found.managed != nil {
		code.fill(found.managed)
	} else {
		code.fillUnmanaged(found.unmanaged)
	}
	m.Name, m.Code, m.StartsAt, m.EndsAt = code.Name, code.Code, code.StartsAt, code.EndsAt
}
