package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

var _ ephemeral.EphemeralResourceWithConfigure = (*ephemeralAccessCode)(nil)

type ephemeralAccessCode struct{ connectedEphemeralResource }

func newEphemeralAccessCode() ephemeral.EphemeralResource { return &ephemeralAccessCode{} }

type ephemeralAccessCodeModel struct {
	AccessCodeID types.String `tfsdk:"access_code_id"`
	DeviceID     types.String `tfsdk:"device_id"`
	Name         types.String `tfsdk:"name"`
	Code         types.String `tfsdk:"code"`
	Status       types.String `tfsdk:"status"`
	IsManaged    types.Bool   `tfsdk:"is_managed"`
	StartsAt     types.String `tfsdk:"starts_at"`
	EndsAt       types.String `tfsdk:"ends_at"`
}

// fill copies a managed code.
func (m *ephemeralAccessCodeModel) fill(code *api.AccessCode) {
	*m = ephemeralAccessCodeModel{
		AccessCodeID: types.StringValue(code.AccessCodeID),
		DeviceID:     types.StringValue(code.DeviceID),
		Name:         types.StringPointerValue(code.Name),
		Code:         types.StringPointerValue(code.Code),
		Status:       types.StringValue(string(code.Status)),
		IsManaged:    types.BoolValue(true),
		StartsAt:     instantOf(code.StartsAt).StringValue,
		EndsAt:       instantOf(code.EndsAt).StringValue,
	}
}

// fillUnmanaged copies an unmanaged code.
func (m *ephemeralAccessCodeModel) fillUnmanaged(code *api.UnmanagedAccessCode) {
	*m = ephemeralAccessCodeModel{
		AccessCodeID: types.StringValue(code.AccessCodeID),
		DeviceID:     types.StringValue(code.DeviceID),
		Name:         types.StringPointerValue(code.Name),
		Code:         types.StringPointerValue(code.Code),
		Status:       types.StringValue(code.Status),
		IsManaged:    types.BoolValue(false),
		StartsAt:     instantOf(code.StartsAt).StringValue,
		EndsAt:       instantOf(code.EndsAt).StringValue,
	}
}

func (e *ephemeralAccessCode) Metadata(
	_ context.Context,
	req ephemeral.MetadataRequest,
	resp *ephemeral.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_access_code"
}

func (e *ephemeralAccessCode) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the PIN of an access code, to pass it to a write-only argument, such as that " +
			"of a secret manager. Neither the plan nor the state contains the PIN. Requires Terraform 1.10 or newer.",
		Attributes: map[string]schema.Attribute{
			"access_code_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The identifier of the access code.",
				Validators:          []validator.String{validators.Identifier{Hint: "Name an access code."}},
			},
			"device_id": schema.StringAttribute{
				Optional:   true,
				Computed:   true,
				Validators: []validator.String{validators.Identifier{Hint: "Name a lock, or leave it out."}},
				MarkdownDescription: "The lock that holds the code. Only needed for an unmanaged code on a server " +
					"that reads unmanaged codes by lock.",
			},
			"code": schema.StringAttribute{
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The PIN. Reading fails if the server does not return the PIN, as for " +
					"SmartThings locks.",
			},
			"name":   text("The name of the code. Null if the lock stores none."),
			"status": text("The state of the code on its lock, such as `set`."),
			"is_managed": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the workspace manages " +
				"the code."},
			"starts_at": text("From when the code opens the lock. Null if always."),
			"ends_at":   text("Until when the code opens the lock. Null if always."),
		},
	}
}

func (e *ephemeralAccessCode) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	const action = "read the PIN of an access code"
	var model ephemeralAccessCodeModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	client := e.client(req, resp)
	if client == nil || resp.Diagnostics.HasError() {
		return
	}
	id, device := model.AccessCodeID.ValueString(), model.DeviceID
	managed, unmanaged, err := findCode(ctx, client, model.DeviceID.ValueString(), id)
	switch {
	case err != nil:
		report(&resp.Diagnostics, action, err)
		return
	case managed != nil:
		model.fill(managed)
	case unmanaged != nil:
		model.fillUnmanaged(unmanaged)
	default:
		diagnostics.Failure(
			&resp.Diagnostics,
			action,
			"The workspace of the API key has no access code "+id+", neither managed nor unmanaged. Check "+
				"`access_code_id`.",
		)
		return
	}
	if !device.IsNull() && !device.Equal(model.DeviceID) {
		diagnostics.Failure(&resp.Diagnostics, action, fmt.Sprintf("The code %s is on the device %s. Correct "+
			"`device_id`, or leave it out.", id, model.DeviceID.ValueString()))
		return
	}
	if model.Code.IsNull() {
		diagnostics.Failure(
			&resp.Diagnostics,
			action,
			"The server does not return the PIN of the access code "+id+": the vendor hides it, or the lock has "+
				"not chosen one yet. Give the code a PIN of your own with `code` or `code_wo`.",
		)
		return
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, &model)...)
}
