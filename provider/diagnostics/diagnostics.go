// Package diagnostics adds errors and warnings to Terraform's output without showing secrets. It must not know
// resources or the API.
//
// The summary of a diagnostic is a fact: what failed, or what is wrong. The detail says why, and what to do last.
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

// CouldNot returns the summary for an action that failed, such as "create access code".
func CouldNot(action string) string { return "Could not " + action }

// Failure adds the error of an action that failed, such as "create access code".
func Failure(diags *diag.Diagnostics, action, detail string) { Error(diags, CouldNot(action), detail) }

// FailureAt is Failure at an attribute.
func FailureAt(diags *diag.Diagnostics, attribute path.Path, action, detail string) {
	ErrorAt(diags, attribute, CouldNot(action), detail)
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
