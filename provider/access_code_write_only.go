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
		refuse(&diags, "Check the PIN", "`code_wo` turned out to have no value. Give it one, or leave `code_wo` and `code_wo_version` out: then the server makes a PIN.")
	}
	return diags
}
