package provider

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// checkTimeFrame refuses a time frame that ends before it starts.
func checkTimeFrame(startsAt, endsAt instant, diags *diag.Diagnostics) {
	starts, errStarts := time.Parse(time.RFC3339, startsAt.ValueString())
	ends, errEnds := time.Parse(time.RFC3339, endsAt.ValueString())
	if errStarts == nil && errEnds == nil && !ends.After(starts) {
		diagnostics.ErrorAt(diags, path.Root("ends_at"), "Check the time frame", "The code would end before it starts: `ends_at` must be after `starts_at`.")
	}
}

// warnOfLostFrame says of a code whose time frame is left out, as where it was imported, that it will open for ever.
func warnOfLostFrame(diags *diag.Diagnostics, startsAt, endsAt instant, state *accessCodeModel) {
	if !startsAt.IsNull() || !endsAt.IsNull() || state.EndsAt.IsNull() {
		return
	}
	diagnostics.WarningAt(diags, path.Root("ends_at"), "The time frame is taken away", fmt.Sprintf("The code opens until %s, and the configuration has no time frame. Applying this plan makes it open always: it does not end any more.\n\n"+
		"To keep its end, write its time frame into the configuration:\n\n  starts_at = %q\n  ends_at   = %[1]q", state.EndsAt.ValueString(), state.StartsAt.ValueString()))
}

// warnOfEnd says that a code is to be created whose time is over: servers refuse that, and delete those that there are.
func warnOfEnd(diags *diag.Diagnostics, endsAt instant) {
	if ends, err := time.Parse(time.RFC3339, endsAt.ValueString()); err == nil && !ends.After(time.Now()) {
		diagnostics.WarningAt(diags, path.Root("ends_at"), "The time frame is over", "`ends_at` is "+endsAt.ValueString()+", which has passed: no server creates a code whose time is over, so applying this plan will fail.\n\n"+
			"Take it out of the configuration, or move its time frame.")
	}
}
