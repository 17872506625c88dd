package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// webhookIdentity is what Terraform 1.12 and newer know a webhook by.
type webhookIdentity struct {
	WebhookID types.String `tfsdk:"webhook_id"`
}

// IdentitySchema describes webhookIdentity.
func (r *webhookResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"webhook_id": identityschema.StringAttribute{RequiredForImport: true, Description: "The identifier of the webhook."},
	}}
}

func (m *webhookModel) identity() webhookIdentity { return webhookIdentity{m.WebhookID} }

// ImportState takes the identifier, or an identity. Neither asks the server for anything before Read does.
func (r *webhookResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("webhook_id"), path.Root("webhook_id"), req, resp)
}
