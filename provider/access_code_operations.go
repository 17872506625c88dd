package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
)

// The functions of this file implement operations on access codes that take more than one request.

// managedCode reads a managed code. The error satisfies api.IsNotFound if there is none, or if the server returns an
// unmanaged code.
func managedCode(ctx context.Context, client *api.Client, id string) (*api.AccessCode, error) {
	answer, err := api.Call[api.AccessCodeResponse](
		ctx,
		client.GetAccessCode,
		api.GetAccessCodeRequest{AccessCodeID: id},
	)
	if err != nil {
		return nil, err
	}
	if err := sameID("access code", answer.AccessCode.AccessCodeID, id); err != nil {
		return nil, err
	}
	if !answer.AccessCode.IsManaged {
		return nil, &api.ResponseError{
			Status:  http.StatusNotFound,
			Type:    "access_code_not_found",
			Message: "the access code is not managed",
		}
	}
	return &answer.AccessCode, nil
}

// unmanagedCode reads an unmanaged code, or returns nil if there is none. Some servers only list unmanaged codes by
// device: without a device, the error then satisfies api.IsNoRoute.
func unmanagedCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.UnmanagedAccessCode, error) {
	answer, err := api.Call[api.UnmanagedAccessCodeResponse](
		ctx,
		client.GetUnmanagedAccessCode,
		api.GetAccessCodeRequest{AccessCodeID: id},
	)
	switch {
	case err == nil:
		return &answer.AccessCode, sameID("access code", answer.AccessCode.AccessCodeID, id)
	case api.IsNotFound(err):
		return nil, nil
	case !api.IsNoRoute(err) || deviceID == "":
		return nil, err
	}
	codes, err := unmanagedCodes(ctx, client, deviceID)
	if api.IsNotFound(err) { // a lock that was removed has none
		return nil, nil
	}
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
	codes, err := api.Collect(client.UnmanagedAccessCodes(ctx, deviceID))
	// Some servers ignore device_id and list the codes of all devices.
	return slices.DeleteFunc(codes, func(code api.UnmanagedAccessCode) bool { return code.DeviceID != deviceID }), err
}

// findCode reads a code, managed or not. Both results are nil if there is none.
func findCode(
	ctx context.Context,
	client *api.Client,
	deviceID, id string,
) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	managed, err := managedCode(ctx, client, id)
	if !api.IsNotFound(err) {
		return managed, nil, err
	}
	unmanaged, err := unmanagedCode(ctx, client, deviceID, id)
	return nil, unmanaged, err
}

// refreshCode is findCode for many codes: it uses lists. It reads a code that is on no list separately, before the code
// counts as deleted.
func (c *connection) refreshCode(
	ctx context.Context,
	client *api.Client,
	deviceID, id string,
) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	if managed := c.reads.AccessCode(ctx, deviceID, id); managed != nil {
		return managed, nil, nil
	}
	if unmanaged := c.reads.UnmanagedAccessCode(ctx, deviceID, id); unmanaged != nil {
		return nil, unmanaged, nil
	}
	return findCode(ctx, client, deviceID, id)
}

// errCannotBeManaged is the error of a conversion that the vendor does not allow.
var errCannotBeManaged = errors.New("the vendor of this lock does not allow existing codes to be converted to " +
	"managed, like igloohome, Kwikset, and SmartThings")

// convertCode converts an unmanaged code to managed. Some conversions report a failure although they succeeded, so it
// reads the code before it returns an error.
func convertCode(
	ctx context.Context,
	client *api.Client,
	request api.ConvertAccessCodeRequest,
) (*api.AccessCode, error) {
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.ConvertUnmanagedAccessCode, request)
	if api.IsNoRoute(err) { // older servers convert by an update
		answer, err = api.Call[api.ActionAttemptResponse](
			ctx,
			client.UpdateUnmanagedAccessCode,
			api.UpdateUnmanagedAccessCodeRequest{
				AccessCodeID:                  request.AccessCodeID,
				IsManaged:                     true,
				IsExternalModificationAllowed: request.IsExternalModificationAllowed,
			},
		)
	}
	accepted := err == nil
	if accepted {
		err = client.Await(ctx, answer.ActionAttempt)
	}
	if err != nil {
		last, cancel := finalReadContext(ctx)
		defer cancel()
		if code, readErr := managedCode(last, client, request.AccessCodeID); readErr == nil {
			return code, nil
		}
		if isExpired(err) && ctx.Err() == nil { // the server does not continue a conversion
			return convertCode(ctx, client, request)
		}
		if accepted && !attemptFailed(err) { // the server does not repeat a failed conversion
			err = acceptedError{err}
		}
		return nil, err
	}
	var code *api.AccessCode
	err = api.Poll(ctx, func() (bool, error) {
		code, err = managedCode(ctx, client, request.AccessCodeID)
		if api.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		err = acceptedError{err}
	}
	return code, err
}

