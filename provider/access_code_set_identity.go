package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// accessCodeSetIdentity is what Terraform 1.12 and newer know a set by. No server knows of sets, so a set is its codes, and
// its identity changes with them.
type accessCodeSetIdentity struct {
	AccessCodes []string `tfsdk:"access_codes"` // <device_id>/<access_code_id>, or <device_id> where there is no code; in order
}

// IdentitySchema describes accessCodeSetIdentity.
func (r *accessCodeSetResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"access_codes": identityschema.ListAttribute{
			RequiredForImport: true, ElementType: types.StringType, Description: "The codes of the set, each as `<device_id>/<access_code_id>`, or as `<device_id>` where the lock has none yet.",
		},
	}}
}

func (m *accessCodeSetModel) identity(ctx context.Context) accessCodeSetIdentity {
	codes := m.codes(ctx)
	identity := accessCodeSetIdentity{AccessCodes: []string{}}
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		one := deviceID
		if id := codes[deviceID].AccessCodeID.ValueString(); id != "" {
			one += "/" + id
		}
		identity.AccessCodes = append(identity.AccessCodes, one)
	}
	return identity
}

// namedKey is where the private state of a set keeps, from the import to the read that follows it, its locks as they were named: maps and
// sets forget the order.
const namedKey = "named"

func rememberNamed(ctx context.Context, private privateState, locks []string) diag.Diagnostics {
	encoded, _ := json.Marshal(locks) // strings always encode
	return private.SetKey(ctx, namedKey, encoded)
}

// named are the locks of codes, those that an import has named in that order first.
func named(ctx context.Context, private privateState, codes map[string]lockCode, diags *diag.Diagnostics) (locks []string) {
	stored, problems := private.GetKey(ctx, namedKey)
	diags.Append(problems...)
	_ = json.Unmarshal(stored, &locks) // none, where nothing was stored
	for _, deviceID := range slices.Sorted(maps.Keys(codes)) {
		if !slices.Contains(locks, deviceID) {
			locks = append(locks, deviceID)
		}
	}
	return locks
}

// ImportState takes the codes of the set as <device_id>/<access_code_id>, with commas between them or in an identity. It
// changes nothing: Read looks the codes up, and apply makes those alike that differ from the first.
func (r *accessCodeSetResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	given, byIdentity := accessCodeSetIdentity{AccessCodes: strings.Split(req.ID, ",")}, req.ID == ""
	if byIdentity {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &given)...)
	}
	codes, locks := map[string]lockCode{}, []string{}
	for _, one := range given.AccessCodes {
		deviceID, id, hasCode := strings.Cut(strings.TrimSpace(one), "/")
		if _, twice := codes[deviceID]; twice || deviceID == "" || id == "" && (hasCode || !byIdentity) || strings.ContainsAny(id, "/ ") {
			refuse(&resp.Diagnostics, "Import access code set", fmt.Sprintf("%q is not `<device_id>/<access_code_id>` of a lock, or names a lock again. "+
				"An identity is a list of these; an ID has them with commas between them.", one))
			return
		}
		code := noCode()
		if hasCode {
			code.AccessCodeID = types.StringValue(id)
		}
		codes[deviceID], locks = code, append(locks, deviceID)
	}
	if len(codes) == 0 {
		refuse(&resp.Diagnostics, "Import access code set", "The identity names no codes. Give `access_codes` one `<device_id>/<access_code_id>` for each lock.")
		return
	}
	resp.Diagnostics.Append(rememberNamed(ctx, resp.Private, locks)...)
	var model accessCodeSetModel
	resp.Diagnostics.Append(model.setCodes(ctx, codes)...)
	resp.Diagnostics.Append(model.setDevices(ctx, codes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_codes"), model.AccessCodes)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_ids"), model.DeviceIDs)...)
}
