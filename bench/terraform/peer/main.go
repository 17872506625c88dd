// Command peer is a provider with our schemas that does nothing and stores no webhook. Its cost is that of any
// provider, which Terraform runs as a separate program.
package main

import (
	"context"
	"log"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	ours "github.com/deviceaccess/terraform-provider-deviceaccess/provider"
)

func main() {
	serve := providerserver.ServeOpts{Address: "registry.terraform.io/deviceaccess/peer"}
	if err := providerserver.Serve(context.Background(), func() provider.Provider {
		return peer{ours.New("peer")()}
	}, serve); err != nil {
		log.Fatal(err)
	}
}

// peer is a provider without a connection.
type peer struct{ provider.Provider }

func (p peer) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (p peer) Resources(ctx context.Context) []func() resource.Resource {
	resources := p.Provider.Resources(ctx)
	for i, newResource := range resources {
		resources[i] = func() resource.Resource {
			if webhook, ok := newResource().(resource.ResourceWithIdentity); ok {
				return idle{webhook}
			}
			return newResource() // only for its schema
		}
	}
	return resources
}

// idle is a resource that exists only in Terraform's state. Its Update never runs.
type idle struct{ resource.ResourceWithIdentity }

func (idle) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	id := types.StringValue(uuid.NewString())
	resp.State.Raw = req.Plan.Raw
	for name, value := range map[string]attr.Value{
		"webhook_id":      id,
		"secret":          id,
		"disabled":        types.BoolValue(false),
		"disabled_at":     types.StringNull(),
		"disabled_reason": types.StringNull(),
	} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("webhook_id"), id)...)
}

func (idle) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var id types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("webhook_id"), &id)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("webhook_id"), id)...)
}

func (idle) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
