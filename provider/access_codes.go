package provider

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// What follows are the operations on access codes that take more than one request.

// pageSize is how many records are asked for at once, so that no answer gets too long.
const pageSize = 500

// managedCode reads a managed code. It fails with api.IsNotFound when there is none.
func managedCode(ctx context.Context, client *api.Client, id string) (*api.AccessCode, error) {
	answer, err := api.Answer[api.AccessCodeResponse](client.GetAccessCode(ctx, api.GetAccessCodeRequest{AccessCodeID: id}))
	if err != nil {
		return nil, err
	}
	return &answer.AccessCode, sameID("access code", answer.AccessCode.AccessCodeID, id)
}

// unmanagedCode reads an unmanaged code. Some servers do not do that by identifier, but only list the codes
// of a device: there it fails with api.IsNoRoute when the device is not known. Where there is no such code
// it answers nil.
func unmanagedCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.UnmanagedAccessCode, error) {
	answer, err := api.Answer[api.UnmanagedAccessCodeResponse](client.GetUnmanagedAccessCode(ctx, api.GetAccessCodeRequest{AccessCodeID: id}))
	switch {
	case err == nil:
		return &answer.AccessCode, sameID("access code", answer.AccessCode.AccessCodeID, id)
	case api.IsNotFound(err):
		return nil, nil
	case !api.IsNoRoute(err) || deviceID == "":
		return nil, err
	}
	codes, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	for i := range codes {
		if codes[i].AccessCodeID == id {
			return &codes[i], nil
		}
	}
	return nil, nil
}

// unmanagedCodes lists the unmanaged codes of a device.
func unmanagedCodes(ctx context.Context, client *api.Client, deviceID string) ([]api.UnmanagedAccessCode, error) {
	return api.Collect(api.Pages(func(cursor string) ([]api.UnmanagedAccessCode, api.Pagination, error) {
		request := api.ListUnmanagedAccessCodesRequest{DeviceID: deviceID, Limit: pageSize, PageCursor: cursor}
		answer, err := api.Answer[api.UnmanagedAccessCodesResponse](client.ListUnmanagedAccessCodes(ctx, request))
		if err != nil {
			return nil, api.Pagination{}, err
		}
		return answer.AccessCodes, answer.Pagination, nil
	}))
}

// findCode reads a code, managed or not. Where there is none, both are nil.
func findCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	managed, err := managedCode(ctx, client, id)
	if !api.IsNotFound(err) {
		return managed, nil, err
	}
	unmanaged, err := unmanagedCode(ctx, client, deviceID, id)
	return nil, unmanaged, err
}

// errCannotBeManaged is what convertCode fails with when the vendor does not allow it.
var errCannotBeManaged = errors.New("the vendor of this lock does not let existing codes be converted to managed, as igloohome, Kwikset and SmartThings do not")

// convertCode makes an unmanaged code managed. Conversions are known to report a failure and to have happened
// all the same, so the code itself is asked before an error is believed.
func convertCode(ctx context.Context, client *api.Client, request api.ConvertAccessCodeRequest) (*api.AccessCode, error) {
	answer, err := api.Answer[api.ActionAttemptResponse](client.ConvertUnmanagedAccessCode(ctx, request))
	if err == nil {
		err = client.Await(ctx, answer.ActionAttempt)
	}
	if err != nil {
		ctx, cancel := lastLook(ctx)
		defer cancel()
		if code, readErr := managedCode(ctx, client, request.AccessCodeID); readErr == nil {
			return code, nil
		}
		return nil, err
	}
	var code *api.AccessCode
	err = api.Poll(ctx, func() (bool, error) {
		code, err = managedCode(ctx, client, request.AccessCodeID)
		if api.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	return code, err
}

// awaitLock waits until a code is on its lock, or is scheduled to be, after the attempt that does it. Where the
// server gives no attempt, the status alone tells.
func awaitLock(ctx context.Context, client *api.Client, id string, attempt api.ActionAttempt) (*api.AccessCode, error) {
	var code *api.AccessCode
	err := client.Await(ctx, attempt)
	if err == nil {
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
	return nil, withProblems(err, code.Errors)
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
	status := "there"
	err := client.Await(ctx, attempt)
	if err == nil {
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
		problems = managed.Errors
	case unmanaged != nil:
		problems = unmanaged.Errors
	default:
		return nil
	}
	return withProblems(err, problems)
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
	return &explained{err.Error() + "; the access code says: " + strings.Join(texts, "; "), err}
}

func stillWaiting(status string, err error) error {
	return &explained{"the access code was still " + status + " when the time was up", err}
}

// explained is an error with a text of its own.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }
