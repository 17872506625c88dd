package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// report adds the error of an action that failed, such as "create webhook": the detail is the server's message and
// what to do. For each attribute that the server rejects, it adds an error at that attribute.
func report(diags *diag.Diagnostics, action string, err error) {
	reportNext(diags, action, err, nextStep(err))
}

// reportNext is report with the text of what to do next.
func reportNext(diags *diag.Diagnostics, action string, err error, next string) {
	advice := ""
	if next != "" {
		advice = "\n\n" + next
	}
	for _, r := range rejections(err) {
		if at, ok := attributeOf(r.parameter); ok {
			diagnostics.FailureAt(diags, at, action, r.text+advice)
		} else {
			diagnostics.Failure(diags, action, r.text+advice)
		}
	}
}

// rejection is what is wrong with a parameter of a request, or with the request if parameter is empty.
type rejection struct{ parameter, text string }

// rejections splits the error of a server that rejects several parameters. Every other error is one rejection.
func rejections(err error) (all []rejection) {
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok || len(refused.Fields) == 0 {
		parameter := ""
		if ok {
			parameter = parameterOf[refused.Type]
		}
		return []rejection{{parameter, sentence(err.Error())}}
	}
	for _, parameter := range slices.Sorted(maps.Keys(refused.Fields)) {
		one := *refused
		one.Message = fmt.Sprintf("`%s`: %s", parameter, strings.Join(refused.Fields[parameter], "; "))
		text := one.Error()
		if hiding, ok := errors.AsType[*redactedError](err); ok {
			text = api.Redact(text, hiding.secrets...)
		}
		all = append(all, rejection{parameter, sentence(text)})
	}
	if len(all) == 1 {
		all[0].text = sentence(err.Error())
	}
	return all
}

// reportCreate is report for a creation, which may have succeeded although the request failed.
func reportCreate(diags *diag.Diagnostics, action string, err error) {
	next := nextStep(err)
	switch {
	case managedHolder(err) != "":
		next = fmt.Sprintf("The managed access code %s has this PIN. If it is the same code under its former address, "+
			"keep it with a moved block:\n\n  moved {\n    from = deviceaccess_access_code.OLD\n    to   = "+
			"deviceaccess_access_code.NEW\n  }\n\nIf another resource keeps that code, choose another PIN.",
			managedHolder(err))
	case api.MayHaveHappened(err):
		next = uncertainAdvice(
			err,
			"Check the server before you run Terraform again, which would create a second "+
				strings.TrimPrefix(action, "create ")+".",
		)
	}
	reportNext(diags, action, err, next)
}

// reportImport adds the error of an import. It names the identifier, because a plan can have many imports. The hint
// says where identifiers are listed.
func reportImport(diags *diag.Diagnostics, action, kind, id, hint string, err error) {
	named := &explainedError{fmt.Sprintf("the %s %q: %v", kind, id, err), err}
	switch {
	case api.IsNotFound(err):
		diagnostics.Failure(diags, action, fmt.Sprintf("The workspace of the API key has no %s %q. %s", kind, id, hint))
	case api.StatusOf(err) == http.StatusBadRequest:
		reportNext(diags, action, named, "Check the identifier. "+hint)
	default:
		report(diags, action, named)
	}
}

// uncertainAdvice says what to do about a failed creation that may have succeeded: running Terraform again is not
// enough.
func uncertainAdvice(err error, look string) string {
	next := ""
	if !errors.Is(err, context.Canceled) {
		next = nextStep(err) + "\n\n"
	}
	return strings.TrimSpace(next + "The server may have done it. " + look)
}

// hasID returns an error for an answer without an identifier.
func hasID(kind, id string) error {
	if id == "" {
		return &explainedError{"the server's answer contains no " + kind, errNameless}
	}
	return nil
}

var errNameless = errors.New("the server's answer has no identifier")

// sameID returns an error for an answer about another object.
func sameID(kind, got, wanted string) error {
	if got != wanted {
		return fmt.Errorf("the provider requested the %s %s, but the server returned %q", kind, wanted, got)
	}
	return nil
}

// parameters lists request parameters with an attribute of the same name. It leaves out the PIN: Terraform would show
// the configuration line with the PIN.
var parameters = []string{
	"url",
	"event_types",
	"device_id",
	"name",
	"starts_at",
	"ends_at",
	"is_external_modification_allowed",
	"device_type",
	"connected_account_id",
	"search",
	"preferred_code_length",
	"common_code_key",
	"prefer_native_scheduling",
	"accepted_providers",
	"excluded_providers",
	"provider_category",
	"accepted_capabilities",
	"custom_metadata",
	"custom_redirect_url",
	"custom_redirect_failure_url",
	"customer_key",
	"full_name",
	"email_address",
	"phone_number",
	"user_identity_id",
	"user_identity_key",
	"acs_access_group_ids",
	"acs_system_id",
	"auto_lock_delay_seconds",
	"climate_preset_key",
	"climate_preset_mode",
	"connect_webview_id",
	"cooling_set_point_celsius",
	"cooling_set_point_fahrenheit",
	"ends_daily_at",
	"fan_mode_setting",
	"heating_set_point_celsius",
	"heating_set_point_fahrenheit",
	"hvac_mode_setting",
	"is_override_allowed",
	"manufacturer",
	"max_override_period_minutes",
	"noise_threshold_decibels",
	"noise_threshold_nrs",
	"starts_daily_at",
}

