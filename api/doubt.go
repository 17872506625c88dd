package api

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// A creation that gets no answer may have happened. What becomes of the tries after it, such as that nobody is there any more, tells
// nothing about it: so its last failure says whether one of them is in doubt.

// MayHaveHappened says of a failed request that the server may have carried it out, with the last of its tries or one before.
func MayHaveHappened(err error) bool {
	if _, doubted := errors.AsType[inDoubt](err); doubted {
		return true
	}
	if e, ok := errors.AsType[*ResponseError](err); ok {
		return e.InDoubt || isUnclear(e.Status)
	}
	return !IsNotConnected(err) && !isNotSent(err)
}

// mayHaveHappened is MayHaveHappened for one try.
func mayHaveHappened(resp *http.Response, err error) bool {
	if err != nil {
		return MayHaveHappened(err)
	}
	return isUnclear(resp.StatusCode)
}

// isUnclear says of the status of an answer that it does not tell whether the request was carried out.
func isUnclear(status int) bool {
	return status/100 != 4 && status/100 != 3 && status != http.StatusServiceUnavailable
}

// settles says of an answer to a creation that none of its tries was carried out: a server that goes by keys refuses one only
// where it knows of none before.
func settles(resp *http.Response) bool {
	if resp == nil || resp.Header.Get(acceptsKeysHeader) != "true" || resp.Header.Get("Retry-After") != "" {
		return false
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return false
}

// inDoubt is the failure of the last try of a request of which one before may have been carried out.
type inDoubt struct{ error }

func (e inDoubt) Unwrap() error { return e.error }

// Timeout is asked for by url.Error, which does not look at what is wrapped.
func (e inDoubt) Timeout() bool {
	slow, ok := errors.AsType[net.Error](e.error)
	return ok && slow.Timeout()
}

type inDoubtKey struct{}

// doubted is the end of a request of which a try may have been carried out.
func doubted(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, inDoubt{err}
	}
	resp.Request = resp.Request.WithContext(context.WithValue(resp.Request.Context(), inDoubtKey{}, true))
	return resp, nil
}

func isInDoubt(resp *http.Response) bool {
	return resp.Request != nil && resp.Request.Context().Value(inDoubtKey{}) != nil
}
