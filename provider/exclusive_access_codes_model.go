package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type exclusiveAccessCodesModel struct {
	DeviceID           types.String   `tfsdk:"device_id"`
	AccessCodeIDs      types.Set      `tfsdk:"access_code_ids"`
	ForeignAccessCodes types.Map      `tfsdk:"foreign_access_codes"`
	DeletedAccessCodes types.Map      `tfsdk:"deleted_access_codes"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// foreignCode is a code on the lock that is not one of those that may be.
type foreignCode struct {
	Name         types.String `tfsdk:"name"`
	IsManaged    types.Bool   `tfsdk:"is_managed"`
	CanBeDeleted types.Bool   `tfsdk:"can_be_deleted"`
	BackupOf     types.String `tfsdk:"backup_of"`
}

var foreignCodeType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"name": types.StringType, "is_managed": types.BoolType, "can_be_deleted": types.BoolType, "backup_of": types.StringType,
}}

// codesOn lists all codes on a lock by identifier. A name holds no PIN, whatever somebody has called the code.
func codesOn(ctx context.Context, client *api.Client, deviceID string) (map[string]foreignCode, error) {
	managed, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	unmanaged, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	return stock(managed, unmanaged), nil
}

// refreshCodesOn is codesOn for reading many locks: lists that others wait for, too, answer it.
func (c *connection) refreshCodesOn(ctx context.Context, client *api.Client, deviceID string) (map[string]foreignCode, error) {
	managed, known := c.reads.AccessCodesOn(ctx, deviceID)
	unmanaged, knownToo := c.reads.UnmanagedAccessCodesOn(ctx, deviceID)
	if !known || !knownToo {
		return codesOn(ctx, client, deviceID)
	}
	return stock(managed, unmanaged), nil
}

// stock are codes by identifier.
func stock(managed []api.AccessCode, unmanaged []api.UnmanagedAccessCode) map[string]foreignCode {
	codes := map[string]foreignCode{}
	pulledFor := map[string]types.String{}
	for _, code := range managed {
		if code.PulledBackupAccessCodeID != nil {
			pulledFor[*code.PulledBackupAccessCodeID] = types.StringValue(code.AccessCodeID)
		}
	}
	for _, code := range managed {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(code.Name, code.Code), types.BoolValue(true), types.BoolValue(!wasIssued(&code)), pulledFor[code.AccessCodeID],
		}
	}
	for _, code := range unmanaged {
		codes[code.AccessCodeID] = foreignCode{
			nameWithoutPIN(code.Name, code.Code), types.BoolValue(false), types.BoolValue(!code.CannotDeleteUnmanagedAccessCode), types.StringNull(),
		}
	}
	return codes
}

func nameWithoutPIN(name, pin *string) types.String {
	if name == nil || pin == nil || *pin == "" {
		return types.StringPointerValue(name)
	}
	return types.StringValue(api.Redact(*name, *pin))
}

// allowedCodes are the identifiers of codes that may be on a lock.
type allowedCodes map[string]bool

// has says whether a code may be on the lock: also one that was pulled in place of one that may.
func (a allowedCodes) has(id string, code foreignCode) bool {
	return a[id] || a[code.BackupOf.ValueString()]
}

// allowed are the codes that may be on the lock, as far as they are known; after an import there are none.
func (m *exclusiveAccessCodesModel) allowed() allowedCodes {
	allowed := allowedCodes{}
	for _, id := range m.AccessCodeIDs.Elements() {
		if text, ok := id.(types.String); ok && text.ValueString() != "" {
			allowed[text.ValueString()] = true
		}
	}
	return allowed
}

// released are the codes on the lock that the state allows and the plan no longer does. The state has no names of them, so a plan cannot show
// that they go before the next refresh counts them among the others.
func released(plan, state *exclusiveAccessCodesModel, onLock map[string]foreignCode) map[string]foreignCode {
	were, may, codes := state.allowed(), plan.allowed(), maps.Clone(onLock)
	maps.DeleteFunc(codes, func(id string, code foreignCode) bool { return !were.has(id, code) || may.has(id, code) })
	return codes
}

// foreign are the codes of the state that were not allowed when it was read.
func (m *exclusiveAccessCodesModel) foreign(ctx context.Context) map[string]foreignCode {
	foreign := map[string]foreignCode{}
	m.ForeignAccessCodes.ElementsAs(ctx, &foreign, false)
	return foreign
}

// setForeign takes over those of the codes on the lock that are not allowed.
func (m *exclusiveAccessCodesModel) setForeign(ctx context.Context, onLock map[string]foreignCode) (foreign map[string]foreignCode, diags diag.Diagnostics) {
	foreign, allowed := maps.Clone(onLock), m.allowed()
	maps.DeleteFunc(foreign, allowed.has)
	m.ForeignAccessCodes, diags = types.MapValueFrom(ctx, foreignCodeType, foreign)
	return foreign, diags
}

// split tells the codes that can be deleted from those that cannot.
func split(codes map[string]foreignCode) (deletable, stuck map[string]foreignCode) {
	deletable, stuck = maps.Clone(codes), maps.Clone(codes)
	maps.DeleteFunc(deletable, func(_ string, code foreignCode) bool { return !code.CanBeDeleted.ValueBool() })
	maps.DeleteFunc(stuck, func(_ string, code foreignCode) bool { return code.CanBeDeleted.ValueBool() })
	return deletable, stuck
}

// names are the codes' names by identifier.
func names(codes map[string]foreignCode) types.Map {
	named := map[string]attr.Value{}
	for id, code := range codes {
		named[id] = types.StringValue(code.Name.ValueString())
	}
	return types.MapValueMust(types.StringType, named)
}

// listed writes codes down for people, one a line.
func listed(codes map[string]foreignCode) string {
	var lines strings.Builder
	for _, id := range slices.Sorted(maps.Keys(codes)) {
		kind := "managed"
		switch {
		case !codes[id].IsManaged.ValueBool():
			kind = "unmanaged"
		case !codes[id].CanBeDeleted.ValueBool(): // nothing else keeps a server from it
			kind = "offline code"
		}
		if original := codes[id].BackupOf.ValueString(); original != "" {
			kind = "backup code of " + original
		}
		name := "without a name"
		if text := codes[id].Name.ValueString(); text != "" {
			name = fmt.Sprintf("%q", text)
		}
		fmt.Fprintf(&lines, "\n  %s %s (%s)", id, name, kind)
	}
	return lines.String()
}
