package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

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
