package provider

import (
	"context"
	"fmt"

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

// pinInDoubtKey is where the private state of a resource keeps that a change of it failed. Then nobody can tell which PIN the server has: the next
// apply writes that of its configuration, also where it went back to the version that the state has.
const pinInDoubtKey = "pin_in_doubt"

func doubtPIN(ctx context.Context, private privateState, so bool) diag.Diagnostics {
	return private.SetKey(ctx, pinInDoubtKey, fmt.Append(nil, so))
}

func doubtsPIN(ctx context.Context, private privateState, diags *diag.Diagnostics) bool {
	so, problems := private.GetKey(ctx, pinInDoubtKey)
	diags.Append(problems...)
	return string(so) == "true"
}
