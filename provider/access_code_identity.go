package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// accessCodeIdentity is what Terraform 1.12 and newer know a code by. Both parts are needed, because servers list
// unmanaged codes by device only.
type accessCodeIdentity struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	DeviceID     types.String `tfsdk:"device_id"`
}

// IdentitySchema describes accessCodeIdentity.
func (r *accessCodeResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"access_code_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The identifier of the access code."},
		"device_id":      identityschema.StringAttribute{RequiredForImport: true, Description: "The lock that the code is on."},
	}}
}

func (m *accessCodeModel) identity() accessCodeIdentity {
	return accessCodeIdentity{AccessCodeID: m.AccessCodeID, DeviceID: m.DeviceID}
}

// importIdentity is the form of import that never writes: it only takes over what it was given.
func (r *accessCodeResource) importIdentity(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var identity accessCodeIdentity
	resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if identity.AccessCodeID.ValueString() == "" || identity.DeviceID.ValueString() == "" {
		refuse(&resp.Diagnostics, actionImport, "The identity needs both `access_code_id` and `device_id`. "+
			"The data sources deviceaccess_devices and deviceaccess_unmanaged_access_codes list those there are.")
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_code_id"), identity.AccessCodeID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
}