// acceptedError is an error of the wait for a conversion that the server has accepted and that has not failed.
type acceptedError struct{ error }

func (e acceptedError) Unwrap() error { return e.error }

// isAccepted reports whether the error leaves an accepted conversion pending.
func isAccepted(err error) bool {
	_, ok := errors.AsType[acceptedError](err)
	return ok
}

// convertPlanned converts the code to managed, unless the server says that its vendor does not allow it.
func convertPlanned(ctx context.Context, client *api.Client, plan, state *accessCodeModel) (*api.AccessCode, error) {
	managed, unmanaged, err := findCode(ctx, client, state.DeviceID.ValueString(), state.AccessCodeID.ValueString())
	switch {
	case err != nil || managed != nil:
		return managed, untried(err)
	case unmanaged != nil && unmanaged.CannotBeManaged:
		return nil, errCannotBeManaged
	}
	return convertCode(ctx, client, plan.convertRequest())
}

// changePlanned sends the changes of the plan and returns the code afterwards. With wait, it waits until the lock has
// the change.
func changePlanned(
	ctx context.Context,
	client *api.Client,
	plan, state *accessCodeModel,
	wait bool,
) (*api.AccessCode, error) {
	id := state.AccessCodeID.ValueString()
	request, changes := plan.updateRequest(state)
	if !changes {
		return managedCode(ctx, client, id)
	}
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.UpdateAccessCode, request)
	if err != nil {
		return nil, err
	}
	if !wait {
		return managedCode(ctx, client, id)
	}
	return awaitLock(ctx, client, id, answer.ActionAttempt)
}

// errNotTried is the error of work whose timeout ended before the first write.
var errNotTried = errors.New("not tried")

// untried marks the error of a read that preceded the first write.
func untried(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", errNotTried, err)
	}
	return err
}

// notTried reports whether the timeout ended before the provider sent the request.
func notTried(err error) bool { return errors.Is(err, errNotTried) || api.IsNotSent(err) }

// keepsTrying reports whether the timeout ended although the server has the request and keeps trying.
func keepsTrying(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !notTried(err) && !api.IsNotConnected(err)
}

// errGone is the error of deleteCode if the server does not know the code.
var errGone = errors.New("the server does not know the access code")

var errCannotBeDeleted = errors.New("the vendor of this lock does not allow unmanaged codes to be deleted")

// deleteCode deletes a managed or unmanaged code and waits until it has left the lock.
func deleteCode(ctx context.Context, client *api.Client, deviceID, id string) error {
	managed, unmanaged, err := findCode(ctx, client, deviceID, id)
	if err != nil {
		return untried(err)
	}
	var answer *api.ActionAttemptResponse
	switch {
	case managed != nil:
		answer, err = api.Call[api.ActionAttemptResponse](
			ctx,
			client.DeleteAccessCode,
			api.DeleteAccessCodeRequest{AccessCodeID: id},
		)
	case unmanaged != nil && unmanaged.CannotDeleteUnmanagedAccessCode:
		return errCannotBeDeleted
	case unmanaged != nil:
		answer, err = api.Call[api.ActionAttemptResponse](
			ctx,
			client.DeleteUnmanagedAccessCode,
			api.DeleteUnmanagedAccessCodeRequest{AccessCodeID: id},
		)
	}
	if api.IsNotFound(err) || answer == nil && err == nil {
		return errGone
	}
	if err != nil {
		return err
	}
	return awaitGone(ctx, client, deviceID, id, answer.ActionAttempt)
}

// Terraform does not order the deletion of one resource and the creation of another. A PIN that moves between two
// addresses is still on the lock when the new code is created, and the old one leaves a moment later.

