package tedee

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// words are the fixed segments of paths.
var words = []string{
	"my", "lock", "sync", "pin", "operation", "unlock", "device", "deviceactivity", "personalaccesskey",
}

// envelope wraps the result of each response (tedee-api-doc, commit 73d08835).
type envelope[T any] struct {
	Result   T        `json:"result"`
	Success  *bool    `json:"success"`
	Messages []string `json:"errorMessages"`
}

// refusal is a response other than 2xx.
type refusal struct {
	err    *adapter.Error
	status int
}

// Error implements error.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns the *adapter.Error.
func (r *refusal) Unwrap() error { return r.err }

// statusOf returns the status of a refusal by the vendor itself; 0 for other errors.
func statusOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	return 0
}

// do sends a call and decodes its result into out, which is nil or a pointer. A refused access token is renewed once.
func (a *Adapter) do(ctx context.Context, call vendorhttp.Call, out any) error {
	call.ContentType = "application/json-patch+json" // of the samples
	var used string
	ctx = context.WithValue(ctx, usedToken{}, &used)
	err := a.doOnce(ctx, call, out)
	if a.tokens == nil || statusOf(err) != http.StatusUnauthorized {
		return err
	}
	if _, renewed := a.tokens.Renew(ctx, used); renewed != nil {
		return renewed
	}
	return a.doOnce(ctx, call, out)
}

func (a *Adapter) doOnce(ctx context.Context, call vendorhttp.Call, out any) error {
	var body envelope[json.RawMessage]
	into := any(&body)
	if out == nil {
		into = nil
	}
	err := a.client.DoJSON(ctx, call, into, func(r vendorhttp.Response) error { return a.refusal(call, r) })
	if err != nil || out == nil {
		return err
	}
	return vendorhttp.Decode(call, body.Result, out)
}

// usedToken is the key of the token that a call was sent with.
type usedToken struct{}

// authorize adds the credentials to a request.
func (a *Adapter) authorize(ctx context.Context, req *http.Request) error {
	if a.tokens == nil {
		req.Header.Set("Authorization", "PersonalKey "+a.key)
		return nil
	}
	token, err := a.tokens.Token(ctx)
	if err != nil {
		return err
	}
	if used, ok := ctx.Value(usedToken{}).(*string); ok {
		*used = token
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// settled returns the error of a method that writes. Such methods have no adapter.ErrSaturated, which only reads
// report.
func settled(err error) error {
	if errors.Is(err, adapter.ErrSaturated) {
		return adapter.Errorf(adapter.Transient, "nothing was written: %s", adapter.ErrSaturated)
	}
	return err
}

// busyPause is the wait after a 409: a lock serves one request at a time.
const busyPause = 2 * time.Second

// refusal returns the error of a response other than 2xx. A response without the vendor's envelope comes from a proxy,
// and says nothing about a lock or a code.
func (a *Adapter) refusal(call vendorhttp.Call, r vendorhttp.Response) error {
	var body envelope[json.RawMessage]
	ours := json.Unmarshal(r.Data, &body) == nil && body.Success != nil
	if r.Status == http.StatusNotModified { // net/http drops the body
		return &refusal{a.client.Refusal(call, r, "the list is up to date"), r.Status}
	}
	message := ""
	if ours && len(body.Messages) > 0 {
		message = strings.Join(body.Messages[:min(len(body.Messages), 3)], " ")
	}
	e := a.client.Refusal(call, r, message)
	if !ours && r.Status != http.StatusUnauthorized {
		return e
	}
	if class, known := classes[r.Status]; known {
		e.Class = class
	}
	switch {
	case r.Status == http.StatusUnauthorized && a.tokens == nil:
		e.Message = "Tedee rejects the personal access key; it may have ended: create another one in the Tedee portal"
	case r.Status == http.StatusForbidden:
		e.Message = "Tedee does not permit this; the user must be owner or admin of the lock, and the key needs the scopes " +
			"Device.ReadWrite, Lock.Operate, and DeviceActivity.Read"
	case r.Status == http.StatusRequestTimeout && !call.Write:
		e.Class = adapter.Offline
	case r.Status == http.StatusConflict:
		e.RetryAfter = max(e.RetryAfter, busyPause)
	case r.Status == http.StatusBadRequest && !call.Write:
		e.Class = adapter.Transient
	}
	return &refusal{e, r.Status}
}

// classes maps statuses of the vendor's own refusals. The others have the class of vendorhttp.
var classes = map[int]adapter.Class{
	http.StatusBadRequest:           adapter.Invalid,
	http.StatusForbidden:            adapter.NotSupported,
	http.StatusNotFound:             adapter.NotFound,
	http.StatusNotAcceptable:        adapter.Duplicate,
	http.StatusConflict:             adapter.Transient,
	http.StatusPreconditionFailed:   adapter.Full,
	http.StatusUnprocessableEntity:  adapter.Full, // of older versions of the documentation
	http.StatusPreconditionRequired: adapter.Offline,
}
