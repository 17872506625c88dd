package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
)

// identifiedResource is a resource that one identifier identifies and imports.
type identifiedResource struct {
	connectedResource

	attribute string // has the identifier, such as "webhook_id"
	noun      string // what is identified, such as "webhook"
}

// IdentitySchema describes the identity in Terraform 1.12 and newer.
func (r *identifiedResource) IdentitySchema(
	_ context.Context,
	_ resource.IdentitySchemaRequest,
	resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		r.attribute: identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The identifier of the " + r.noun + ".",
		},
	}}
}

// ImportState accepts an identifier or an identity. Read then reads the rest.
func (r *identifiedResource) ImportState(
	ctx context.Context,
	req resource.ImportStateRequest,
	resp *resource.ImportStateResponse,
) {
	if r.cannotImport(req, resp) {
		return
	}
	at := path.Root(r.attribute)
	resource.ImportStatePassthroughWithIdentity(ctx, at, at, req, resp)
}
