package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// keepersAttribute is what ties a code to something that no server knows of, such as who lives there. Terraform's own
// replace_triggered_by forgets that a replacement was due when it fails, because what has triggered it is done by then; keepers are in the
// state of the code itself, and so differ until it is replaced.
func keepersAttribute() schema.MapAttribute {
	return schema.MapAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: "Values of your own, such as a tenant or a month, with which the code is to be replaced: other ones make a new code and delete the old one, also " +
			"in a later apply where the first has failed. So does a value that is not known yet when it is planned. They are in the state only, and shown in plans. The first ones that a code is " +
			"given which exists, or was imported, are only taken down, and leaving all out forgets them; those that are null are none.",
		PlanModifiers: []planmodifier.Map{replacesTheKept{}},
	}
}

// noKeepers is the value of a code that has none, where there is no state to take it from.
var noKeepers = types.MapNull(types.StringType)

// replacesTheKept replaces a code whose keepers change.
type replacesTheKept struct{}

func (replacesTheKept) Description(context.Context) string {
	return "Changing it makes another, unless there was none before or is none any more."
}
func (m replacesTheKept) MarkdownDescription(c context.Context) string { return m.Description(c) }

func (replacesTheKept) PlanModifyMap(_ context.Context, req planmodifier.MapRequest, resp *planmodifier.MapResponse) {
	resp.RequiresReplace = !req.State.Raw.IsNull() && isKeptNoLonger(req.StateValue, req.PlanValue)
}

// isKeptNoLonger says whether these keepers call for another code. Those that are null are none.
func isKeptNoLonger(state, plan types.Map) bool {
	if plan.IsUnknown() {
		return len(keepersIn(state)) > 0
	}
	before, after := keepersIn(state), keepersIn(plan)
	return len(before) > 0 && len(after) > 0 && !maps.EqualFunc(before, after, attr.Value.Equal)
}

func keepersIn(keepers types.Map) map[string]attr.Value {
	all := maps.Clone(keepers.Elements())
	maps.DeleteFunc(all, func(_ string, v attr.Value) bool { return v.IsNull() })
	return all
}
