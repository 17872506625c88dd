// Package diagnostics adds errors and warnings to Terraform's output without showing secrets. It must not know
// resources or the API.
//
// The summary of a diagnostic names the action, or the check. The detail says what is wrong first and what to do last.
package diagnostics

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// Error adds an error.
func Error(diags *diag.Diagnostics, summary, detail string) { diags.AddError(summary, detail) }

// ErrorAt adds an error at an attribute. Terraform prints the configuration line of that attribute, so ErrorAt leaves
// the attribute out if its line may contain a secret.
func ErrorAt(diags *diag.Diagnostics, attribute path.Path, summary, detail string) {
	if isSecret(attribute) {
		diags.AddError(summary, detail)
		return
	}
	diags.AddAttributeError(attribute, summary, detail)
}

// Warning adds a warning.
func Warning(diags *diag.Diagnostics, summary, detail string) { diags.AddWarning(summary, detail) }

// WarningAt adds a warning at an attribute, or without one if its line may contain a secret.
func WarningAt(diags *diag.Diagnostics, attribute path.Path, summary, detail string) {
	if isSecret(attribute) {
		diags.AddWarning(summary, detail)
		return
	}
	diags.AddAttributeWarning(attribute, summary, detail)
}

// secrets lists the attributes whose configuration lines must not be printed. The URL of a webhook may contain a token.
var secrets = []string{"api_key", "code", "code_wo", "url"}

func isSecret(attribute path.Path) bool { return slices.Contains(secrets, attribute.String()) }
