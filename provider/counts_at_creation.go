package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Some settings count only when something is created, and servers tell most of them nobody afterwards. Changing one makes
// another; but what was imported lacks them in the state because nobody knows them, and is not replaced for that.

// importedKey is where a resource's private state keeps that it was imported.
const importedKey = "imported"

// noteImport notes that nobody knows what the resource was created with, and nobody ever will: a setting that is applied later is in the state
// from then on.
func noteImport(ctx context.Context, private privateState) diag.Diagnostics {
	return private.SetKey(ctx, importedKey, []byte("true"))
}

func wasImported(ctx context.Context, private privateState, diags *diag.Diagnostics) bool {
	imported, problems := private.GetKey(ctx, importedKey)
	diags.Append(problems...)
	return string(imported) == "true"
}

// countsAtCreation replaces a resource when a setting changes that counts only when it is created. Null is the same as
// the value that servers take by default.
type countsAtCreation struct{ byDefault attr.Value }

func (countsAtCreation) Description(context.Context) string {
	return "Changing it makes another, unless it is null because of an import."
}
func (m countsAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (m countsAtCreation) PlanModifyBool(ctx context.Context, req planmodifier.BoolRequest, resp *planmodifier.BoolResponse) {
	resp.RequiresReplace = m.replaces(ctx, req.Path, req.State, req.StateValue, req.PlanValue, req.Private, &resp.Diagnostics)
}

func (m countsAtCreation) PlanModifyInt64(ctx context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response) {
	resp.RequiresReplace = m.replaces(ctx, req.Path, req.State, req.StateValue, req.PlanValue, req.Private, &resp.Diagnostics)
}

func (m countsAtCreation) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	resp.RequiresReplace = m.replaces(ctx, req.Path, req.State, req.StateValue, req.PlanValue, req.Private, &resp.Diagnostics)
}

func (m countsAtCreation) PlanModifySet(ctx context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse) {
	resp.RequiresReplace = m.replaces(ctx, req.Path, req.State, req.StateValue, req.PlanValue, req.Private, &resp.Diagnostics)
}

func (m countsAtCreation) replaces(ctx context.Context, at path.Path, all tfsdk.State, state, plan attr.Value, private privateState, diags *diag.Diagnostics) bool {
	if all.Raw.IsNull() || !m.differs(state, plan) {
		return false
	}
	if imported := wasImported(ctx, private, diags); !imported || !state.IsNull() {
		return true
	}
	warnAt(diags, at, "Setting that counts at creation only",
		fmt.Sprintf("Servers do not tell `%s` of what they have, so it is not known whether what was imported was created with it. Applying this plan takes it "+
			"down in the state and changes nothing on the server. To have one that was created so for certain, use `terraform apply -replace`.", at))
	return false
}

func (m countsAtCreation) differs(state, plan attr.Value) bool { return !m.or(plan).Equal(m.or(state)) }

func (m countsAtCreation) or(value attr.Value) attr.Value {
	if value.IsNull() && m.byDefault != nil {
		return m.byDefault
	}
	return value
}

// keptOr plans, where nothing is configured, what the state has, and the value that servers take by default where it
// has nothing.
type keptOr struct{ byDefault bool }

func (keptOr) Description(context.Context) string             { return "It stays as it is, unless configured." }
func (m keptOr) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (m keptOr) PlanModifyBool(_ context.Context, req planmodifier.BoolRequest, resp *planmodifier.BoolResponse) {
	switch {
	case !req.ConfigValue.IsNull():
	case req.StateValue.IsNull():
		resp.PlanValue = types.BoolValue(m.byDefault)
	default:
		resp.PlanValue = req.StateValue
	}
}

// kept plans, where nothing is configured, what the state has, also where that is nothing.
type kept struct{}

func (kept) Description(context.Context) string             { return "It stays as it is, unless configured." }
func (m kept) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (kept) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

// keptAfterImport plans null where nothing is configured; but after an import what the state has, which the server may
// have chosen.
type keptAfterImport struct{}

func (keptAfterImport) Description(context.Context) string {
	return "What an import has found stays, unless configured."
}
func (m keptAfterImport) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (keptAfterImport) PlanModifySet(ctx context.Context, req planmodifier.SetRequest, resp *planmodifier.SetResponse) {
	switch {
	case !req.ConfigValue.IsNull():
	case !req.State.Raw.IsNull() && wasImported(ctx, req.Private, &resp.Diagnostics):
		resp.PlanValue = req.StateValue
	default:
		resp.PlanValue = types.SetNull(types.StringType)
	}
}
