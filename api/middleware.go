package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// maxResponseBytes bounds a response, in bytes. A page of 500 records has less than one million.
	maxResponseBytes = 16 << 20
	// tryTimeout bounds a try, from sending the request to the end of the response.
	tryTimeout = 2 * time.Minute
	// creationGracePeriod is how long a creation continues after its context ends.
	creationGracePeriod = 30 * time.Second
)

// limited bounds the number of concurrent requests by the capacity of slots.
type limited struct {
	next  http.RoundTripper
	slots chan struct{}
}

func (t limited) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case t.slots <- struct{}{}:
	case <-req.Context().Done():
		return nil, notSent{context.Cause(req.Context())}
	}
	defer func() { <-t.slots }()
	return t.next.RoundTrip(req)
}

// notSent is the end of the wait for a slot.
type notSent struct{ err error }

func (e notSent) Error() string { return "the request was not sent: " + e.err.Error() }
func (e notSent) Unwrap() error { return e.err }

// IsNotSent reports whether a request was abandoned before it was sent, so that it cannot have been carried out.
func IsNotSent(err error) bool { return isNotSent(err) && !MayHaveHappened(err) }

func isNotSent(err error) bool {
	_, ok := errors.AsType[notSent](err)
	return ok
}

// Try describes one try of a request. It contains no credential and no PIN.
type Try struct {
	// Method and Path are those of the request.
	Method, Path string
	// Status is the HTTP status, or 0 without a response.
	Status int
	// RequestID is that of the response. It may be empty.
	RequestID string
	// Took is how long the try lasted.
	Took time.Duration
	// Err is why the server did not respond. It is empty if it did.
	Err string
}

// logged logs each try of a request. It never logs bodies, because they contain PINs and secrets.
type logged struct {
	next       http.RoundTripper
	credential string
	log        func(context.Context, Try)
}

func (t logged) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.log == nil {
		return t.next.RoundTrip(req)
	}
	start := time.Now()
	resp, err := t.next.RoundTrip(req)
	try := Try{Method: req.Method, Path: req.URL.Path, Took: time.Since(start)}
	if err != nil {
		try.Err = redactRequest(req, Redact(err.Error(), t.credential))
	} else {
		try.Status, try.RequestID = resp.StatusCode, Redact(resp.Header.Get("seam-request-id"), t.credential)
	}
	t.log(req.Context(), try)
	return resp, err
}

// authorizing adds the headers that each request needs.
type authorizing struct {
	next   http.RoundTripper
	config Config
}

func (t authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(context.WithValue(req.Context(), credentialFromKey{}, t.config.CredentialFrom))
	req.Header.Set("Authorization", "Bearer "+t.config.Credential)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", t.config.UserAgent)
	if NeedsWorkspace(t.config.Credential) && t.config.WorkspaceID != "" {
		req.Header.Set("seam-workspace", t.config.WorkspaceID)
	}
	return t.next.RoundTrip(req)
}

// bodyReading reads responses completely, so that a truncated, endless or slow response becomes a network error.
//
// A creation continues for a grace period after its context ends, for example when Terraform is interrupted. Its
// response names the created resource.
type bodyReading struct{ next http.RoundTripper }

var (
	errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxResponseBytes)
	errTooSlow = fmt.Errorf("the answer did not end within %s", tryTimeout)
	errNotHTTP = errors.New("the answer goes on in another protocol than HTTP")
)

// badResponse is the error of a response that could not be read completely.
type badResponse struct{ err error }

func (e badResponse) Error() string { return "read the answer: " + e.err.Error() }
func (e badResponse) Unwrap() error { return e.err }

// IsBadResponse reports whether a response started but could not be read: it was truncated, too slow or too long.
func IsBadResponse(err error) bool {
	_, bad := errors.AsType[badResponse](err)
	slow, ok := errors.AsType[net.Error](err)
	late := ok && slow.Timeout() && !errors.Is(err, context.DeadlineExceeded) && !IsNotConnected(err)
	return bad || errors.Is(err, errTooSlow) || errors.Is(err, io.EOF) || late
}

func (t bodyReading) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := tryContext(req)
	defer cancel(nil)
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	defer resp.Body.Close()
	// After a protocol switch the context does not end reads.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, badResponse{errNotHTTP}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	if err != nil {
		return nil, badResponse{causeOf(ctx, err)}
	}
	if len(body) > maxResponseBytes {
		return nil, badResponse{errTooLong}
	}
	resp.Body, resp.Request = io.NopCloser(bytes.NewReader(body)), req
	return resp, nil
}

// tryContext returns the context of one try of a request.
func tryContext(req *http.Request) (context.Context, context.CancelCauseFunc) {
	parent := req.Context()
	if isRepeatable(req.URL.Path) || parent.Err() != nil {
		ctx, cancel := context.WithCancelCause(parent)
		timer := time.AfterFunc(tryTimeout, func() { cancel(errTooSlow) })
		return ctx, func(cause error) { timer.Stop(); cancel(cause) }
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	timer := time.AfterFunc(tryTimeout, func() { cancel(errTooSlow) })
	stop := context.AfterFunc(parent, func() {
		time.AfterFunc(creationGracePeriod, func() { cancel(context.Cause(parent)) })
	})
	return ctx, func(cause error) { stop(); timer.Stop(); cancel(cause) }
}

// causeOf returns the cause of the context's end if that is why err happened, otherwise err.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && !errors.Is(err, cause):
		return cause
	case cause == nil && errors.Is(err, context.DeadlineExceeded):
		return transportTimeout{err}
	}
	return err
}

// transportTimeout is a timeout of the transport itself, such as for connecting. It does not match context.DeadlineExceeded,
// which means here that the caller's time is up.
type transportTimeout struct{ err error }

func (e transportTimeout) Error() string      { return e.err.Error() }
func (e transportTimeout) Timeout() bool      { return true }
func (e transportTimeout) As(target any) bool { return errors.As(e.err, target) }
func (e transportTimeout) Is(target error) bool {
	return target != context.DeadlineExceeded && errors.Is(e.err, target)
}