const duplicateCode = "duplicate_access_code"

// duplicateTimeout is how long a creation waits for the removal of a managed code with the same PIN to begin.
var duplicateTimeout = 20 * time.Second

// createCode creates an access code. The error names the code on the lock that has the same PIN, if there is one and
// it is known.
func createCode(
	ctx context.Context,
	client *api.Client,
	request api.CreateAccessCodeRequest,
) (*api.AccessCodeCreatedResponse, error) {
	answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, client.CreateAccessCode, request)
	if err == nil {
		err = hasID("access code", answer.AccessCode.AccessCodeID)
	}
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok || refused.Type != duplicateCode || refused.ManagedAccessCodeID+refused.UnmanagedAccessCodeID != "" ||
		request.Code == "" {
		return answer, err
	}
	for code, listErr := range client.AccessCodes(ctx, request.DeviceID) {
		if listErr == nil && code.DeviceID == request.DeviceID && code.Code != nil && *code.Code == request.Code &&
			(refused.ManagedAccessCodeID == "" || !isApart(&code, request)) {
			refused.ManagedAccessCodeID = code.AccessCodeID
		}
	}
	return answer, err
}

// isApart reports whether a code and a new one may have the same PIN, because of their time frames.
func isApart(code *api.AccessCode, request api.CreateAccessCodeRequest) bool {
	planned := lockrules.Frame{
		StartsAt: instant{types.StringValue(request.StartsAt)}.time(),
		EndsAt:   instant{types.StringValue(request.EndsAt)}.time(),
	}
	return lockrules.Frame{StartsAt: code.StartsAt, EndsAt: code.EndsAt}.Apart(planned)
}

// createRetryingDuplicates is createCode for a PIN that may just be leaving the lock with another managed code, or
// whose code may just be moved to another time frame. Once that code is being removed, only the context limits the
// wait.
func createRetryingDuplicates(
	ctx context.Context,
	client *api.Client,
	request api.CreateAccessCodeRequest,
) (*api.AccessCodeCreatedResponse, error) {
	answer, err := createCode(ctx, client, request)
	if managedHolder(err) == "" {
		return answer, err
	}
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(duplicateTimeout, cancel)
	defer limit.Stop()
	moved := false // some servers do not let codes take turns, so a moved code is a reason for one more request only
	_ = api.Poll(wait, func() (bool, error) {
		holder, readErr := managedCode(wait, client, managedHolder(err))
		switch {
		case readErr != nil && !api.IsNotFound(readErr):
			return false, readErr
		case readErr == nil && holder.Status == api.Removing:
			limit.Stop()
		case readErr == nil && (moved || !isApart(holder, request)):
			return false, nil
		case readErr == nil:
			moved = true
		}
		answer, err = createCode(ctx, client, request)
		return managedHolder(err) == "", nil
	})
	return answer, err
}

// managedHolder returns the managed code because of which a creation was refused, or "".
func managedHolder(err error) string {
	refused, ok := errors.AsType[*api.ResponseError](err)
	if !ok || refused.Type != duplicateCode {
		return ""
	}
	return refused.ManagedAccessCodeID
}

// awaitLock waits for an action attempt, and then until the code is on its lock or scheduled. Without an attempt, it
// uses the status of the code only. With an error, it returns the code as last read, or nil if that failed.
func awaitLock(ctx context.Context, client *api.Client, id string, attempt api.ActionAttempt) (*api.AccessCode, error) {
	var code *api.AccessCode
	err := client.Await(ctx, attempt)
	if isExpired(err) {
		code, err = awaitSettled(ctx, client, id, err)
	} else if err == nil {
		err = api.Poll(ctx, func() (bool, error) {
			found, err := managedCode(ctx, client, id)
			if api.IsNotFound(err) {
				return false, nil // some servers show new codes with a delay
			}
			if err != nil {
				return false, err
			}
			code = found
			return hasArrived(code, attempt.ActionAttemptID != ""), nil
		})
		if errors.Is(err, context.DeadlineExceeded) && code != nil {
			err = stillWaiting(string(code.Status), err)
		}
	}
	if err == nil {
		return code, nil
	}
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	code, readErr := managedCode(ctx, client, id)
	if readErr != nil {
		return nil, err
	}
	if code.Status == api.Set && len(code.Errors) == 0 && len(code.PendingMutations) == 0 {
		return code, nil
	}
	if code.Status == api.Unset && slices.ContainsFunc(code.Errors, isFinal) {
		err = &explainedError{err.Error(), errors.Join(errRefused, err)}
	}
	return code, hidingTold(withProblems(err, code.Errors), code.Code)
}

