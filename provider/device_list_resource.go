package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// deviceList lists the managed devices for terraform query.
type deviceList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*deviceList)(nil)

func newDeviceList() list.ListResource { return &deviceList{} }

func (l *deviceList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_device"
}

func (l *deviceList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the managed devices of the workspace, to bring their settings under Terraform " +
			"with `terraform query -generate-config-out` (Terraform 1.14 and newer).",
	}
}

func (l *deviceList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list devices",
		client.Devices(ctx, api.ListDevicesRequest{}),
		func(device api.Device, result *list.ListResult) {
			model := deviceResourceModel{Timeouts: noTimeouts("create", "update")}
			model.fill(&device)
			result.DisplayName = device.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
		},
	)
}

// noTimeouts is the value of a block timeouts without settings.
func noTimeouts(operations ...string) timeouts.Value {
	attributes := map[string]attr.Type{}
	for _, operation := range operations {
		attributes[operation] = types.StringType
	}
	return timeouts.Value{Object: types.ObjectNull(attributes)}
}
