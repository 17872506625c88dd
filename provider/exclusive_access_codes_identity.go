package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// exclusiveAccessCodesIdentity is what Terraform 1.12 and newer know the only codes of a lock by.
type exclusiveAccessCodesIdentity struct {
	DeviceID types.String `tfsdk:"device_id"`
}

// IdentitySchema describes exclusiveAccessCodesIdentity.
func (r *exclusiveAccessCodesResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"device_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The lock."},
	}}
}

func (m *exclusiveAccessCodesModel) identity() exclusiveAccessCodesIdentity {
	return exclusiveAccessCodesIdentity{m.DeviceID}
}

// ImportState takes the lock, by its identifier or an identity. Read looks up its codes.
func (r *exclusiveAccessCodesResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	identity := exclusiveAccessCodesIdentity{types.StringValue(req.ID)}
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
	}
	if id := identity.DeviceID.ValueString(); id == "" || strings.ContainsAny(id, "/ ,") {
		refuse(&resp.Diagnostics, "Import exclusive access codes", fmt.Sprintf("%q is not the `device_id` of one lock.", id))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), identity.DeviceID)...)
}
