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

// wireError is the guide's error answer. The last two fields are package sandbox's.
type wireError struct {
	ErrorCode    string `json:"error_code"`
	Message      string `json:"message"`
	Conflict     string `json:"conflicting_access_code_id"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// classes are the error codes that are known: the guide's (DEVICE_OFFLINE, PIN_CONFLICT, LOCK_JAMMED,
// BOLT_OBSTRUCTED) and package sandbox's.
var classes = map[string]adapter.Class{
	"UNAUTHORIZED":          adapter.AuthRevoked,
	"DEVICE_OFFLINE":        adapter.Offline,
	"PIN_CONFLICT":          adapter.Duplicate,
	"DEVICE_FULL":           adapter.Full,
	"INVALID_PIN":           adapter.Invalid,
	"INVALID_NAME":          adapter.Invalid,
	"INVALID_TIME_FRAME":    adapter.Invalid,
	"INVALID_REQUEST":       adapter.Invalid,
	"LOCK_NOT_FOUND":        adapter.NotFound,
	"ACCESS_CODE_NOT_FOUND": adapter.NotFound,
	"NOT_SUPPORTED":         adapter.NotSupported,
	"SUBSCRIPTION_REQUIRED": adapter.Transient, // until it is paid for
	"DEVICE_BUSY":           adapter.Transient,
	"DEVICE_ERROR":          adapter.Transient,
	"LOCK_JAMMED":           adapter.Transient,
	"BOLT_OBSTRUCTED":       adapter.Transient,
	"RATE_LIMITED":          adapter.Transient,
	"SERVICE_UNAVAILABLE":   adapter.Transient,
}

// classify is the error of an answer other than 2xx. Status codes that the vendor's own program did not
// choose (a proxy's page in place of JSON) say little: such a 404, 403 or 400 is Transient, or a wrong
// route would make every device look removed. A 502, 504, 408, or one of Cloudflare's
// from 520 on, leaves open whether a write got through, and of what is not to happen twice a 500 does, too.
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
		if !ours { // a code would be given up for what a proxy did not understand
			return adapter.Transient
		}
		return adapter.Invalid
	case http.StatusNotImplemented:
		return adapter.NotSupported
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout:
		return c.doubt()
	}
	switch {
	case status/10 == 52, c.once && status == http.StatusInternalServerError:
		return c.doubt()
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

// longestWait bounds what a vendor may ask for.
const longestWait = time.Hour

// retryAfter reads both forms of Retry-After (RFC 9110 section 10.2.3), a date against the answer's own.
// The body's retry_after_ms is more exact.
func retryAfter(resp *http.Response, w wireError) time.Duration {
	wait := time.Duration(min(w.RetryAfterMS, longestWait.Milliseconds())) * time.Millisecond
	header := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil && wait <= 0 {
		wait = time.Duration(min(seconds, int64(longestWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil && wait <= 0 {
		now, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestWait)
}

// digits are long enough to be a PIN.
var digits = regexp.MustCompile(`[0-9]{4,}`)

// hidden is what a vendor's message may quote: PINs, and the secret that the path of our address holds.
func hidden(pushURL string) []*regexp.Regexp {
	all := []*regexp.Regexp{digits}
	if u, err := url.Parse(pushURL); err == nil && len(u.Path) > 1 {
		all = append([]*regexp.Regexp{regexp.MustCompile(regexp.QuoteMeta(u.Path))}, all...)
	}
	return all
}

// failure is an error whose message, the vendor's, may be shown.
func (a *Adapter) failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.Line(message, a.token, a.hidden...))
}
