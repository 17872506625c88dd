package seam

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
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
func (a *Adapter) classify(c call, resp *http.Response, data []byte) error {
	var w wireError
	ours := json.Unmarshal(data, &w) == nil && w.Error.Type != ""
	class, known := classes[w.Error.Type]
	if resp.StatusCode == http.StatusUnauthorized {
		class = adapter.AuthRevoked
	} else if !known {
		class = classOfStatus(c, resp.StatusCode, ours)
	}
	switch {
	case class != adapter.Invalid || c.write:
	case strings.HasSuffix(c.path, "/get"): // it is no identifier of this server
		class = adapter.NotFound
	default:
		class = adapter.Transient
	}
	message := "the server answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if w.Error.Message != "" {
		message = w.Error.Message
	}
	e := a.failure(class, message)
	e.RetryAfter = retryAfter(resp)
	a.slog.Debug("the upstream server refused", "path", c.path, "status", resp.StatusCode, "class", class)
	return e
}

func classOfStatus(c call, status int, ours bool) adapter.Class {
	switch status {
	case http.StatusNotImplemented:
		return adapter.NotSupported
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return c.unknownOutcomeClass()
	}
	switch {
	case status/10 == 52: // Cloudflare's
		return c.unknownOutcomeClass()
	case !ours:
		return adapter.Transient
	case status == http.StatusBadRequest:
		return adapter.Invalid
	case status == http.StatusForbidden:
		return adapter.NotSupported
	default:
		return adapter.Transient
	}
}

// maxRetryAfter bounds the wait that a server may request.
const maxRetryAfter = time.Hour

// retryAfter returns the wait that the server requests, in both forms of RFC 9110, section 10.2.3. Without one, 429
// means a part of the minute that the limits of the hosted API count.
func retryAfter(resp *http.Response) time.Duration {
	header := resp.Header.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at)
	}
	if wait <= 0 && resp.StatusCode == http.StatusTooManyRequests {
		wait = window / 10
	}
	return min(max(wait, 0), maxRetryAfter)
}

// hidden matches numbers that are long enough to be a PIN.
var hidden = regexp.MustCompile(`[0-9]{4,}`)

// failure returns an error with the server's message, sanitized for display.
func (a *Adapter) failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.SafeMessage(message, a.key, hidden))
}

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
		failed := a.failure(class, cmp.Or(e.Message, "the device did not take the code"))
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
	return a.failure(class, cmp.Or(e.Message, "the server could not do it"))
}

// isJam reports whether an attempt failed because the bolt is blocked.
func (e wireAttemptError) isJam() bool { return strings.Contains(e.Type, "jam") }
