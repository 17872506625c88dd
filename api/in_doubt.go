package api

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// A creation without a response may have been carried out. Later retries cannot settle that, for example if the server
// has become unreachable. So the last failure reports whether any try is in doubt.

// MayHaveHappened reports whether the server may have carried out a failed request, in the last try or an earlier
// one.
func MayHaveHappened(err error) bool {
	if _, doubted := errors.AsType[inDoubt](err); doubted {
		return true
	}
	if e, ok := errors.AsType[*ResponseError](err); ok {
		return e.InDoubt || isInconclusive(e.Status)
	}
	return !IsNotConnected(err) && !isNotSent(err)
}

// mayHaveHappened is MayHaveHappened for one try.
func mayHaveHappened(resp *http.Response, err error) bool {
	if err != nil {
		return MayHaveHappened(err)
	}
	return isInconclusive(resp.StatusCode)
}

// isInconclusive reports whether a status leaves open if the request was carried out.
func isInconclusive(status int) bool {
	return status/100 != 4 && status/100 != 3 && status != http.StatusServiceUnavailable
}

// provesNotApplied reports whether a response to a creation proves that no try was carried out. A server with
// idempotency keys rejects a creation only if it knows of no earlier one.
func provesNotApplied(resp *http.Response) bool {
	if resp == nil || resp.Header.Get(acceptsKeysHeader) != "true" || resp.Header.Get("Retry-After") != "" {
		return false
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return false
}

// inDoubt is the failure of the last try of a request whose earlier tries may have been carried out.
type inDoubt struct{ error }

func (e inDoubt) Unwrap() error { return e.error }

// Timeout implements the interface that url.Error looks for, because url.Error does not unwrap errors.
func (e inDoubt) Timeout() bool {
	slow, ok := errors.AsType[net.Error](e.error)
	return ok && slow.Timeout()
}

type inDoubtKey struct{}

// markInDoubt marks the result of a request as in doubt.
func markInDoubt(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, inDoubt{err}
	}
	resp.Request = resp.Request.WithContext(context.WithValue(resp.Request.Context(), inDoubtKey{}, true))
	return resp, nil
}

// isInDoubt reports whether markInDoubt marked the response.
func isInDoubt(resp *http.Response) bool {
	return resp.Request != nil && resp.Request.Context().Value(inDoubtKey{}) != nil
}
