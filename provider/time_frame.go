package provider

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// checkTimeFrame rejects a time frame that ends before it starts.
func checkTimeFrame(startsAt, endsAt instant, diags *diag.Diagnostics) {
	starts, errStarts := time.Parse(time.RFC3339, startsAt.ValueString())
	ends, errEnds := time.Parse(time.RFC3339, endsAt.ValueString())
	if errStarts == nil && errEnds == nil && !ends.After(starts) {
		diagnostics.ErrorAt(diags, path.Root("ends_at"), "Invalid time frame", "The code ends before it starts: "+
			"`ends_at` must be after `starts_at`.")
	}
}

// warnOfLostFrame warns that a code without a configured time frame, as after an import, will open always.
func warnOfLostFrame(diags *diag.Diagnostics, startsAt, endsAt instant, state *accessCodeModel) {
	if !startsAt.IsNull() || !endsAt.IsNull() || state.EndsAt.IsNull() {
		return
	}
	diagnostics.WarningAt(diags, path.Root("ends_at"), "The time frame will be removed", fmt.Sprintf("The code "+
		"opens until %s, and the configuration has no time frame. Applying this plan makes the code open always, "+
		"without an end.\n\nTo keep its end, write its time frame into the configuration:\n\n  starts_at = %q\n  "+
		"ends_at   = %[1]q", state.EndsAt.ValueString(), state.StartsAt.ValueString()))
}

// warnOfEnd warns that the plan creates a code whose time frame is over, which servers reject.
func warnOfEnd(diags *diag.Diagnostics, endsAt instant) {
	if ends, err := time.Parse(time.RFC3339, endsAt.ValueString()); err == nil && !ends.After(time.Now()) {
		diagnostics.WarningAt(
			diags,
			path.Root("ends_at"),
			"The time frame is over",
			"`ends_at` is "+endsAt.ValueString()+", which has passed. Servers do not create a code whose time "+
				"frame is over, so applying this plan will fail.\n\nRemove the code from the configuration, or move "+
				"its time frame.",
		)
	}
}
