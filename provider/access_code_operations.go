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
)

// What follows are the operations on access codes that take more than one request.

// managedCode reads a managed code. It fails with api.IsNotFound when there is none, also where the server answers with
// one that it calls unmanaged.
func managedCode(ctx context.Context, client *api.Client, id string) (*api.AccessCode, error) {
	answer, err := api.Call[api.AccessCodeResponse](ctx, client.GetAccessCode, api.GetAccessCodeRequest{AccessCodeID: id})
	if err != nil {
		return nil, err
	}
	if err := sameID("access code", answer.AccessCode.AccessCodeID, id); err != nil {
		return nil, err
	}
	if !answer.AccessCode.IsManaged {
		return nil, &api.ResponseError{Status: http.StatusNotFound, Type: "access_code_not_found", Message: "the access code is not managed"}
	}
	return &answer.AccessCode, nil
}

// unmanagedCode reads an unmanaged code. Some servers do not do that by identifier, but only list the codes
// of a device: there it fails with api.IsNoRoute when the device is not known. Where there is no such code
// it answers nil.
func unmanagedCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.UnmanagedAccessCode, error) {
	answer, err := api.Call[api.UnmanagedAccessCodeResponse](ctx, client.GetUnmanagedAccessCode, api.GetAccessCodeRequest{AccessCodeID: id})
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
	codes, err := api.Collect(client.UnmanagedAccessCodes(ctx, deviceID))
	// Some servers list the codes of all devices, whichever was asked for.
	return slices.DeleteFunc(codes, func(code api.UnmanagedAccessCode) bool { return code.DeviceID != deviceID }), err
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

// refreshCode is findCode for reading many codes: lists answer most of it. What they do not tell is asked for by
// itself before it is called gone.
func (c *connection) refreshCode(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error) {
	if managed := c.reads.AccessCode(ctx, deviceID, id); managed != nil {
		return managed, nil, nil
	}
	if unmanaged := c.reads.UnmanagedAccessCode(ctx, deviceID, id); unmanaged != nil {
		return nil, unmanaged, nil
	}
	return findCode(ctx, client, deviceID, id)
}

// errCannotBeManaged is what convertCode fails with when the vendor does not allow it.
var errCannotBeManaged = errors.New("the vendor of this lock does not let existing codes be converted to managed, as igloohome, Kwikset and SmartThings do not")

// convertCode makes an unmanaged code managed. Conversions are known to report a failure and to have happened
// all the same, so the code itself is asked before an error is believed.
func convertCode(ctx context.Context, client *api.Client, request api.ConvertAccessCodeRequest) (*api.AccessCode, error) {
	answer, err := api.Call[api.ActionAttemptResponse](ctx, client.ConvertUnmanagedAccessCode, request)
	if api.IsNoRoute(err) { // older servers convert by an update
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.UpdateUnmanagedAccessCode, api.UpdateUnmanagedAccessCodeRequest{
			AccessCodeID: request.AccessCodeID, IsManaged: true, IsExternalModificationAllowed: request.IsExternalModificationAllowed,
		})
	}
	if err == nil {
		err = client.Await(ctx, answer.ActionAttempt)
	}
	if err != nil {
		last, cancel := lastLook(ctx)
		defer cancel()
		if code, readErr := managedCode(last, client, request.AccessCodeID); readErr == nil {
			return code, nil
		}
		if isExpired(err) && ctx.Err() == nil { // nobody goes on with a conversion
			return convertCode(ctx, client, request)
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
	return code, err
}

// convertPlanned makes the code managed, unless its vendor is known not to allow it.
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

// changePlanned changes what the plan changes, and answers the code as it is then: on its lock, if that is to be
// waited for.
func changePlanned(ctx context.Context, client *api.Client, plan, state *accessCodeModel, wait bool) (*api.AccessCode, error) {
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

// errNotTried is what work on a code fails with when the time was up before the server was asked for it.
var errNotTried = errors.New("not tried")

// untried is the error of a read without which nothing was written.
func untried(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", errNotTried, err)
	}
	return err
}

// notTried says of an error that the server was not asked, because the time was up before.
func notTried(err error) bool { return errors.Is(err, errNotTried) || api.IsNotSent(err) }

// keepsTrying says of an error that the time was up, but the server was asked and goes on by itself.
func keepsTrying(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !notTried(err) && !api.IsNotConnected(err)
}

// errGone is what deleteCode fails with when the server does not know the code.
var errGone = errors.New("the server does not know the access code")

var errCannotBeDeleted = errors.New("the vendor of this lock does not let codes be deleted that the workspace does not manage")

// deleteCode takes a code off its lock, by the operation that is right for what the code is now.
func deleteCode(ctx context.Context, client *api.Client, deviceID, id string) error {
	managed, unmanaged, err := findCode(ctx, client, deviceID, id)
	if err != nil {
		return untried(err)
	}
	var answer *api.ActionAttemptResponse
	switch {
	case managed != nil:
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.DeleteAccessCode, api.DeleteAccessCodeRequest{AccessCodeID: id})
	case unmanaged != nil && unmanaged.CannotDeleteUnmanagedAccessCode:
		return errCannotBeDeleted
	case unmanaged != nil:
		answer, err = api.Call[api.ActionAttemptResponse](ctx, client.DeleteUnmanagedAccessCode, api.DeleteUnmanagedAccessCodeRequest{AccessCodeID: id})
	}
	if api.IsNotFound(err) || answer == nil && err == nil {
		return errGone
	}
	if err != nil {
		return err
	}
	return awaitGone(ctx, client, deviceID, id, answer.ActionAttempt)
}

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

// A server ends an action attempt when its own patience is over, by default after ten minutes, and goes on with the code: the lock may come
// back in an hour. That is no refusal, and no reason to wait for less than `timeouts` says; only the code itself tells then how far it is.

// isExpired says of an error that the server has ended the attempt, and not the work.
func isExpired(err error) bool {
	attempt, ok := errors.AsType[*api.AttemptError](err)
	return ok && attempt.Reason != nil && attempt.Reason.Type == "action_attempt_expired"
}

// awaitSettled waits until the lock has the code as it is wanted, or has refused it, after the attempt that did it has expired. An attempt that is
// refused ends with that, so what the code has against it at first is older.
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
		return settled(code) || refused(code) && latest.After(*older), nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &explained{"it was still on its way to the lock when the time was up" + api.Blindly(err), err}
	case err == nil && !settled(code):
		return nil, &explained{"the lock has refused it, after its action attempt had expired", expired}
	}
	return code, err
}

