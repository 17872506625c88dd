package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// connectedResource is embedded by every resource and gives it the connection of the provider.
type connectedResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (r *connectedResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection)
}

// connectedEphemeralResource is embedded by every ephemeral resource and gives it the connection of the provider.
type connectedEphemeralResource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (e *connectedEphemeralResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.connection, _ = req.ProviderData.(*connection)
}

// connectedDataSource is embedded by every data source and gives it the connection of the provider.
type connectedDataSource struct{ *connection }

// Configure is called with no data when Terraform only asks for schemas.
func (d *connectedDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection)
}
