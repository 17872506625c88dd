package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var _ datasource.DataSourceWithConfigValidators = (*accessCodeDataSource)(nil)

type accessCodeDataSource struct{ connectedDataSource }

func newAccessCodeDataSource() datasource.DataSource { return &accessCodeDataSource{} }

type accessCodeDataModel struct {
	Code      types.String `tfsdk:"code"`
	IsManaged types.Bool   `tfsdk:"is_managed"`
	Errors    []problem    `tfsdk:"errors"`
	listedAccessCodeModel
}

func (d *accessCodeDataSource) Metadata(
	_ context.Context,
	req datasource.MetadataRequest,
	resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_code"
}

func (d *accessCodeDataSource) Schema(
	ctx context.Context,
	_ datasource.SchemaRequest,
	resp *datasource.SchemaResponse,
) {
	attributes := elementAttributes(ctx, newAccessCodesDataSource(), "access_codes")
	attributes["access_code_id"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{validators.Identifier{Hint: "Name an access code, or leave it out and give " +
			"its `device_id` and `name`."}},
		MarkdownDescription: "The identifier of the code. Set this, or `device_id` and `name`.",
	}
	attributes["device_id"] = schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		Validators:          []validator.String{validators.Identifier{Hint: "Name a lock, or leave it out."}},
		MarkdownDescription: "The lock that holds the code.",
	}
	attributes["name"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Validators: []validator.String{
			validators.NotEmpty{Hint: "Give the name of a code, or leave it out and give its `access_code_id`."},
			validators.AlsoRequires{Attribute: "device_id", Hint: "Name the lock that holds the code."},
		},
		MarkdownDescription: "The name of the code on the lock. Two codes of that name are an error.",
	}
	attributes["code"] = schema.StringAttribute{
		Computed:  true,
		Sensitive: true,
		MarkdownDescription: "The PIN. Null if the vendor hides it; the ephemeral resource keeps it out of the " +
			"state.",
	}
	attributes["is_managed"] = schema.BoolAttribute{
		Computed:            true,
		MarkdownDescription: "Whether the workspace manages the code.",
	}
	attributes["is_external_modification_allowed"] = schema.BoolAttribute{
		Computed:            true,
		MarkdownDescription: "Whether changes made at the lock stay. Null for a code that is not managed.",
	}
	attributes["errors"] = problemsData("Why the code does not work. Empty if it works.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "One access code, managed or not, by its identifier or by its lock and its name.",
		Attributes:          attributes,
	}
}

// elementAttributes returns the attributes of the elements of a list data source.
func elementAttributes(ctx context.Context, list datasource.DataSource, attribute string) map[string]schema.Attribute {
	var resp datasource.SchemaResponse
	list.Schema(ctx, datasource.SchemaRequest{}, &resp)
	return resp.Schema.Attributes[attribute].(schema.ListNestedAttribute).NestedObject.Attributes
}

// problemsData returns the attribute errors of a data source.
func problemsData(description string) schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"error_code": computedText("The stable name of the error. Null if the server has named none."),
			"message":    computedText("What is wrong, for people."),
		}},
	}
}

func (d *accessCodeDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{
		datasourcevalidator.ExactlyOneOf(path.MatchRoot("access_code_id"), path.MatchRoot("name")),
	}
}

func (d *accessCodeDataSource) Read(
	ctx context.Context,
	req datasource.ReadRequest,
	resp *datasource.ReadResponse,
) {
	const action = "read access code"
	var model accessCodeDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := d.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	var managed *api.AccessCode
	var unmanaged *api.UnmanagedAccessCode
	var err error
	given, at := model, path.Root("access_code_id")
	if id := given.AccessCodeID.ValueString(); id != "" {
		managed, unmanaged, err = findCode(ctx, client, given.DeviceID.ValueString(), id)
	} else {
		at = path.Root("name")
		managed, unmanaged, err = codeNamed(ctx, client, given.DeviceID.ValueString(), given.Name.ValueString())
	}
	switch {
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	case managed != nil:
		model.fill(managed)
	case unmanaged != nil:
		model.fillUnmanaged(unmanaged)
	default:
		diagnostics.FailureAt(&resp.Diagnostics, at, action, "There is no such access code, neither managed nor "+
			"unmanaged. The data sources deviceaccess_access_codes and deviceaccess_unmanaged_access_codes list them.")
		return
	}
	if !given.DeviceID.IsNull() && !given.DeviceID.Equal(model.DeviceID) {
		diagnostics.FailureAt(&resp.Diagnostics, path.Root("device_id"), action, "The code is on the device "+
			model.DeviceID.ValueString()+". Correct `device_id`, or leave it out.")
		return
	}
	if !given.Name.IsNull() {
		model.Name = given.Name // Terraform requires what the configuration says
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// codeNamed finds the code with a name on a lock. Both results are nil if there is none. Several are an error.
func codeNamed(
	ctx context.Context,
	client *api.Client,
	deviceID, name string,
) (managed *api.AccessCode, unmanaged *api.UnmanagedAccessCode, err error) {
	codes, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, nil, err
	}
	others, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for i := range codes {
		if codes[i].Name != nil && *codes[i].Name == name {
			managed, ids = &codes[i], append(ids, codes[i].AccessCodeID)
		}
	}
	for i := range others {
		if others[i].Name != nil && *others[i].Name == name {
			unmanaged, ids = &others[i], append(ids, others[i].AccessCodeID)
		}
	}
	if len(ids) > 1 {
		return nil, nil, fmt.Errorf("%d codes on the lock have this name: %s. Name one by its "+
			"access_code_id", len(ids), strings.Join(ids, ", "))
	}
	return managed, unmanaged, nil
}

func (m *accessCodeDataModel) fill(code *api.AccessCode) {
	m.listedAccessCodeModel.fill(code)
	m.Code = types.StringPointerValue(code.Code)
	m.IsManaged = types.BoolValue(true)
	m.Errors = problemsOf(code.Errors, pinOf(code.Code)...)
}

func (m *accessCodeDataModel) fillUnmanaged(code *api.UnmanagedAccessCode) {
	*m = accessCodeDataModel{
		Code:      types.StringPointerValue(code.Code),
		IsManaged: types.BoolValue(false),
		Errors:    problemsOf(code.Errors, pinOf(code.Code)...),
		listedAccessCodeModel: listedAccessCodeModel{
			AccessCodeID: types.StringValue(code.AccessCodeID),
			DeviceID:     types.StringValue(code.DeviceID),
			Name:         nameWithoutPIN(code.Name, code.Code),
			Type:         types.StringValue(string(code.Type)),
			Status:       types.StringValue(code.Status),
			StartsAt:     instantOf(code.StartsAt).StringValue,
			EndsAt:       instantOf(code.EndsAt).StringValue,
			CreatedAt:    timestamp(code.CreatedAt),
		},
	}
}

// pinOf returns the PIN that the server has told, if any.
func pinOf(pin *string) []string {
	if pin == nil {
		return nil
	}
	return []string{*pin}
}
