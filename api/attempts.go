package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// initialPollInterval is the pause after the first poll.
	initialPollInterval = 200 * time.Millisecond
	// maxPollInterval bounds the pause between polls.
	maxPollInterval = 3 * time.Second
	// maxBare404s is how many 404s in a row without a reason Await tolerates, which takes about ten seconds.
	maxBare404s = 8
)

// AttemptError reports an action attempt that did not succeed: it failed, or waiting for it ended first.
type AttemptError struct {
	// ID is the action_attempt_id.
	ID string
	// Type is the kind of attempt, such as CREATE_ACCESS_CODE.
	Type string
	// Status is the last status read.
	Status ActionAttemptStatus
	// Reason is why the attempt failed. It is nil if no failure is known.
	Reason *ActionAttemptError
	// Err is what ended the waiting. It is nil if the attempt failed.
	Err error
}

// Error describes the attempt, its last status, and the reason.
func (e *AttemptError) Error() string {
	attempt := fmt.Sprintf("action attempt %s (%s)", e.ID, e.Type)
	switch {
	case e.Reason != nil:
		return fmt.Sprintf("%s failed: %s (%s)", attempt, e.Reason.Message, e.Reason.Type)
	case e.Err == nil:
		return attempt + " failed, and the server does not say why"
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("%s was still %s when the time was up%s", attempt, e.Status, PollFailureSuffix(e.Err))
	default:
		return fmt.Sprintf("%s was last seen %s: %v", attempt, e.Status, e.Err)
	}
}

// Unwrap returns the error that ended the waiting.
func (e *AttemptError) Unwrap() error { return e.Err }

// ErrOutcomeUnknown reports that the server does not know an action attempt, so the attempt may have succeeded or
// failed.
var ErrOutcomeUnknown = errors.New("the server does not know the action attempt")

// Await waits until an action attempt ends. It returns an *AttemptError if the attempt fails or the context ends
// first.
//
// Some servers return no attempt, or forget an attempt. Await treats both as success, so its callers must read the
// resource afterwards. AwaitKnown reports both.
func (c *Client) Await(ctx context.Context, attempt ActionAttempt) error {
	if err := c.AwaitKnown(ctx, attempt); !errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return nil
}

// AwaitKnown waits like Await, but returns ErrOutcomeUnknown if the server returned no attempt or does not know it.
func (c *Client) AwaitKnown(ctx context.Context, attempt ActionAttempt) error {
	if attempt.ActionAttemptID == "" {
		return ErrOutcomeUnknown
	}
	unknown := false
	asked := false // the first look uses the attempt as the caller received it
	// Consecutive 404s without a reason come from a proxy that has lost its server, or from a server without the
	// operation.
	bare := 0
	err := Poll(ctx, func() (bool, error) {
		if !asked {
			asked = true
			return ended(attempt), nil
		}
		answer, err := Call[ActionAttemptResponse](
			ctx,
			c.GetActionAttempt,
			GetActionAttemptRequest{ActionAttemptID: attempt.ActionAttemptID},
		)
		if isBare(err) && bare < maxBare404s {
			bare++
			return false, nil
		}
		if IsNotFound(err) || IsNoRoute(err) {
			unknown = true
			return true, nil
		}
		bare = 0
		if err != nil {
			return false, err
		}
		attempt.Status, attempt.Error = answer.ActionAttempt.Status, answer.ActionAttempt.Error
		return ended(attempt), nil
	})
	switch {
	case err == nil && unknown:
		return ErrOutcomeUnknown
	case err == nil && attempt.Status == ActionAttemptStatusSuccess:
		return nil
	}
	return &AttemptError{
		ID:     attempt.ActionAttemptID,
		Type:   attempt.ActionType,
		Status: attempt.Status,
		Reason: attempt.Error,
		Err:    err,
	}
}

// ended reports whether the attempt has succeeded or failed.
func ended(attempt ActionAttempt) bool {
	return attempt.Status == ActionAttemptStatusSuccess || attempt.Status == ActionAttemptStatusError
}

// Poll calls look at increasing intervals until look reports done, fails, or the context ends. It ignores transient
// failures, such as those of a restarting server.
func Poll(ctx context.Context, look func() (done bool, err error)) error {
	var trouble error // failure of the last look
	for interval := initialPollInterval; ; interval = min(interval*3/2, maxPollInterval) {
		done, err := look()
		if ctx.Err() != nil && (err != nil || !done) {
			return pollEnd(ctx, trouble)
		}
		if err == nil && done || err != nil && !isTransient(err) {
			return err
		}
		trouble = err
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return pollEnd(ctx, trouble)
		case <-timer.C:
		}
	}
}

// isBare reports whether err is a 404 that does not come from a server of this API.
func isBare(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && e.Status == http.StatusNotFound && e.Type == ""
}

// isTransient reports whether the next look can succeed: the server did not answer, was overloaded, or a proxy
// failed.
func isTransient(err error) bool {
	if status := StatusOf(err); status != 0 {
		return isBare(err) || status == http.StatusTooManyRequests ||
			status >= 500 && status != http.StatusNotImplemented
	}
	_, sent := errors.AsType[*url.Error](err)
	return sent && !IsUntrusted(err) && !errors.Is(err, errTooLong)
}

// pollFailure is the end of a context while the last look had failed.
type pollFailure struct{ ended, trouble error }

func (e *pollFailure) Error() string { return e.ended.Error() + PollFailureSuffix(e) }
func (e *pollFailure) Unwrap() error { return e.ended }

func pollEnd(ctx context.Context, trouble error) error {
	if trouble == nil {
		return ctx.Err()
	}
	return &pollFailure{ctx.Err(), trouble}
}

// PollFailureSuffix returns a suffix for an error message that says why the last poll failed. It is empty if the last
// poll succeeded.
func PollFailureSuffix(err error) string {
	if e, ok := errors.AsType[*pollFailure](err); ok {
		return ", and the last time it was asked for, it could not be read: " + e.trouble.Error()
	}
	return ""
}
