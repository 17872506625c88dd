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
	firstLook = 200 * time.Millisecond
	rarely    = 3 * time.Second
	bareLooks = 8 // some ten seconds
)

// AttemptError says that an action attempt has not succeeded: it failed, or waiting for it ended first.
type AttemptError struct {
	ID     string
	Type   string              // such as CREATE_ACCESS_CODE
	Status ActionAttemptStatus // the last that was seen
	Reason *ActionAttemptError // why it failed; nil while it is not known to have failed
	Err    error               // what ended the waiting; nil when it failed
}

func (e *AttemptError) Error() string {
	attempt := fmt.Sprintf("action attempt %s (%s)", e.ID, e.Type)
	switch {
	case e.Reason != nil:
		return fmt.Sprintf("%s failed: %s (%s)", attempt, e.Reason.Message, e.Reason.Type)
	case e.Err == nil:
		return attempt + " failed, and the server does not say why"
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("%s was still %s when the time was up%s", attempt, e.Status, Blindly(e.Err))
	default:
		return fmt.Sprintf("%s was last seen %s: %v", attempt, e.Status, e.Err)
	}
}

func (e *AttemptError) Unwrap() error { return e.Err }

// Await waits until an action attempt has ended, and fails with an *AttemptError when it did not succeed or
// the context ended first. An answer without an attempt, as some servers give it, or one that the server does not
// know any more, is taken for a success: the caller looks at the resource anyway.
func (c *Client) Await(ctx context.Context, attempt ActionAttempt) error {
	if attempt.ActionAttemptID == "" {
		return nil
	}
	asked := false // the answer that attempt comes from is fresh
	bare := 0      // 404s in a row without a reason: a proxy that has lost its server, or a server without the operation
	err := Poll(ctx, func() (bool, error) {
		if !asked {
			asked = true
			return ended(attempt), nil
		}
		answer, err := Call[ActionAttemptResponse](ctx, c.GetActionAttempt, GetActionAttemptRequest{ActionAttemptID: attempt.ActionAttemptID})
		if isBare(err) && bare < bareLooks {
			bare++
			return false, nil
		}
		if IsNotFound(err) || IsNoRoute(err) {
			attempt.Status = ActionAttemptStatusSuccess
			return true, nil
		}
		bare = 0
		if err != nil {
			return false, err
		}
		attempt.Status, attempt.Error = answer.ActionAttempt.Status, answer.ActionAttempt.Error
		return ended(attempt), nil
	})
	if err == nil && attempt.Status == ActionAttemptStatusSuccess {
		return nil
	}
	return &AttemptError{ID: attempt.ActionAttemptID, Type: attempt.ActionType, Status: attempt.Status, Reason: attempt.Error, Err: err}
}

func ended(attempt ActionAttempt) bool {
	return attempt.Status == ActionAttemptStatusSuccess || attempt.Status == ActionAttemptStatusError
}

// Poll looks again and again, ever less often, until look says that it is done, fails, or the context ends. A failure that
// may pass, as of a server that is being restarted, is none: it is looked again, since what is waited for goes on meanwhile.
func Poll(ctx context.Context, look func() (done bool, err error)) error {
	var trouble error // of the last look
	for interval := firstLook; ; interval = min(interval*3/2, rarely) {
		done, err := look()
		if ctx.Err() != nil && (err != nil || !done) {
			return outOfTime(ctx, trouble)
		}
		if err == nil && done || err != nil && !mayPass(err) {
			return err
		}
		trouble = err
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return outOfTime(ctx, trouble)
		case <-timer.C:
		}
	}
}

// isBare says that what answered does not say that it is a server of this API, and has nothing at that path.
func isBare(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && e.Status == http.StatusNotFound && e.Type == ""
}

// mayPass says of a failed look that the next one may succeed: nobody answered, or a server, or the proxy before it, that could not.
func mayPass(err error) bool {
	if status := StatusOf(err); status != 0 {
		return isBare(err) || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented
	}
	_, sent := errors.AsType[*url.Error](err)
	return sent && !IsUntrusted(err) && !errors.Is(err, errTooLong)
}

// blind is the end of a context while nothing could be seen.
type blind struct{ ended, trouble error }

func (e *blind) Error() string { return e.ended.Error() + Blindly(e) }
func (e *blind) Unwrap() error { return e.ended }

func outOfTime(ctx context.Context, trouble error) error {
	if trouble == nil {
		return ctx.Err()
	}
	return &blind{ctx.Err(), trouble}
}

// Blindly says of the end of a wait, to be put behind it, why it could not be seen what became of what was waited for. Where
// that could be seen it is empty.
func Blindly(err error) string {
	if e, ok := errors.AsType[*blind](err); ok {
		return ", and the last time it was asked for, it could not be read: " + e.trouble.Error()
	}
	return ""
}
