package provider

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// accessCodesExclusiveList lists one resource for each lock for terraform query, with the codes that are on the lock.
type accessCodesExclusiveList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*accessCodesExclusiveList)(nil)

func newAccessCodesExclusiveList() list.ListResource { return &accessCodesExclusiveList{} }

func (l *accessCodesExclusiveList) Metadata(
	_ context.Context,
	req resource.MetadataRequest,
	resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_codes_exclusive"
}

func (l *accessCodesExclusiveList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the locks of the workspace, to watch their access codes with `terraform query " +
			"-generate-config-out` (Terraform 1.14 and newer). The generated configuration allows the codes that are " +
			"on each lock now, so the first plan deletes none.",
	}
}

// lockStock is a lock with the codes on it.
type lockStock struct {
	device api.Device
	codes  map[string]foreignCode
}

func (l *accessCodesExclusiveList) List(
	ctx context.Context,
	req list.ListRequest,
	stream *list.ListResultsStream,
) {
	var diags diag.Diagnostics
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list locks",
		lockStocks(ctx, client, req.IncludeResource),
		func(lock lockStock, result *list.ListResult) {
			model := accessCodesExclusiveModel{
				DeviceID:           types.StringValue(lock.device.DeviceID),
				DeletedAccessCodes: codeNames(nil),
				Timeouts: timeouts.Value{
					Object: types.ObjectNull(map[string]attr.Type{"update": types.StringType}),
				},
			}
			result.DisplayName = lock.device.DisplayName
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if !req.IncludeResource {
				return
			}
			var more diag.Diagnostics
			model.AccessCodeIDs, more = types.SetValueFrom(
				ctx,
				types.StringType,
				slices.Sorted(maps.Keys(lock.codes)),
			)
			result.Diagnostics.Append(more...)
			_, more = model.setForeign(ctx, nil)
			result.Diagnostics.Append(more...)
			result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
		},
	)
}

// lockStocks yields the devices that can have access codes, and their codes if withCodes is set. A device without any
// capability comes from a server that does not list them.
func lockStocks(ctx context.Context, client *api.Client, withCodes bool) iter.Seq2[lockStock, error] {
	return func(yield func(lockStock, error) bool) {
		for device, err := range client.Devices(ctx, api.ListDevicesRequest{}) {
			lock := lockStock{device: device}
			capabilities := device.CapabilitiesSupported
			if err == nil && len(capabilities) > 0 && !slices.Contains(capabilities, "access_code") {
				continue
			}
			if err == nil && withCodes {
				lock.codes, err = codesOn(ctx, client, device.DeviceID)
			}
			if !yield(lock, err) || err != nil {
				return
			}
		}
	}
}
