// Package vendorhttp sends the requests of an adapter to a vendor's HTTP API, and applies what package adapter demands of
// every call: lease check, budget, limits of size and time, traces, and classes of errors. It must not know a vendor.
package vendorhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// responseLimit is the maximum size of a response in bytes.
const responseLimit = 8 << 20

// timeout bounds one call.
const timeout = 30 * time.Second

// Client sends requests to one account of a vendor. Its fields must not change after the first call.
type Client struct {
	// Adapter is the name in traces.
	Adapter string
	// Base is the URL before the paths of calls.
	Base string
	// HTTP never follows redirects. New returns one.
	HTTP *http.Client
	// Log is never nil.
	Log *slog.Logger
	// Budget counts each call; nil: unlimited.
	Budget adapter.Budget
	// Words are the fixed segments of paths. Traces show all others as identifiers.
	Words []string
	// Authorize adds the credentials to a request; nil: there are none.
	Authorize func(ctx context.Context, req *http.Request) error
	// Secret is replaced in the vendor's messages, in addition to the credentials of the request; empty: there is none.
	Secret string
}

// New returns an HTTP client for an account. It follows no redirects, env.Transport wraps it, and env.Guard checks each
// address before it is dialed.
func New(env adapter.Env, options ...Option) *http.Client {
	t := adapter.NewTransport()
	for _, set := range options {
		set(t)
	}
	if env.Guard != nil {
		t.Proxy = nil // the proxy would dial the address
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, Control: env.Guard}).DialContext
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     env.Transport.Wrap(t),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Call is one request. At most one of JSON and Form is set.
type Call struct {
	// Method is GET if empty.
	Method string
	// Path starts with a slash. Identifiers in it must be escaped by url.PathEscape.
	Path  string
	Query url.Values
	JSON  any
	// ContentType is that of JSON; empty: application/json.
	ContentType string
	Form        url.Values
	// IdempotencyKey is the Idempotency-Key; empty: none.
	IdempotencyKey string
	// Write means that the request changes something, so that its outcome is unknown without a response.
	Write bool
}

// UnknownOutcome returns the class of a call whose response is missing or cannot be understood.
func (c Call) UnknownOutcome() adapter.Class {
	if c.Write {
		return adapter.Unconfirmed
	}
	return adapter.Transient
}

// Response is a complete response. Data is only valid until decode returns.
type Response struct {
	Status int
	Header http.Header
	Data   []byte

	// secrets are the credentials of the request, which the vendor may quote.
	secrets []string
}

// OK reports whether the status is 2xx.
func (r Response) OK() bool { return r.Status/100 == 2 }

// Do sends a request. decode receives each complete response with any status, and returns its error, for which Refusal
// is a start. Do fails with the error of decode, with an *adapter.Error, with one joined to the context's error, or with
// adapter.ErrSaturated.
func (c *Client) Do(ctx context.Context, call Call, decode func(Response) error) (err error) {
	if call.Method == "" {
		call.Method = http.MethodGet
	}
	ctx, span := adapter.StartSpan(ctx, c.Adapter, c.Base, call.Method, call.Path, c.Words)
	defer func() { adapter.EndSpan(span, err) }()
	if c.Budget != nil {
		if err := c.Budget.Take(ctx); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, call)
	if err != nil {
		return err
	}
	span.Set(traces.Status(resp.StatusCode))
	defer resp.Body.Close()
	// After an upgrade, no deadline would end the reading.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return adapter.Errorf(call.UnknownOutcome(), "the vendor answered in another protocol than HTTP")
	}
	if resp.StatusCode == http.StatusTooManyRequests && c.Budget != nil {
		c.Budget.Refused(ctx, limitWait(resp.Header))
	}
	secrets := append(call.secrets(resp.Request), c.Secret)
	var found error
	err = adapter.ReadResponse(ctx, resp.Body, responseLimit, func(data []byte) error {
		found = decode(Response{Status: resp.StatusCode, Header: resp.Header, Data: data, secrets: secrets})
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrTooLarge):
		return adapter.Errorf(call.UnknownOutcome(),
			"the response is larger than %d MiB, or has too many parts", responseLimit>>20)
	case errors.Is(err, adapter.ErrSaturated) && !call.Write:
		return err
	case err != nil:
		return c.unanswered(ctx, call, true, err)
	}
	return found
}

// DoJSON is Do for an API that answers with a status and JSON. out receives the body of a 2xx response, and may be nil.
// refused returns the error of all others; nil means Refusal.
func (c *Client) DoJSON(ctx context.Context, call Call, out any, refused func(Response) error) error {
	return c.Do(ctx, call, func(r Response) error {
		switch {
		case !r.OK() && refused != nil:
			return refused(r)
		case !r.OK():
			return c.Refusal(call, r, "")
		case out != nil:
			return Decode(call, r.Data, out)
		}
		return nil
	})
}

// Decode decodes JSON. Its error quotes nothing, because the response may contain a PIN.
func Decode(call Call, data []byte, out any) error {
	if json.Unmarshal(data, out) != nil {
		return adapter.Errorf(call.UnknownOutcome(), "the response is not the expected JSON")
	}
	return nil
}