// nestedParameters maps the other request parameters to their attributes.
var nestedParameters = map[string]path.Path{
	"use_backup_access_code_pool": path.Root("backup").AtName("use_pool"),
	"is_offline_access_code":      path.Root("offline"),
	"is_one_time_use":             path.Root("offline").AtName("is_one_time_use"),
	"max_time_rounding":           path.Root("offline").AtName("max_time_rounding"),
	"overlap_seconds":             path.Root("overlap"),
}

// attributeOf returns the attribute of a request parameter.
func attributeOf(parameter string) (path.Path, bool) {
	if nested, ok := nestedParameters[parameter]; ok {
		return nested, true
	}
	return path.Root(parameter), slices.Contains(parameters, parameter)
}

// parameterOf maps error types to the parameter that they are about, for servers that do not name it.
var parameterOf = map[string]string{
	"acs_access_group_not_found": "acs_access_group_ids",
	"acs_system_not_found":       "acs_system_id",
	"climate_preset_not_found":   "climate_preset_key",
	"device_not_found":           "device_id",
	"duplicate_climate_preset":   "climate_preset_key",
	"invalid_event_types":        "event_types",
	"user_identity_not_found":    "user_identity_id",
}

// nextStep says what to do about an error, or "" if the error does not show it.
func nextStep(err error) string {
	if errors.Is(err, context.Canceled) {
		return "Terraform was interrupted. Run it again to finish."
	}
	switch status := api.StatusOf(err); {
	case status == http.StatusUnauthorized:
		return "Check " + cmp.Or(credentialOf(err), "`api_key` (or "+envAPIKey+")") + ": the server does not " +
			"accept it. Nothing is removed from the state because of this."
	case status == http.StatusForbidden:
		return "Use an API key with the permission. Nothing is removed from the state because of this."
	case api.IsNotFound(err):
		return "Check the identifier, and that the API key belongs to the right workspace."
	case managedHolder(err) != "":
		return fmt.Sprintf("The managed access code %s has this PIN. Choose another PIN, or change that code first.",
			managedHolder(err))
	case isOfType(err, duplicateCode):
		return "To adopt a code that is already on the lock, import it as `<device_id>/<access_code_id>`: see the " +
			"guide *Adopt existing codes*."
	case hasWrongID(err):
		return "Check the identifier: the data sources deviceaccess_devices and " +
			"deviceaccess_unmanaged_access_codes list identifiers."
	case status == http.StatusProxyAuthRequired:
		return proxyWantsPassword
	case api.IsNoRoute(err):
		return "Check `endpoint` (or " + envEndpoint + "): the server there does not know this operation."
	case status == http.StatusTooManyRequests:
		return "The server limits the rate of requests. Lower the provider's `max_concurrent_requests`, or run " +
			"Terraform again later."
	case status == http.StatusOK || errors.Is(err, errNameless):
		return "Check `endpoint` (or " + envEndpoint + "): the server there does not implement this API."
	case status >= http.StatusInternalServerError:
		return "The server has failed; see its log for the request above. Run Terraform again when the server works."
	}
	return connectionAdvice(err)
}

// credentialOf returns the origin of the rejected credential, if that is known.
func credentialOf(err error) string {
	if refused, ok := errors.AsType[*api.ResponseError](err); ok {
		return refused.CredentialFrom
	}
	return ""
}

// isOfType reports whether the error is a server error of this type.
func isOfType(err error, reason string) bool {
	refused, ok := errors.AsType[*api.ResponseError](err)
	return ok && refused.Type == reason
}

// hasWrongID reports whether the server rejects the format of an identifier.
func hasWrongID(err error) bool {
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok || refused.Status != http.StatusBadRequest {
		return false
	}
	return refused.Fields["device_id"] != nil || refused.Fields["access_code_id"] != nil
}

// redacted removes secrets from the text of an error.
func redacted(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	return &redactedError{err, secrets}
}

type redactedError struct {
	err     error
	secrets []string
}

func (e *redactedError) Error() string { return api.Redact(e.err.Error(), e.secrets...) }
func (e *redactedError) Unwrap() error { return e.err }

// sentence converts an error text to a sentence. A parameter name at the start keeps its spelling.
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
