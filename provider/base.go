package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// connectedResource is embedded by every resource and gives it the connection of the provider.
type connectedResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (r *connectedResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection)
}

// cannotImport says that there is nothing to import: an identifier is misspelt, or the server cannot be asked yet. A
// Terraform that allows it comes back after apply then.
func (r *connectedResource) cannotImport(req resource.ImportStateRequest, resp *resource.ImportStateResponse) bool {
	for _, id := range identifiersIn(req) {
		if problem := misspelt(id); problem != "" {
			refuse(&resp.Diagnostics, "Check the identifier", problem)
			return true
		}
	}
	switch {
	case r.isConnected():
		return false
	case req.ClientCapabilities.DeferralAllowed:
		resp.State.Raw = tftypes.NewValue(resp.State.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &resource.Deferred{Reason: resource.DeferredReasonProviderConfigUnknown}
	default:
		r.client(&resp.Diagnostics, "Or add the import block after that apply.")
	}
	return true
}

// identifiersIn are the identifiers that an import names, by its ID or its identity.
func identifiersIn(req resource.ImportStateRequest) (ids []string) {
	texts := []string{req.ID}
	if req.ID == "" && req.Identity != nil {
		_ = tftypes.Walk(req.Identity.Raw, func(_ *tftypes.AttributePath, value tftypes.Value) (bool, error) {
			var text string
			if value.Type().Is(tftypes.String) && value.As(&text) == nil {
				texts = append(texts, text)
			}
			return true, nil
		})
	}
	for _, text := range texts {
		ids = append(ids, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/, ", r) })...)
	}
	return ids
}

// connectedEphemeralResource is embedded by every ephemeral resource and gives it the connection of the provider.
type connectedEphemeralResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (e *connectedEphemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.connection, _ = req.ProviderData.(*connection)
}

// client is the API. Where it is nil, the response says why, or that Terraform is to come back after apply.
func (e *connectedEphemeralResource) client(req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) *api.Client {
	if !e.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.Result.Raw = tftypes.NewValue(resp.Result.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &ephemeral.Deferred{Reason: ephemeral.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return e.connection.client(&resp.Diagnostics, "An ephemeral resource waits for apply by itself where one of its arguments is not known yet either.")
}

// connectedDataSource is embedded by every data source and gives it the connection of the provider.
type connectedDataSource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (d *connectedDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection)
}

// client is the API. Where it is nil, the response says why, or that Terraform is to come back after apply.
func (d *connectedDataSource) client(req datasource.ReadRequest, resp *datasource.ReadResponse) *api.Client {
	if !d.isConnected() && req.ClientCapabilities.DeferralAllowed {
		resp.State.Raw = tftypes.NewValue(resp.State.Raw.Type(), tftypes.UnknownValue)
		resp.Deferred = &datasource.Deferred{Reason: datasource.DeferredReasonProviderConfigUnknown}
		return nil
	}
	return d.connection.client(&resp.Diagnostics, "Or let the data source wait for apply, by naming in its `depends_on` the resource that the value comes from. "+
		"Then write the `device_id` of access codes itself: one that such a data source tells replaces the code whenever that resource changes.")
}