func (c *Client) send(ctx context.Context, call Call) (*http.Response, error) {
	body, contentType, err := call.body()
	if err != nil {
		return nil, err
	}
	target := c.Base + call.Path
	if len(call.Query) > 0 {
		target += "?" + call.Query.Encode()
	}
	var dialing, connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// GetConn is called again when a kept connection was dead.
		GetConn: func(string) { dialing.Store(true); connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, call.Method, target, body)
	if err != nil {
		return nil, adapter.Errorf(adapter.GatewayDown, "the vendor's address is not a valid URL")
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	switch {
	case call.IdempotencyKey != "":
		req.Header.Set("Idempotency-Key", call.IdempotencyKey)
	case call.Method == http.MethodPost && !call.Write: // net/http repeats it, and does not send the empty header
		req.Header["Idempotency-Key"] = nil
	}
	if c.Authorize != nil {
		if err := c.Authorize(ctx, req); err != nil {
			return nil, err
		}
	}
	if err := adapter.MaySend(ctx); err != nil {
		return nil, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		// A transport other than net/http's reports no connections: it may have sent the request.
		return nil, c.unanswered(ctx, call, connected.Load() || !dialing.Load(), err)
	}
	resp.Request = req // other transports than net/http's may omit it
	return resp, nil
}

func (c Call) body() (body io.Reader, contentType string, err error) {
	switch {
	case c.Form != nil:
		return strings.NewReader(c.Form.Encode()), "application/x-www-form-urlencoded", nil
	case c.JSON != nil:
		data, err := json.Marshal(c.JSON)
		if err != nil {
			return nil, "", adapter.Errorf(adapter.Invalid, "the request cannot be written as JSON")
		}
		return bytes.NewReader(data), cmp.Or(c.ContentType, "application/json"), nil
	}
	return nil, "", nil
}

// unanswered returns the error of a call without a response. sent means that the vendor may have received it.
func (c *Client) unanswered(ctx context.Context, call Call, sent bool, err error) error {
	var failure *adapter.Error
	switch refused := adapter.AsError(err); {
	case refused != nil: // the guard refused the address
		failure = refused
	case sent && call.Write:
		failure = c.Failure(adapter.Unconfirmed, "no response to a write: "+adapter.Reason(err))
	case sent || errors.Is(err, context.Canceled):
		failure = c.Failure(adapter.Transient, "no response: "+adapter.Reason(err))
	default:
		failure = c.Failure(adapter.GatewayDown, "the vendor cannot be reached: "+adapter.Reason(err))
	}
	c.Log.DebugContext(ctx, "call of the vendor failed", "method", call.Method, "class", failure.Class)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", failure, ctx.Err())
	}
	return failure
}

// Refusal returns the error of a response other than 2xx by its status alone. The statuses whose meaning depends on the
// vendor, such as 400, 403, 404, and 409, are Transient, because a proxy may have sent them. An empty message becomes the
// status.
func (c *Client) Refusal(call Call, r Response, message string) *adapter.Error {
	class := adapter.Transient
	switch {
	case r.Status == http.StatusUnauthorized:
		class = adapter.AuthRevoked
	case r.Status == http.StatusNotImplemented:
		class = adapter.NotSupported
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusInternalServerError,
		r.Status == http.StatusBadGateway, r.Status == http.StatusGatewayTimeout, r.Status/10 == 52: // Cloudflare's
		class = call.UnknownOutcome()
	}
	if message == "" {
		message = "the vendor answered " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)
	}
	e := r.Failure(class, message)
	if e.RetryAfter = RetryAfter(r.Header); r.Status == http.StatusTooManyRequests {
		e.RetryAfter = limitWait(r.Header)
	}
	return e
}

// credentialNames matches the names of parameters that are credentials.
var credentialNames = regexp.MustCompile(`(?i)token|secret|password|code|key`)

// minCredential is the length of values that are masked: shorter ones may be words of a message.
const minCredential = 6

// secrets returns the credentials of a request that was sent, also as a URL shows them.
func (c Call) secrets(req *http.Request) (secrets []string) {
	add := func(value string) {
		if len(value) >= minCredential {
			secrets = append(secrets, value, url.QueryEscape(value))
		}
	}
	for _, params := range []url.Values{c.Query, c.Form} {
		for name, values := range params {
			if credentialNames.MatchString(name) {
				for _, value := range values {
					add(value)
				}
			}
		}
	}
	if req != nil {
		authorization := req.Header.Get("Authorization")
		_, credential, _ := strings.Cut(authorization, " ")
		add(authorization)
		add(credential)
	}
	return secrets
}

// digits matches numbers that are long enough to be a PIN.
var digits = regexp.MustCompile(`[0-9]{4,}`)

// Failure returns an error with a vendor's message, sanitized for display. The message shows no credential of the
// request.
func (r Response) Failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.SafeMessageOf(message, r.secrets, digits))
}

// Failure returns an error with a message of the vendor that is not part of a refusal, sanitized for display.
func (c *Client) Failure(class adapter.Class, message string) *adapter.Error {
	return adapter.Errorf(class, "%s", adapter.SafeMessage(message, c.Secret, digits))
}

// defaultLimitWait is the wait after a 429 that requests none.
const defaultLimitWait = time.Minute

// limitWait returns the wait after a 429.
func limitWait(h http.Header) time.Duration { return cmp.Or(RetryAfter(h), defaultLimitWait) }

// maxRetryAfter bounds the wait that a vendor may request.
const maxRetryAfter = time.Hour

// RetryAfter returns the wait that a response requests, at most one hour, in both forms of RFC 9110, section 10.2.3. A
// date counts from the response's Date. Without the header it is 0.
func RetryAfter(h http.Header) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64); err == nil {
		wait = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		now, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
