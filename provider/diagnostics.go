package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
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
		diags.AddAttributeError(path.Root(field), action, detail)
		return
	}
	diags.AddError(action, detail)
}

// reportCreate is report for a request that creates something, which may have happened although it failed.
func reportCreate(diags *diag.Diagnostics, action string, err error) {
	next := nextStep(err)
	if mayHaveHappened(err) {
		next = strings.TrimSpace(next + "\n\nIt is not known whether the server has done it, and it was not asked twice. " +
			"Look there before running Terraform again, which would create another.")
	}
	reportNext(diags, action, err, next)
}

// mayHaveHappened says of a failed request that the server may have carried it out.
func mayHaveHappened(err error) bool {
	if status := api.StatusOf(err); status != 0 {
		return status/100 != 4 && status/100 != 3 && status != http.StatusServiceUnavailable
	}
	return !notConnected(err)
}

// notConnected says that no connection was made over which the request could have gone.
func notConnected(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	broken, ok := errors.AsType[*net.OpError](err)
	return ok && broken.Op == "dial"
}

// hasID guards against an answer that names nothing.
func hasID(kind, id string) error {
	if id == "" {
		return fmt.Errorf("the server's answer names no %s", kind)
	}
	return nil
}

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
	"device_type", "connected_account_id", "search",
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
		return ""
	}
	switch status := api.StatusOf(err); {
	case status == http.StatusUnauthorized:
		return "Check `api_key` (or " + envAPIKey + "): the server does not accept it. Nothing is taken to be deleted because of this."
	case status == http.StatusForbidden:
		return "Use an API key that may do this. Nothing is taken to be deleted because of this."
	case api.IsNotFound(err):
		return "Check the identifier, and that the API key belongs to the workspace it is in."
	case hasWrongID(err):
		return "Check the identifier: the data sources deviceaccess_devices and deviceaccess_unmanaged_access_codes list those there are."
	case api.IsNoRoute(err):
		return "Check `endpoint` (or " + envEndpoint + "): what answers there does not know this operation."
	case status == http.StatusTooManyRequests:
		return "The server asks to be asked less often. Run Terraform again with a lower -parallelism, or later."
	case status >= http.StatusInternalServerError:
		return "The server has failed; its log tells more under the request above. Run Terraform again when it is well."
	}
	if notConnected(err) {
		return "Check that the server is running, and that `endpoint` (or " + envEndpoint + ") is its address."
	}
	return ""
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
