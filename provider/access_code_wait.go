package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// awaitLock waits until a code is on its lock, or is scheduled to be, after the attempt that does it. Where the
// server gives no attempt, the status alone tells.
func awaitLock(ctx context.Context, client *api.Client, id string, attempt api.ActionAttempt) (*api.AccessCode, error) {
	var code *api.AccessCode
	err := client.Await(ctx, attempt)
	if isExpired(err) {
		code, err = awaitSettled(ctx, client, id, err)
	} else if err == nil {
		err = api.Poll(ctx, func() (bool, error) {
			found, err := managedCode(ctx, client, id)
			if api.IsNotFound(err) {
				return false, nil // some servers take a moment to show what they have just made
			}
			if err != nil {
				return false, err
			}
			code = found
			return arrived(code, attempt.ActionAttemptID != ""), nil
		})
		if errors.Is(err, context.DeadlineExceeded) && code != nil {
			err = stillWaiting(string(code.Status), err)
		}
	}
	if err == nil {
		return code, nil
	}
	ctx, cancel := lastLook(ctx)
	defer cancel()
	code, readErr := managedCode(ctx, client, id)
	if readErr != nil {
		return nil, err
	}
	if code.Status == api.Set && len(code.Errors) == 0 && len(code.PendingMutations) == 0 {
		return code, nil
	}
	return nil, hidingTold(withProblems(err, code.Errors), code.Code)
}

// arrived says whether there is nothing more to wait for. A code of the future stays unset until it starts, and
// an attempt that has succeeded says so of any code that is unset.
func arrived(code *api.AccessCode, attempted bool) bool {
	switch code.Status {
	case api.Setting, api.Unknown:
		return false
	case api.Unset:
		return attempted || code.StartsAt != nil && code.StartsAt.After(time.Now())
	default:
		return true
	}
}

// awaitGone waits until a code is off its lock, after the attempt that does it.
func awaitGone(ctx context.Context, client *api.Client, deviceID, id string, attempt api.ActionAttempt) error {
	var problems []api.Problem
	var told *string
	status := "there"
	err := client.Await(ctx, attempt)
	if err == nil || isExpired(err) {
		err = api.Poll(ctx, func() (bool, error) {
			managed, unmanaged, err := findCode(ctx, client, deviceID, id)
			if managed != nil {
				status = string(managed.Status)
			}
			return managed == nil && unmanaged == nil, err
		})
		if errors.Is(err, context.DeadlineExceeded) {
			err = stillWaiting(status, err)
		}
	}
	if err == nil {
		return nil
	}
	ctx, cancel := lastLook(ctx)
	defer cancel()
	managed, unmanaged, readErr := findCode(ctx, client, deviceID, id)
	switch {
	case readErr != nil:
		return err
	case managed != nil:
		problems, told = managed.Errors, managed.Code
	case unmanaged != nil:
		problems, told = unmanaged.Errors, unmanaged.Code
	default:
		return nil
	}
	return hidingTold(withProblems(err, problems), told)
}

// hidingTold takes the PIN that the server tells out of the text of an error: here it may not be known.
func hidingTold(err error, pin *string) error {
	if pin == nil {
		return err
	}
	return hiding(err, *pin)
}

// lastLook is a context to read once more with after the time is up.
func lastLook(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// withProblems adds to an error what the code itself says is wrong.
func withProblems(err error, problems []api.Problem) error {
	if len(problems) == 0 {
		return err
	}
	var texts []string
	for _, problem := range problems {
		texts = append(texts, strings.TrimSuffix(problem.Message, ".")+" ("+problem.ErrorCode+")")
	}
	return &troubled{explained{err.Error() + "; the access code says: " + strings.Join(texts, "; "), err}, problems}
}

// troubled is an error with what the access code itself says is wrong.
type troubled struct {
	explained
	problems []api.Problem
}

// accountIsDisconnected says that nothing comes of waiting: somebody has to log in to the lock's account first.
func accountIsDisconnected(err error) bool {
	in, ok := errors.AsType[*troubled](err)
	return ok && slices.ContainsFunc(in.problems, func(p api.Problem) bool { return p.ErrorCode == "account_disconnected" })
}

// logInAgain is what can be done then.
const logInAgain = "The account of the lock is disconnected: have its owner log in again, on the page of a new deviceaccess_connect_webview. An account that was connected on the server " +
	"itself, as those of gateways are, is given its new password there, by `deviceaccess-server accounts update`. "

func stillWaiting(status string, err error) error {
	return &explained{"the access code was still " + status + " when the time was up" + api.Blindly(err), err}
}

// explained is an error with a text of its own.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }
