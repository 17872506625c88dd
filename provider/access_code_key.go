package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// sharesAtCreation replaces a code when its common_code_key changes, which it is created with. One that was there before
// Terraform, or is not managed, has none and gets none: making another would take its PIN off the lock.
type sharesAtCreation struct{}

func (sharesAtCreation) Description(context.Context) string {
	return "Changing it makes another, unless it is null because of an import or because the code is unmanaged."
}
func (m sharesAtCreation) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (sharesAtCreation) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() || req.PlanValue.Equal(req.StateValue) {
		return
	}
	var managed types.Bool
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("is_managed"), &managed)...)
	adopted := !managed.ValueBool() || wasImported(ctx, req.Private, &resp.Diagnostics)
	switch {
	case !req.StateValue.IsNull() || !adopted:
		resp.RequiresReplace = true
	case managed.ValueBool(): // else the conversion warns
		warnAt(&resp.Diagnostics, req.Path, sharesNoLonger, lostKey)
	}
}

// What is said of a code that is to have a key and has none.
const (
	sharesNoLonger = "The code shares no PIN"
	lostKey        = "Codes get their `common_code_key` when they are created, and lose it when they are no longer managed. This one keeps its PIN, but does not share it with " +
		"the other codes of the key: applying this plan takes the key down in the state only. For a code that shares it, use `terraform apply -replace`, which takes the PIN off " +
		"the lock in between."
)
