package provider

import (
	"context"

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
			"given which exists, or was imported, are only taken down, and leaving all out forgets them.",
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

// isKeptNoLonger says whether these keepers call for another code.
func isKeptNoLonger(state, plan types.Map) bool {
	return !state.IsNull() && !plan.IsNull() && !plan.Equal(state)
}
