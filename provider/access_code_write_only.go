package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// readWriteOnly takes the PIN that is written only from the configuration, the one place that has it.
func (m *accessCodeModel) readWriteOnly(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if !m.writesOnly() {
		return nil
	}
	diags := config.GetAttribute(ctx, path.Root("code_wo"), &m.CodeWO)
	if !diags.HasError() && m.CodeWO.ValueString() == "" {
		refuse(&diags, "Check the PIN", "`code_wo` turned out to have no value. Give it one, or leave `code_wo` and `code_wo_version` out: then the server makes a PIN.")
	}
	return diags
}
