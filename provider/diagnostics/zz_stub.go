package diagnostics

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// FailureAt is Failure at an attribute.
func FailureAt(diags *diag.Diagnostics, attribute path.Path, action, detail string) {
	ErrorAt(diags, attribute, "Could not "+action, detail)
}