// latestRefusal is when the latest of the errors began after which the server does not try any more.
func latestRefusal(code *api.AccessCode) (latest time.Time) {
	for _, problem := range code.Errors {
		goesOn := strings.HasSuffix(problem.Message, "It is tried again.") || problem.ErrorCode == "conflicting_external_modification"
		if problem.IsAccessCodeError && !goesOn && problem.CreatedAt.After(latest) {
			latest = problem.CreatedAt
		}
	}
	return latest
}

// settled says whether nothing of a code is on its way to its lock: a server may call it set although a change of it is. One of the future waits for its time.
func settled(code *api.AccessCode) bool {
	return arrived(code, false) && !slices.ContainsFunc(code.PendingMutations, func(m api.PendingMutation) bool { return m.MutationCode != "deferring_creation" })
}

// A server tells the PIN, name and time frame that are wanted of a code, also once its lock has refused them and goes on opening for what it had
// before. Nothing differs then from the configuration, and yet the change is to be asked for again: servers try what was refused only when they are
// asked anew.

// hasOwnError says whether the server finds something wrong with the code itself, instead of with its lock or account.
func hasOwnError(code *api.AccessCode) bool {
	return slices.ContainsFunc(code.Errors, func(p api.Problem) bool { return p.IsAccessCodeError })
}

// refused says whether a lock has refused what is wanted of a code. Nobody can ask for anything else of an offline code.
func refused(code *api.AccessCode) bool {
	waits := code.Status == api.Set || code.Status == api.Unset
	return waits && hasOwnError(code) && len(code.PendingMutations) > 0 && !code.IsOfflineAccessCode
}

// changeInDoubtKey is where the private state of a code keeps that a change of it failed, or that its lock has refused one. The next apply asks for
// it again.
const changeInDoubtKey = "pin_in_doubt"

func doubtChange(ctx context.Context, private privateState, so bool) diag.Diagnostics {
	return private.SetKey(ctx, changeInDoubtKey, fmt.Append(nil, so))
}

func doubtsChange(ctx context.Context, private privateState, diags *diag.Diagnostics) bool {
	so, problems := private.GetKey(ctx, changeInDoubtKey)
	diags.Append(problems...)
	return string(so) == "true"
}

// staysInDoubt says whether a change that was in doubt still is, by what the server says now: until the lock has the code, or waits for its time. Where the
// state does not show which PIN the server has, nobody can tell.
func (m *accessCodeModel) staysInDoubt(code *api.AccessCode, doubted bool) bool {
	settled := code.Status == api.Unset || code.Status == api.Set && len(code.PendingMutations) == 0
	return refused(code) || doubted && (!settled || hasOwnError(code) || code.Code == nil || m.writesOnly())
}

// askAgain forgets what the state has of a change in doubt, so that it is asked for again: the PIN, if the configuration has one. Where the server or
// the vendor makes it, neither need take one, and the name does.
func (m *accessCodeModel) askAgain(hasPIN bool) {
	if hasPIN {
		m.Code, m.CodeWOVersion = types.StringNull(), types.Int64Null()
	} else {
		m.Name = types.StringNull()
	}
}

// wasTried says of an error that the work was begun, and has come to nothing.
func wasTried(err error) bool {
	attempt, ok := errors.AsType[*api.AttemptError](err)
	return ok && attempt.Err == nil
}