// hasArrived reports whether the wait is over. A future code stays unset until it starts, and after a successful
// attempt any unset code is done.
func hasArrived(code *api.AccessCode, attempted bool) bool {
	switch code.Status {
	case api.Setting, api.Unknown:
		return false
	case api.Unset:
		return attempted || code.StartsAt != nil && code.StartsAt.After(time.Now())
	default:
		return true
	}
}

// awaitGone waits for an action attempt, and then until the code has left its lock.
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
	ctx, cancel := finalReadContext(ctx)
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

// hidingTold removes the PIN that the server returns from the text of an error, because the model may not have it.
func hidingTold(err error, pin *string) error {
	if pin == nil {
		return err
	}
	return redacted(err, *pin)
}

// finalReadContext returns a context for one more read after the timeout.
func finalReadContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// withProblems adds the errors of the code to an error. The text leaves out an error that it already has.
func withProblems(err error, problems []api.Problem) error {
	if len(problems) == 0 {
		return err
	}
	attempt, _ := errors.AsType[*api.AttemptError](err)
	told := func(p api.Problem) bool {
		return attempt != nil && attempt.Reason != nil && attempt.Reason.Type == p.ErrorCode
	}
	text := err.Error()
	if others := slices.DeleteFunc(slices.Clone(problems), told); len(others) > 0 {
		text += "; the access code says: " + strings.Join(problemTexts(others), "; ")
	}
	return &problemError{explainedError{text, err}, problems}
}

// problemError is an error with the errors of the access code.
type problemError struct {
	explainedError
	problems []api.Problem
}

// accountIsDisconnected reports whether waiting is useless, because the owner must log in to the lock's account first.
func accountIsDisconnected(err error) bool {
	in, ok := errors.AsType[*problemError](err)
	return ok &&
		slices.ContainsFunc(in.problems, func(p api.Problem) bool { return p.ErrorCode == "account_disconnected" })
}

// logInAgain says what to do about a disconnected account.
const logInAgain = "The account of the lock is disconnected: its owner must log in again, on the page of a new " +
	"deviceaccess_connect_webview. For an account that was connected on the server itself, such as that of a " +
	"gateway, set the new password there with `deviceaccess-server accounts update`. "

func stillWaiting(status string, err error) error {
	return &explainedError{
		"the access code was still " + status + " when the time was up" + api.PollFailureSuffix(err),
		err,
	}
}

// explainedError is an error with another text.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.err }

// A server ends an action attempt after its own timeout, by default ten minutes, and continues with the code: the
// lock may come online an hour later. That is not a rejection, so the provider waits until its own timeout and polls
// the code.

// isExpired reports whether the server has ended the attempt but not the work.
func isExpired(err error) bool {
	attempt, ok := errors.AsType[*api.AttemptError](err)
	return ok && attempt.Reason != nil && attempt.Reason.Type == "action_attempt_expired"
}

