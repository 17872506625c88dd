package devicecloud

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// wireError is the guide's error response. The last two fields are extensions of package sandbox.
type wireError struct {
	ErrorCode    string `json:"error_code"`
	Message      string `json:"message"`
	Conflict     string `json:"conflicting_access_code_id"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// classes maps the known error codes: those of the guide (DEVICE_OFFLINE, PIN_CONFLICT, LOCK_JAMMED, BOLT_OBSTRUCTED)
// and of package sandbox.
var classes = map[string]adapter.Class{
	"UNAUTHORIZED":              adapter.AuthRevoked,
	"DEVICE_OFFLINE":            adapter.Offline,
	"PIN_CONFLICT":              adapter.Duplicate,
	"DEVICE_FULL":               adapter.Full,
	"INVALID_PIN":               adapter.Invalid,
	"INVALID_NAME":              adapter.Invalid,
	"INVALID_TIME_FRAME":        adapter.Invalid,
	"INVALID_REQUEST":           adapter.Invalid,
	"INVALID_SETTING":           adapter.Invalid,
	"LOCK_NOT_FOUND":            adapter.NotFound,
	"ACCESS_CODE_NOT_FOUND":     adapter.NotFound,
	"NOISE_THRESHOLD_NOT_FOUND": adapter.NotFound,
	"NOT_SUPPORTED":             adapter.NotSupported,
	"SUBSCRIPTION_REQUIRED":     adapter.Transient, // until the plan is paid
	"DEVICE_BUSY":               adapter.Transient,
	"DEVICE_ERROR":              adapter.Transient,
	"LOCK_JAMMED":               adapter.Transient,
	"BOLT_OBSTRUCTED":           adapter.Transient,
	"RATE_LIMITED":              adapter.Transient,
	"SERVICE_UNAVAILABLE":       adapter.Transient,
}

// classify returns the error of a response other than 2xx. A status code from a proxy (HTML in place of JSON) is a
// weak signal: such a 404, 403, or 400 is Transient, because otherwise a wrong route would make every device look
// removed. After 502, 504, 408, or Cloudflare's 520 to 529, the outcome of a write is unknown; for calls with once,
// so it is after 500.
func (a *Adapter) classify(c call, resp *http.Response, data []byte) error {
	var w wireError
	ours := json.Unmarshal(data, &w) == nil || len(data) == 0
	class, known := classes[w.ErrorCode]
	if !known {
		class = classOfStatus(c, resp.StatusCode, ours)
	}
	if class == adapter.Invalid && !c.writes() {
		class = adapter.Transient
	}
	message := "the vendor answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if w.Message != "" {
		message = w.Message
	}
	e := a.failure(class, message)
	e.RetryAfter = retryAfter(resp, w)
	e.Conflict = adapter.CodeRef(w.Conflict)
	a.log.Debug("the vendor refused", "method", c.method, "path", c.path, "status", resp.StatusCode, "class", class)
	return e
}

func classOfStatus(c call, status int, ours bool) adapter.Class {
	switch status {
	case http.StatusUnauthorized:
		return adapter.AuthRevoked
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		if !ours { // otherwise a proxy's error would make the caller give up a code
			return adapter.Transient
		}
		return adapter.Invalid
	case http.StatusNotImplemented:
		return adapter.NotSupported
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout:
		return c.unknownOutcomeClass()
	}
	switch {
	case status/10 == 52, c.once && status == http.StatusInternalServerError:
		return c.unknownOutcomeClass()
	case c.control && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		return adapter.NotSupported
	case !ours:
		return adapter.Transient
	case status == http.StatusForbidden && c.account:
		return adapter.AuthRevoked
	case status == http.StatusForbidden, status == http.StatusMethodNotAllowed:
		return adapter.NotSupported
	case (status == http.StatusNotFound || status == http.StatusGone) && !c.account:
		return adapter.NotFound
	default:
		return adapter.Transient
	}
}

// maxRetryAfter bounds the wait that a vendor may request.
const maxRetryAfter = time.Hour

// retryAfter returns the wait that the vendor requests. The body's retry_after_ms takes precedence because it is more
// precise. Retry-After is read in both forms (RFC 9110 section 10.2.3), a date relative to the response's Date.
func retryAfter(resp *http.Response, w wireError) time.Duration {
	wait := time.Duration(min(w.RetryAfterMS, maxRetryAfter.Milliseconds())) * time.Millisecond
	header := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil && wait <= 0 {
		wait = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil && wait <= 0 {
		now, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// digits matches numbers that are long enough to be a PIN.
var digits = regexp.MustCompile(`[0-9]{4,}`)

// hidden returns what a vendor's message must not show: PINs, and the secret in the path of the push URL.
func hidden(pushURL string) []*regexp.Regexp {
	all := []*regexp.Regexp{digits}
	if u, err := url.Parse(pushURL); err == nil && len(u.Path) > 1 {
		all = append([]*regexp.Regexp{regexp.MustCompile(regexp.QuoteMeta(u.Path))}, all...)
	}
	return all
}

// failure returns an error with the vendor's message, sanitized for display.
func (a *Adapter) failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.SafeMessage(message, a.token, a.hidden...))
}
