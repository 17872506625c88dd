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
	maxAnswer = 16 << 20        // bytes; a page of five hundred records is below one million
	maxWait   = 2 * time.Minute // from sending a request to the end of its answer
	grace     = 30 * time.Second
)

// limited lets so many requests at a time through as slots has room for.
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

// notSent is what ends the waiting for a turn.
type notSent struct{ err error }

func (e notSent) Error() string { return "the request was not sent: " + e.err.Error() }
func (e notSent) Unwrap() error { return e.err }

// IsNotSent says that a request was given up before it was sent, so that it cannot have been carried out.
func IsNotSent(err error) bool { return isNotSent(err) && !MayHaveHappened(err) }

func isNotSent(err error) bool {
	_, ok := errors.AsType[notSent](err)
	return ok
}

// Try is how one try of a request has ended. It holds no credential and no PIN.
type Try struct {
	Method, Path string
	Status       int    // of HTTP; 0 if there was no answer
	RequestID    string // of the answer; may be empty
	Took         time.Duration
	Err          string // what kept the server from answering, else empty
}

// logged tells of each try of a request. Bodies hold PINs and secrets, so none is told.
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

// authorised adds what every request carries.
type authorised struct {
	next   http.RoundTripper
	config Config
}

func (t authorised) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(context.WithValue(req.Context(), credentialFromKey{}, t.config.CredentialFrom))
	req.Header.Set("Authorization", "Bearer "+t.config.Credential)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", t.config.UserAgent)
	if NeedsWorkspace(t.config.Credential) && t.config.WorkspaceID != "" {
		req.Header.Set("seam-workspace", t.config.WorkspaceID)
	}
	return t.next.RoundTrip(req)
}

// whole reads answers to their end, so that one that breaks off, never ends or drags on is a failure of the
// network like any other.
//
// A request that creates something is not abandoned when the context ends, as it does when Terraform is
// interrupted: for a while longer its answer is waited for, which names what was created.
type whole struct{ next http.RoundTripper }

var (
	errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	errTooSlow = fmt.Errorf("the answer did not end within %s", maxWait)
	errNotHTTP = errors.New("the answer goes on in another protocol than HTTP")
)

// badAnswer is what keeps an answer that has begun from being read.
type badAnswer struct{ err error }

func (e badAnswer) Error() string { return "read the answer: " + e.err.Error() }
func (e badAnswer) Unwrap() error { return e.err }

// IsBadAnswer says that something answers, but what it says could not be read: it broke off, was too slow or too long.
func IsBadAnswer(err error) bool {
	_, bad := errors.AsType[badAnswer](err)
	slow, ok := errors.AsType[net.Error](err)
	late := ok && slow.Timeout() && !errors.Is(err, context.DeadlineExceeded) && !IsNotConnected(err)
	return bad || errors.Is(err, errTooSlow) || errors.Is(err, io.EOF) || late
}

func (t whole) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := tryContext(req)
	defer cancel(nil)
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, why(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the connection is ours now, and no context would end the reading of it
		return nil, badAnswer{errNotHTTP}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, badAnswer{why(ctx, err)}
	}
	if len(body) > maxAnswer {
		return nil, badAnswer{errTooLong}
	}
	resp.Body, resp.Request = io.NopCloser(bytes.NewReader(body)), req
	return resp, nil
}

// tryContext bounds one try of a request.
func tryContext(req *http.Request) (context.Context, context.CancelCauseFunc) {
	parent := req.Context()
	if isRepeatable(req.URL.Path) || parent.Err() != nil {
		ctx, cancel := context.WithCancelCause(parent)
		timer := time.AfterFunc(maxWait, func() { cancel(errTooSlow) })
		return ctx, func(cause error) { timer.Stop(); cancel(cause) }
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	timer := time.AfterFunc(maxWait, func() { cancel(errTooSlow) })
	stop := context.AfterFunc(parent, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(parent)) })
	})
	return ctx, func(cause error) { stop(); timer.Stop(); cancel(cause) }
}

// why is the reason that the context of a try has ended, if it was that.
func why(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && !errors.Is(err, cause):
		return cause
	case cause == nil && errors.Is(err, context.DeadlineExceeded):
		return ownLimit{err}
	}
	return err
}

// ownLimit is the end of a time that is the transport's own, as to connect or until an answer begins. Go says of it that it is
// context.DeadlineExceeded, which is to mean here that whoever asked had no more time.
type ownLimit struct{ err error }

func (e ownLimit) Error() string      { return e.err.Error() }
func (e ownLimit) Timeout() bool      { return true }
func (e ownLimit) As(target any) bool { return errors.As(e.err, target) }
func (e ownLimit) Is(target error) bool {
	return target != context.DeadlineExceeded && errors.Is(e.err, target)
}
