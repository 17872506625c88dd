package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

type unmanagedAccessCodesDataSource struct{ connectedDataSource }

func newUnmanagedAccessCodesDataSource() datasource.DataSource {
	return &unmanagedAccessCodesDataSource{}
}

type unmanagedAccessCodesModel struct {
	DeviceID    types.String               `tfsdk:"device_id"`
	AccessCodes []unmanagedAccessCodeModel `tfsdk:"access_codes"`
}

type unmanagedAccessCodeModel struct {
	AccessCodeID    types.String `tfsdk:"access_code_id"`
	DeviceID        types.String `tfsdk:"device_id"`
	Name            types.String `tfsdk:"name"`
	Code            types.String `tfsdk:"code"`
	Type            types.String `tfsdk:"type"`
	Status          types.String `tfsdk:"status"`
	StartsAt        types.String `tfsdk:"starts_at"`
	EndsAt          types.String `tfsdk:"ends_at"`
	CreatedAt       types.String `tfsdk:"created_at"`
	CannotBeManaged types.Bool   `tfsdk:"cannot_be_managed"`
}

func (m *unmanagedAccessCodeModel) fill(code *api.UnmanagedAccessCode) {
	*m = unmanagedAccessCodeModel{
		AccessCodeID:    types.StringValue(code.AccessCodeID),
		DeviceID:        types.StringValue(code.DeviceID),
		Name:            nameWithoutPIN(code.Name, code.Code),
		Code:            types.StringPointerValue(code.Code),
		Type:            types.StringValue(string(code.Type)),
		Status:          types.StringValue(code.Status),
		StartsAt:        instantOf(code.StartsAt).StringValue,
		EndsAt:          instantOf(code.EndsAt).StringValue,
		CreatedAt:       timestamp(code.CreatedAt),
		CannotBeManaged: types.BoolValue(code.CannotBeManaged),
	}
}

func (d *unmanagedAccessCodesDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_unmanaged_access_codes"
}

func (d *unmanagedAccessCodesDataSource) Schema(
	_ context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The access codes on a lock that the workspace does not manage: set in the lock's " +
			"app, at its keypad, or by another workspace.\n\nAn adopted code leaves this list. Do not use the list " +
			"in `for_each` of an import block or a resource: the guide *Adopt existing codes* explains why, and " +
			"what to do instead.",
		Attributes: map[string]schema.Attribute{
			"device_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock whose codes are listed.",
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock; the data source " +
					"deviceaccess_devices lists them."}},
			},
			"access_codes": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The codes, in the order in which the server first saw them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"access_code_id": computedText("The identifier of the code; use it to import the code."),
					"device_id":      computedText("The lock that holds the code."),
					"name":           computedText("The name of the code. Null if the lock stores none."),
					"code": schema.StringAttribute{
						Computed:            true,
						Sensitive:           true,
						MarkdownDescription: "The PIN. Null where the vendor hides it, as SmartThings does.",
					},
					"type":       computedText("`ongoing`, or `time_bound` with a time frame."),
					"status":     computedText("`set`, or `unset` if the lock does not accept the code now."),
					"starts_at":  computedText("From when the code opens the lock. Null if always."),
					"ends_at":    computedText("Until when the code opens the lock. Null if always."),
					"created_at": computedText("When the server first saw the code."),
					"cannot_be_managed": schema.BoolAttribute{
						Computed: true,
						MarkdownDescription: "Whether the vendor forbids converting the code to managed, as " +
							"igloohome, Kwikset, and SmartThings do.",
					},
				}},
			},
		},
	}
}

func (d *unmanagedAccessCodesDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	var model unmanagedAccessCodesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	codes, err := unmanagedCodes(ctx, client, model.DeviceID.ValueString())
	if err != nil {
		report(&resp.Diagnostics, "list unmanaged access codes", err)
		return
	}
	model.AccessCodes = make([]unmanagedAccessCodeModel, len(codes))
	for i := range codes {
		model.AccessCodes[i].fill(&codes[i])
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
