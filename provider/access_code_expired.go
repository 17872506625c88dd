package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

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
