package seam

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// wireError is an error response.
type wireError struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

// classes maps types of errors, of action attempts, and error codes of access codes. The published description names
// most of them; a server of the same API may use the others.
var classes = map[string]adapter.Class{
	"device_offline":      adapter.Offline,
	"device_disconnected": adapter.Offline,
	"hub_disconnected":    adapter.Offline,
	"bridge_disconnected": adapter.Offline,
	// The account of one brand is disconnected upstream. The upstream account itself works.
	"account_disconnected":         adapter.Offline,
	"dormakaba_sites_disconnected": adapter.Offline,
	"missing_device_credentials":   adapter.Offline,

	// The workspace is its own upstream.
	"upstream_loop": adapter.GatewayDown,

	"device_not_found":      adapter.NotFound,
	"device_removed":        adapter.NotFound,
	"access_code_not_found": adapter.NotFound,

	"duplicate_access_code":    adapter.Duplicate,
	"duplicate_code_on_device": adapter.Duplicate,

	"no_space_for_access_code_on_device":   adapter.Full,
	"salto_ks_subscription_limit_exceeded": adapter.Full,
	"salto_site_user_limit_reached":        adapter.Full,

	"invalid_input":             adapter.Invalid,
	"code_constraints_violated": adapter.Invalid,
	"access_code_inactive":      adapter.Invalid,

	"device_type_not_supported":           adapter.NotSupported,
	"insufficient_permissions":            adapter.NotSupported,
	"cannot_be_managed":                   adapter.NotSupported,
	"cannot_delete_unmanaged_access_code": adapter.NotSupported,
	"device_unmanaged":                    adapter.NotSupported,

	"failed_to_set_on_device":           adapter.Unconfirmed,
	"failed_to_issue":                   adapter.Unconfirmed,
	"failed_to_update":                  adapter.Unconfirmed,
	"action_attempt_expired":            adapter.Unconfirmed,
	"conflicting_external_modification": adapter.Transient,
	"provider_issue":                    adapter.Transient,
	"subscription_required":             adapter.Transient, // until the plan is paid
	"access_code_being_deleted":         adapter.Transient,
	"idempotency_key_in_use":            adapter.Transient,
	"too_many_requests":                 adapter.Transient,
	"service_unavailable":               adapter.Transient,
}

// classify returns the error of a response other than 2xx. A response without the JSON of the API comes from a proxy:
// its 400, 403, or 404 is Transient, because otherwise a wrong route would make every device look removed.
func (a *Adapter) classify(c vendorhttp.Call, r vendorhttp.Response) error {
	var w wireError
	ours := json.Unmarshal(r.Data, &w) == nil && w.Error.Type != ""
	e := a.client.Refusal(c, r, w.Error.Message)
	class, known := classes[w.Error.Type]
	switch {
	case r.Status == http.StatusUnauthorized:
	case known:
		e.Class = class
	case ours && r.Status == http.StatusBadRequest:
		e.Class = adapter.Invalid
	case ours && r.Status == http.StatusForbidden:
		e.Class = adapter.NotSupported
	}
	switch {
	case e.Class != adapter.Invalid || c.Write:
	case strings.HasSuffix(c.Path, "/get"): // it is no identifier of this server
		e.Class = adapter.NotFound
	default:
		e.Class = adapter.Transient
	}
	if r.Status == http.StatusTooManyRequests {
		e.RetryAfter = cmp.Or(e.RetryAfter, limitPause)
	}
	a.slog.Debug("the upstream server refused", "path", c.Path, "status", r.Status, "class", e.Class)
	return e
}

// limitPause is the wait after a 429 without Retry-After: a part of the minute that the limits of the hosted API count.
const limitPause = window / 10

// codeError returns the error of an access code, or nil. Errors about its device or its account do not mean that the
// server has given up the code.
func (a *Adapter) codeError(errors []wireProblem) *adapter.Error {
	for _, e := range errors {
		class, known := classes[e.Code]
		switch {
		case !known:
			class = adapter.Transient
		case class == adapter.Offline, class == adapter.NotFound:
			continue
		}
		if e.Code == "failed_to_remove_from_device" {
			continue
		}
		failed := a.client.Failure(class, cmp.Or(e.Message, "the device did not take the code"))
		failed.Conflict = adapter.CodeRef(cmp.Or(e.ManagedCodeID, e.UnmanagedCodeID))
		return failed
	}
	return nil
}

// attemptError returns the error of a failed action attempt.
func (a *Adapter) attemptError(attempt wireAttempt) *adapter.Error {
	e := wireAttemptError{}
	if attempt.Error != nil {
		e = *attempt.Error
	}
	class, known := classes[e.Type]
	if !known {
		class = adapter.Unconfirmed
	}
	return a.client.Failure(class, cmp.Or(e.Message, "the server could not do it"))
}

// isJam reports whether an attempt failed because the bolt is blocked.
func (e wireAttemptError) isJam() bool { return strings.Contains(e.Type, "jam") }
