package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// report adds what kept an action from being done: the summary is the action, the detail what the server says
// and what can be done about it. It points to the attribute that the server complains about.
func report(diags *diag.Diagnostics, action string, err error) {
	reportNext(diags, action, err, nextStep(err))
}

// reportNext is report for those who know better what to do next.
func reportNext(diags *diag.Diagnostics, action string, err error, next string) {
	detail := sentence(err.Error())
	if next != "" {
		detail += "\n\n" + next
	}
	if field, ok := blamed(err); ok {
		diagnostics.ErrorAt(diags, path.Root(field), action, detail)
		return
	}
	diagnostics.Error(diags, action, detail)
}

// reportCreate is report for a request that creates something, which may have happened although it failed.
func reportCreate(diags *diag.Diagnostics, action string, err error) {
	next := nextStep(err)
	if api.MayHaveHappened(err) {
		next = inDoubt(err, "Look there before running Terraform again, which would create a second "+strings.ToLower(strings.TrimPrefix(action, "Create "))+".")
	}
	reportNext(diags, action, err, next)
}

// inDoubt is what can be done about the failure of a creation that may have happened, so that running Terraform again alone
// is not what helps.
func inDoubt(err error, look string) string {
	next := ""
	if !errors.Is(err, context.Canceled) {
		next = nextStep(err) + "\n\n"
	}
	return strings.TrimSpace(next + "It is not known whether the server has done it. " + look)
}

// warnInterrupted says that Terraform was interrupted while it waited for a lock. It is no error: that would taint the
// code, and the next apply would replace it for nothing.
func warnInterrupted(diags *diag.Diagnostics, action, id string) {
	diagnostics.Warning(diags, action, "Terraform was interrupted while it waited for the lock to take the access code "+id+". The code is in the state, and the "+
		"server keeps trying; the next plan shows its status.")
}

// hasID guards against an answer that names nothing.
func hasID(kind, id string) error {
	if id == "" {
		return &explained{"the server's answer names no " + kind, errNameless}
	}
	return nil
}

var errNameless = errors.New("the server's answer names nothing")

// sameID guards against an answer about something else.
func sameID(kind, got, wanted string) error {
	if got != wanted {
		return fmt.Errorf("the server was asked for the %s %s but answered with %q", kind, wanted, got)
	}
	return nil
}

// parameters of requests that are attributes of the same name. The PIN is left out: Terraform shows the line of
// the configuration that an error points to, and the PIN may stand in it.
var parameters = []string{
	"url", "event_types", "device_id", "name", "starts_at", "ends_at", "is_external_modification_allowed",
	"device_type", "connected_account_id", "search", "preferred_code_length", "common_code_key", "prefer_native_scheduling",
	"use_backup_access_code_pool", "is_offline_access_code", "is_one_time_use", "max_time_rounding", "accepted_providers", "excluded_providers",
	"provider_category", "accepted_capabilities", "custom_metadata", "custom_redirect_url", "custom_redirect_failure_url", "customer_key",
}

// parameterOf is what an error of this type is about, where the server does not name it.
var parameterOf = map[string]string{"device_not_found": "device_id", "invalid_event_types": "event_types"}

// blamed is the attribute that the server complains about, if it names exactly one.
func blamed(err error) (string, bool) {
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok {
		return "", false
	}
	if field := parameterOf[refused.Type]; field != "" && len(refused.Fields) == 0 {
		return field, true
	}
	if len(refused.Fields) != 1 {
		return "", false
	}
	for field := range refused.Fields {
		return field, slices.Contains(parameters, field)
	}
	return "", false
}

// nextStep is what can be done about an error, as far as the error alone tells.
func nextStep(err error) string {
	if errors.Is(err, context.Canceled) {
		return "Terraform was interrupted. Run it again: it finishes what is left."
	}
	switch status := api.StatusOf(err); {
	case status == http.StatusUnauthorized:
		return "Check " + cmp.Or(credentialOf(err), "`api_key` (or "+envAPIKey+")") + ": the server does not accept it. Nothing is taken to be deleted because of this."
	case status == http.StatusForbidden:
		return "Use an API key that may do this. Nothing is taken to be deleted because of this."
	case api.IsNotFound(err):
		return "Check the identifier, and that the API key belongs to the workspace it is in."
	case isOfType(err, "duplicate_access_code"):
		return "To take over a code that is on the lock already, import it as `<device_id>/<access_code_id>`: see the guide *Adopt existing codes*."
	case hasWrongID(err):
		return "Check the identifier: the data sources deviceaccess_devices and deviceaccess_unmanaged_access_codes list those there are."
	case status == http.StatusProxyAuthRequired:
		return proxyWantsPassword
	case api.IsNoRoute(err):
		return "Check `endpoint` (or " + envEndpoint + "): what answers there does not know this operation."
	case status == http.StatusTooManyRequests:
		return "The server asks to be asked less often. Lower the provider's `max_concurrent_requests`, or run Terraform again later."
	case status == http.StatusOK || errors.Is(err, errNameless):
		return "Check `endpoint` (or " + envEndpoint + "): what answers there does not speak this API."
	case status >= http.StatusInternalServerError:
		return "The server has failed; its log tells more under the request above. Run Terraform again when it is well."
	}
	return connectionAdvice(err)
}

// credentialOf is where the credential comes from that a server has refused, if that is known.
func credentialOf(err error) string {
	if refused, ok := errors.AsType[*api.ResponseError](err); ok {
		return refused.CredentialFrom
	}
	return ""
}

// isOfType says that a server has refused something for this reason.
func isOfType(err error, reason string) bool {
	refused, ok := errors.AsType[*api.ResponseError](err)
	return ok && refused.Type == reason
}

// hasWrongID says that the server refuses an identifier for its shape.
func hasWrongID(err error) bool {
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok || refused.Status != http.StatusBadRequest {
		return false
	}
	return refused.Fields["device_id"] != nil || refused.Fields["access_code_id"] != nil
}

// hiding takes secrets out of the text of an error.
func hiding(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	return &hidden{err, secrets}
}

type hidden struct {
	err     error
	secrets []string
}

func (e *hidden) Error() string { return api.Redact(e.err.Error(), e.secrets...) }
func (e *hidden) Unwrap() error { return e.err }

// sentence makes a sentence of an error's text. A parameter that it begins with keeps its spelling.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if first, size := utf8.DecodeRuneInString(text); !strings.Contains(word, "_") {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
