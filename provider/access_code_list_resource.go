package provider

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// These are the values of management.
const (
	onlyManaged   = "managed"
	onlyUnmanaged = "unmanaged"
	both          = "both"
)

// accessCodeList lists access codes for terraform query. It never returns a PIN.
type accessCodeList struct{ connectedResource }

var _ list.ListResourceWithConfigure = (*accessCodeList)(nil)

func newAccessCodeList() list.ListResource { return &accessCodeList{} }

type accessCodeListModel struct {
	DeviceID   types.String `tfsdk:"device_id"`
	DeviceIDs  []string     `tfsdk:"device_ids"`
	Management types.String `tfsdk:"management"`
}

func (l *accessCodeList) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_access_code"
}

func (l *accessCodeList) ListResourceConfigSchema(
	_ context.Context,
	_ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the access codes on locks, to bring them under Terraform with `terraform query " +
			"-generate-config-out` (Terraform 1.14 and newer). Neither the listing nor the generated configuration " +
			"contains a PIN: an imported code keeps its PIN.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The lock whose codes are listed. Without it and `device_ids`, the codes on " +
					"all locks of the workspace are listed.",
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock, or leave it out " +
					"for all."}, stringvalidator.ConflictsWith(path.MatchRoot("device_ids"))},
			},
			"device_ids": schema.ListAttribute{
				Optional:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "The locks whose codes are listed, instead of `device_id`.",
				Validators: []validator.List{
					listvalidator.SizeAtLeast(1),
					listvalidator.ValueStringsAre(validators.Identifier{Hint: "Name a lock."}),
				},
			},
			"management": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "`managed` for codes that the workspace manages, `unmanaged` for codes set in " +
					"the lock's app, at its keypad, or by another workspace. By default `both`.",
				Validators: []validator.String{stringvalidator.OneOf(onlyManaged, onlyUnmanaged, both)},
			},
		},
	}
}

func (l *accessCodeList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config accessCodeListModel
	diags := req.Config.Get(ctx, &config)
	client := l.client(&diags, "A query finds it after that.")
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = listResults(
		ctx,
		req,
		"list access codes",
		config.codes(ctx, client),
		func(listed listedCode, result *list.ListResult) {
			result.DisplayName = listed.displayName()
			result.Diagnostics.Append(result.Identity.Set(ctx, listed.model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &listed.model)...)
			}
		},
	)
}

// listedCode is an access code without its PIN. The field device is the name of its device, or the identifier if the
// name is not known. The field device is the name of its device, or the identifier if the name is not known.
type listedCode struct {
	model  accessCodeModel
	name   types.String
	device string
}

// displayName distinguishes codes of the same name by their device.
func (c *listedCode) displayName() string {
	name := c.name.ValueString()
	if name == "" {
		name = c.model.AccessCodeID.ValueString()
	}
	if !c.model.IsManaged.ValueBool() {
		return fmt.Sprintf("%s on %s (unmanaged)", name, c.device)
	}
	return fmt.Sprintf("%s on %s", name, c.device)
}

// codes yields the configured codes, lock by lock. It yields each code once, even if the code becomes managed or
// unmanaged during the listing.
func (m *accessCodeListModel) codes(ctx context.Context, client *api.Client) iter.Seq2[listedCode, error] {
	return func(yield func(listedCode, error) bool) {
		seen := map[string]bool{}
		for device, err := range m.devices(ctx, client) {
			if err != nil {
				yield(listedCode{}, err)
				return
			}
			for code, err := range m.codesOf(ctx, client, device.DeviceID) {
				if err == nil &&
					(seen[code.model.AccessCodeID.ValueString()] || code.model.DeviceID.ValueString() != device.DeviceID) {
					continue // some servers ignore device_id
				}
				seen[code.model.AccessCodeID.ValueString()] = true
				code.device = device.DisplayName
				if !yield(code, err) || err != nil {
					return
				}
			}
		}
	}
}

func (m *accessCodeListModel) devices(ctx context.Context, client *api.Client) iter.Seq2[api.Device, error] {
	named := m.DeviceIDs
	if !m.DeviceID.IsNull() {
		named = []string{m.DeviceID.ValueString()}
	}
	if named == nil {
		return client.Devices(ctx, api.ListDevicesRequest{})
	}
	return func(yield func(api.Device, error) bool) {
		for _, id := range slices.Compact(slices.Sorted(slices.Values(named))) {
			if !yield(api.Device{DeviceID: id, DisplayName: id}, nil) {
				return
			}
		}
	}
}

func (m *accessCodeListModel) codesOf(
	ctx context.Context,
	client *api.Client,
	deviceID string,
) iter.Seq2[listedCode, error] {
	return func(yield func(listedCode, error) bool) {
		if m.Management.ValueString() != onlyUnmanaged {
			for code, err := range client.AccessCodes(ctx, deviceID) {
				if listed := withoutPIN((*accessCodeModel).fill, &code); !yield(listed, err) || err != nil {
					return
				}
			}
		}
		if m.Management.ValueString() != onlyManaged {
			for code, err := range client.UnmanagedAccessCodes(ctx, deviceID) {
				if listed := withoutPIN((*accessCodeModel).fillUnmanaged, &code); !yield(listed, err) || err != nil {
					return
				}
			}
		}
	}
}

// withoutPIN returns a code without its PIN. It leaves a name that contains the PIN out of the resource, so the
// generated configuration neither shows the PIN nor renames the code.
func withoutPIN[T any](fill func(*accessCodeModel, *T), code *T) listedCode {
	model := accessCodeModel{Keepers: noKeepers, Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{
		"create": types.StringType, "update": types.StringType, "delete": types.StringType,
	})}}
	fill(&model, code)
	listed := listedCode{name: nameWithoutPIN(model.Name.ValueStringPointer(), model.Code.ValueStringPointer())}
	if !listed.name.Equal(model.Name) {
		model.Name = types.StringNull()
	}
	model.Code = types.StringNull()
	listed.model = model
	return listed
}
