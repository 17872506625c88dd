package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
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
		PlanModifiers: []planmodifier.Map{planmodifiers.Keepers{}},
	}
}

// noKeepers is the value of a code that has none, where there is no state to take it from.
var noKeepers = types.MapNull(types.StringType)
