package api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	firstLook = 200 * time.Millisecond
	rarely    = 3 * time.Second
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
		return fmt.Sprintf("%s was still %s when the time was up", attempt, e.Status)
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
	err := Poll(ctx, func() (bool, error) {
		if !asked {
			asked = true
			return ended(attempt), nil
		}
		answer, err := Call[ActionAttemptResponse](ctx, c.GetActionAttempt, GetActionAttemptRequest{ActionAttemptID: attempt.ActionAttemptID})
		if IsNotFound(err) || IsNoRoute(err) {
			attempt.Status = ActionAttemptStatusSuccess
			return true, nil
		}
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

// Poll looks again and again, ever less often, until look says that it is done, fails, or the context ends.
func Poll(ctx context.Context, look func() (done bool, err error)) error {
	for interval := firstLook; ; interval = min(interval*3/2, rarely) {
		done, err := look()
		if ctx.Err() != nil && (err != nil || !done) {
			return ctx.Err()
		}
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