// awaitSettled waits after an expired attempt until the lock has the desired code or has rejected it. Errors that the
// code has at first are older: a rejection would have ended the attempt.
func awaitSettled(ctx context.Context, client *api.Client, id string, expired error) (code *api.AccessCode, err error) {
	var older *time.Time
	err = api.Poll(ctx, func() (bool, error) {
		code, err = managedCode(ctx, client, id)
		if err != nil {
			return false, err
		}
		latest := latestRefusal(code)
		if older == nil {
			older = &latest
		}
		return isSettled(code) || isRejected(code) && latest.After(*older), nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &explainedError{
			"the code was still on its way to the lock when the time was up" + api.PollFailureSuffix(err),
			err,
		}
	case err == nil && !isSettled(code):
		return code, &explainedError{
			"the lock has rejected the code after its action attempt expired",
			errors.Join(errRefused, expired),
		}
	}
	return code, err
}

// isFinal reports whether an error stops the server from retrying.
func isFinal(problem api.Problem) bool {
	return problem.IsAccessCodeError && !strings.HasSuffix(problem.Message, "It is tried again.") &&
		problem.ErrorCode != "conflicting_external_modification"
}

// latestRefusal returns the time of the newest error that stops the server from retrying.
func latestRefusal(code *api.AccessCode) (latest time.Time) {
	for _, problem := range code.Errors {
		if isFinal(problem) && problem.CreatedAt.After(latest) {
			latest = problem.CreatedAt
		}
	}
	return latest
}

// isSettled reports whether no change of a code is pending. A server may report set while a change is pending. A future
// code waits for its start.
func isSettled(code *api.AccessCode) bool {
	return hasArrived(code, false) &&
		!slices.ContainsFunc(
			code.PendingMutations,
			func(m api.PendingMutation) bool { return m.MutationCode != "deferring_creation" },
		)
}

// A server returns the desired PIN, name, and time frame of a code even after its lock has rejected them and keeps
// the previous ones. The state then equals the configuration, but the provider must send the change again: servers
// retry a rejected change only on request.

// hasOwnError reports whether the code has an error about itself, not about its lock or account.
func hasOwnError(code *api.AccessCode) bool {
	return slices.ContainsFunc(code.Errors, func(p api.Problem) bool { return p.IsAccessCodeError })
}

// isRejected reports whether a lock has rejected the desired code. Offline codes cannot be changed, so they are never
// refused.
func isRejected(code *api.AccessCode) bool {
	waits := code.Status == api.Set || code.Status == api.Unset
	return waits && hasOwnError(code) && len(code.PendingMutations) > 0 && !code.IsOfflineAccessCode
}

// uncertainChangeKey is the key of the private state that records a failed or rejected change. The next apply sends the
// change again.
const uncertainChangeKey = "pin_in_doubt"

func recordUncertainChange(ctx context.Context, private privateState, so bool) diag.Diagnostics {
	return private.SetKey(ctx, uncertainChangeKey, fmt.Append(nil, so))
}

func hasUncertainChange(ctx context.Context, private privateState, diags *diag.Diagnostics) bool {
	so, problems := private.GetKey(ctx, uncertainChangeKey)
	diags.Append(problems...)
	return string(so) == "true"
}

// isUncertain reports whether a change is uncertain: until the lock has the code or the code waits for its start. If
// the state does not show the server's PIN, the change stays uncertain.
func (m *accessCodeModel) isUncertain(code *api.AccessCode, doubted bool) bool {
	settled := code.Status == api.Unset || code.Status == api.Set && len(code.PendingMutations) == 0
	return isRejected(code) || doubted && (!settled || hasOwnError(code) || code.Code == nil || m.writesOnly())
}

// resend clears the state of an uncertain change, so that the provider sends it again: the PIN if the configuration
// has one, else the name, because the server or the vendor chooses the PIN.
func (m *accessCodeModel) resend(hasPIN bool) {
	if hasPIN {
		m.Code, m.CodeWOVersion = types.StringNull(), types.Int64Null()
	} else {
		m.Name = types.StringNull()
	}
}

// attemptFailed reports whether the work started and failed.
func attemptFailed(err error) bool {
	attempt, ok := errors.AsType[*api.AttemptError](err)
	return ok && attempt.Err == nil
}

// errRefused marks the refusal of a lock that no failed attempt reports.
var errRefused = errors.New("the lock has refused the code")

// pausedTypes are the errors of attempts that a server fails because it cannot change the lock for now. The server
// keeps the code and sets it later, so they are no refusals.
var pausedTypes = []string{
	"account_disconnected",
	"device_disconnected",
	"device_offline",
	"device_removed",
	"device_unmanaged",
	"hub_disconnected",
	"subscription_required",
}

// isRefusal reports whether the lock has refused the code, so that it never gets there. Every other end of the wait
// leaves the code to the server.
func isRefusal(err error) bool {
	if errors.Is(err, errRefused) {
		return true
	}
	attempt, ok := errors.AsType[*api.AttemptError](err)
	return ok && attempt.Err == nil && !isExpired(err) &&
		(attempt.Reason == nil || !slices.Contains(pausedTypes, attempt.Reason.Type))
}
