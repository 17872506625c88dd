package nuki

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// planPause is the pause after a refusal for a missing plan, without a Retry-After.
const planPause = time.Hour

func lockPath(id int64) string { return "/smartlock/" + strconv.FormatInt(id, 10) }

func authPath(id int64, code string) string { return lockPath(id) + "/auth/" + url.PathEscape(code) }

// token returns the token of the next request.
func (a *Adapter) token(ctx context.Context) (string, error) {
	if a.tokens == nil {
		return a.apiToken, nil
	}
	return a.tokens.Token(ctx)
}

func (a *Adapter) authorize(ctx context.Context, req *http.Request) error {
	token, err := a.token(ctx)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// do sends a request and decodes the response into out, which may be nil. It renews a token of a login that Nuki rejects,
// and then repeats the request.
func (a *Adapter) do(ctx context.Context, call vendorhttp.Call, out any) error {
	token, err := a.token(ctx)
	if err != nil {
		return err
	}
	rejected := false
	send := func() error {
		return a.client.DoJSON(ctx, call, out, func(r vendorhttp.Response) error {
			rejected = r.Status == http.StatusUnauthorized
			return a.refusal(call, r)
		})
	}
	if err = send(); !rejected || a.tokens == nil {
		return err
	}
	if _, err = a.tokens.Renew(ctx, token); err != nil {
		return err
	}
	return send()
}

// refusal returns the error of a response other than 2xx. The meaning of 403 and 404 is not documented.
func (a *Adapter) refusal(call vendorhttp.Call, r vendorhttp.Response) error {
	var body struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(r.Data, &body) // most bodies are not documented
	reason := "Nuki answered " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)
	if body.Description != "" {
		reason += ": " + body.Description
	}
	e := a.client.Refusal(call, r, reason)
	proxy := bytes.HasPrefix(bytes.TrimSpace(r.Data), []byte("<"))
	switch r.Status {
	case http.StatusUnauthorized:
		e.Message = "Nuki rejects the token. API tokens end when the password of the account changes: make a new token " +
			"in Nuki Web and connect the account with it."
		if a.tokens != nil {
			e.Message = "Nuki rejects the login. Log in again on a connect page."
		}
	case http.StatusPaymentRequired:
		e.Message = "Nuki requires a paid plan for this: check the plan of the account in Nuki Web."
		e.RetryAfter = cmp.Or(e.RetryAfter, planPause)
	case http.StatusConflict:
		e.Class, e.Message = adapter.Duplicate, "Nuki reports that this PIN is in use. Choose another PIN."
	case http.StatusUnprocessableEntity:
		e.Class = adapter.Invalid
	case http.StatusLocked:
		e.Message = "an earlier change is still on its way to the lock"
		e.RetryAfter = cmp.Or(e.RetryAfter, a.timing.Busy)
	case http.StatusTooManyRequests:
		e.Message = "Nuki limits the calls of this account for now"
	}
	switch {
	case proxy:
	case r.Status == http.StatusBadRequest:
		e.Class = adapter.Invalid
	case r.Status == http.StatusNotFound:
		e.Class = adapter.NotFound
	case r.Status == http.StatusForbidden && call.Path == "/smartlock":
		e.Class, e.Message = adapter.AuthRevoked, noRight
	case r.Status == http.StatusForbidden:
		e.Class, e.Message = adapter.NotSupported, noRight
	}
	if !call.Write && (call.Path == "/smartlock" || call.Path == "/smartlock/auth") && e.Class == adapter.Invalid {
		e.Class = adapter.Transient
	}
	return e
}

const noRight = "The Nuki token lacks a right for this. Make a token in Nuki Web with the rights to see and operate " +
	"smart locks, to manage their access, and to read their log."
