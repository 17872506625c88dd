package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

// keepersAttribute returns the attribute that ties a code to values unknown to the server, such as the tenant.
// Terraform's replace_triggered_by forgets a replacement that failed, because its trigger has already been applied.
// Keepers are in the state of the code itself, so they differ until the code is replaced.
func keepersAttribute() schema.MapAttribute {
	return schema.MapAttribute{
		Optional:    true,
		ElementType: types.StringType,
		MarkdownDescription: "Your own values, such as a tenant or a month. A change replaces the code, in a later " +
			"apply if the first one fails. A value that is not known until apply may only turn out to be the same. " +
			"The values are in the state only, and plans show them. Adding the first keepers to an existing code " +
			"and removing all of them replace nothing. Null values do not count.",
		PlanModifiers: []planmodifier.Map{planmodifiers.Keepers{}},
	}
}

// noKeepers is the value of keepers without a state.
var noKeepers = types.MapNull(types.StringType)
