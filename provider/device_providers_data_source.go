package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

type deviceProvidersDataSource struct{ connectedDataSource }

func newDeviceProvidersDataSource() datasource.DataSource { return &deviceProvidersDataSource{} }

type deviceProvidersModel struct {
	ProviderCategory types.String          `tfsdk:"provider_category"`
	DeviceProviders  []deviceProviderModel `tfsdk:"device_providers"`
}

type deviceProviderModel struct {
	DeviceProviderName           types.String `tfsdk:"device_provider_name"`
	DisplayName                  types.String `tfsdk:"display_name"`
	ProviderCategories           []string     `tfsdk:"provider_categories"`
	CanProgramOnlineAccessCodes  types.Bool   `tfsdk:"can_program_online_access_codes"`
	CanProgramOfflineAccessCodes types.Bool   `tfsdk:"can_program_offline_access_codes"`
	CanRemotelyUnlock            types.Bool   `tfsdk:"can_remotely_unlock"`
	CanRemotelyLock              types.Bool   `tfsdk:"can_remotely_lock"`
	CanConfigureAutoLock         types.Bool   `tfsdk:"can_configure_auto_lock"`
}

func (m *deviceProviderModel) fill(provider *api.DeviceProvider) {
	*m = deviceProviderModel{
		DeviceProviderName:           types.StringValue(provider.DeviceProviderName),
		DisplayName:                  types.StringValue(provider.DisplayName),
		ProviderCategories:           append([]string{}, provider.ProviderCategories...),
		CanProgramOnlineAccessCodes:  types.BoolPointerValue(provider.CanProgramOnlineAccessCodes),
		CanProgramOfflineAccessCodes: types.BoolPointerValue(provider.CanProgramOfflineAccessCodes),
		CanRemotelyUnlock:            types.BoolPointerValue(provider.CanRemotelyUnlock),
		CanRemotelyLock:              types.BoolPointerValue(provider.CanRemotelyLock),
		CanConfigureAutoLock:         types.BoolPointerValue(provider.CanConfigureAutoLock),
	}
}

func (d *deviceProvidersDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_device_providers"
}

func (d *deviceProvidersDataSource) Schema(
	_ context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	can := func(description string) schema.Attribute {
		return schema.BoolAttribute{Computed: true, MarkdownDescription: description + " Null where the server " +
			"does not say."}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The vendors whose devices the server supports.",
		Attributes: map[string]schema.Attribute{
			"provider_category": schema.StringAttribute{Optional: true, MarkdownDescription: "Only vendors of this " +
				"category, such as `stable`."},
			"device_providers": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The vendors.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"device_provider_name": computedText("The stable name of the vendor, such as `august`."),
					"display_name":         computedText("The name of the vendor, for people."),
					"provider_categories": schema.ListAttribute{
						Computed:            true,
						ElementType:         types.StringType,
						MarkdownDescription: "The categories of the vendor, such as `stable`.",
					},
					"can_program_online_access_codes": can("Whether the server can set access codes on its " +
						"devices."),
					"can_program_offline_access_codes": can("Whether its devices accept codes that the vendor " +
						"computes, without a connection."),
					"can_configure_auto_lock": can("Whether the server can configure its devices to lock " +
						"automatically."),
					"can_remotely_unlock": can("Whether the server can unlock its devices."),
					"can_remotely_lock":   can("Whether the server can lock its devices."),
				}},
			},
		},
	}
}

func (d *deviceProvidersDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	var model deviceProvidersModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	category := api.ListDeviceProvidersRequestProviderCategory(model.ProviderCategory.ValueString())
	answer, err := api.Call[api.DeviceProvidersResponse](
		ctx,
		client.ListDeviceProviders,
		api.ListDeviceProvidersRequest{ProviderCategory: category},
	)
	if err != nil {
		report(&resp.Diagnostics, "list device providers", err)
		return
	}
	model.DeviceProviders = make([]deviceProviderModel, len(answer.DeviceProviders))
	for i := range answer.DeviceProviders {
		model.DeviceProviders[i].fill(&answer.DeviceProviders[i])
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
