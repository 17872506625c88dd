package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// readWriteOnly takes the PIN that is written only from the configuration, the one place that has it.
func (m *accessCodeModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

// readWriteOnly takes the PIN that is written only from the configuration, the one place that has it.
func (m *accessCodeSetModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	return readWriteOnly(ctx, config, &m.CodeWO)
}

func readWriteOnly(ctx context.Context, config tfsdk.Config, pin *types.String) diag.Diagnostics {
	diags := config.GetAttribute(ctx, path.Root("code_wo"), pin)
	if !diags.HasError() && pin.ValueString() == "" {
		refuse(&diags, "Check the PIN", "`code_wo` turned out to have no value. Give it one. Without `code_wo` and `code_wo_version` a code that is new gets a PIN that is made for it, "+
			"and one that exists keeps its PIN; either gets into the state.")
	}
	return diags
}

// warnOfReading says of a code whose PIN was written only, and is no longer, that the state has it from then on.
func (m *accessCodeModel) warnOfReading(ctx context.Context, config tfsdk.Config, state *accessCodeModel, diags *diag.Diagnostics) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

// warnOfReading says of a set whose PIN was written only, and is no longer, that the state has it from then on.
func (m *accessCodeSetModel) warnOfReading(ctx context.Context, config tfsdk.Config, state *accessCodeSetModel, diags *diag.Diagnostics) {
	if state.writesOnly() && !m.writesOnly() {
		warnOfReading(ctx, config, diags)
	}
}

func warnOfReading(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var pin types.String
	diags.Append(config.GetAttribute(ctx, path.Root("code"), &pin)...)
	if pin.IsNull() {
		warnAt(diags, path.Root("code"), "The PIN gets into the state", "`code_wo` is taken out, and `code` is not given. The code keeps its PIN, and applying this plan reads it into the state.\n\n"+
			"To keep it out of there, leave `code_wo` and `code_wo_version` as they were. If the PIN was only to be another, give that one.")
	}
}
