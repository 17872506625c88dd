package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

type accessCodesDataSource struct{ connectedDataSource }

func newAccessCodesDataSource() datasource.DataSource { return &accessCodesDataSource{} }

type accessCodesModel struct {
	DeviceID    types.String            `tfsdk:"device_id"`
	AccessCodes []listedAccessCodeModel `tfsdk:"access_codes"`
}

type listedAccessCodeModel struct {
	AccessCodeID                  types.String `tfsdk:"access_code_id"`
	DeviceID                      types.String `tfsdk:"device_id"`
	Name                          types.String `tfsdk:"name"`
	Type                          types.String `tfsdk:"type"`
	Status                        types.String `tfsdk:"status"`
	StartsAt                      types.String `tfsdk:"starts_at"`
	EndsAt                        types.String `tfsdk:"ends_at"`
	IsExternalModificationAllowed types.Bool   `tfsdk:"is_external_modification_allowed"`
	CreatedAt                     types.String `tfsdk:"created_at"`
}

func (m *listedAccessCodeModel) fill(code *api.AccessCode) {
	*m = listedAccessCodeModel{
		AccessCodeID:                  types.StringValue(code.AccessCodeID),
		DeviceID:                      types.StringValue(code.DeviceID),
		Name:                          nameWithoutPIN(code.Name, code.Code),
		Type:                          types.StringValue(string(code.Type)),
		Status:                        types.StringValue(string(code.Status)),
		StartsAt:                      instantOf(code.StartsAt).StringValue,
		EndsAt:                        instantOf(code.EndsAt).StringValue,
		IsExternalModificationAllowed: types.BoolValue(code.IsExternalModificationAllowed),
		CreatedAt:                     timestamp(code.CreatedAt),
	}
}

func (d *accessCodesDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_codes"
}

func (d *accessCodesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The access codes on a lock that the workspace manages, without their PINs. For other " +
			"codes see `deviceaccess_unmanaged_access_codes`.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock whose codes are listed.",
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock; the data source " +
					"deviceaccess_devices lists them."}},
			},
			"access_codes": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The codes, in the order of their creation.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"access_code_id": computedText("The identifier of the code; use it to import the code."),
					"device_id":      computedText("The lock that holds the code."),
					"name":           computedText("The name of the code. Null if it has none."),
					"type":           computedText("`ongoing`, or `time_bound` with a time frame."),
					"status": computedText(
						"The state of the code on its lock: `unset`, `setting`, `set`, `removing`, " +
							"or `unknown`. See the resource `deviceaccess_access_code`.",
					),
					"starts_at":  computedText("From when the code opens the lock. Null if always."),
					"ends_at":    computedText("Until when the code opens the lock. Null if always."),
					"created_at": computedText("When the code was created, or first seen on the lock."),
					"is_external_modification_allowed": schema.BoolAttribute{
						Computed: true,
						MarkdownDescription: "Whether changes made at the lock stay; otherwise the server reverts " +
							"them.",
					},
				}},
			},
		},
	}
}

func (d *accessCodesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model accessCodesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	codes, err := managedCodes(ctx, client, model.DeviceID.ValueString())
	if err != nil {
		report(&resp.Diagnostics, "list access codes", err)
		return
	}
	model.AccessCodes = make([]listedAccessCodeModel, len(codes))
	for i := range codes {
		model.AccessCodes[i].fill(&codes[i])
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// managedCodes lists the managed codes of a device. It drops those of other devices, which some servers return, too.
func managedCodes(ctx context.Context, client *api.Client, deviceID string) ([]api.AccessCode, error) {
	codes, err := api.Collect(client.AccessCodes(ctx, deviceID))
	return slices.DeleteFunc(codes, func(code api.AccessCode) bool { return code.DeviceID != deviceID }), err
}
