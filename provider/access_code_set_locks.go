package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// onEach does something with several locks or codes at once, and answers what came of it by identifier. None waits for
// another, so that locks which never answer keep no other from being asked: the client limits the requests.
func onEach[T any](ids []string, do func(id string) T) map[string]T {
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		results = map[string]T{}
	)
	for _, id := range ids {
		all.Go(func() {
			result := do(id)
			mu.Lock()
			defer mu.Unlock()
			results[id] = result
		})
	}
	all.Wait()
	return results
}

// foundCode is what there is of a set on a lock: a code, managed or not, nothing, or an error.
type foundCode struct {
	managed   *api.AccessCode
	unmanaged *api.UnmanagedAccessCode
	err       error
}

type codeFinder = func(ctx context.Context, client *api.Client, deviceID, id string) (*api.AccessCode, *api.UnmanagedAccessCode, error)

func (f foundCode) nothing() bool { return f.managed == nil && f.unmanaged == nil }

// look reads the code with the identifier on a lock, by findCode or refreshCode. It fails when the code is on another
// lock.
func look(ctx context.Context, find codeFinder, client *api.Client, deviceID, id string) (found foundCode) {
	if id == "" {
		return found
	}
	found.managed, found.unmanaged, found.err = find(ctx, client, deviceID, id)
	actual := deviceID
	switch {
	case found.err != nil:
	case found.managed != nil:
		actual = found.managed.DeviceID
	case found.unmanaged != nil:
		actual = found.unmanaged.DeviceID
	}
	if actual != deviceID {
		found.err = fmt.Errorf("the code %[1]s is on the lock %[2]s, not on %[3]s. Name it as %[2]s/%[1]s where it is imported", id, actual, deviceID)
	}
	return found
}

// done is what came of the work on one lock.
type done struct {
	code  lockCode
	gone  bool
	err   error
	doubt *doubt // whether a code is on the lock that is not known
	left  *doubt // the one that the lock was in before, and that nothing more is done about
}

// put creates the code on a lock that has none.
func (m *accessCodeSetModel) put(ctx context.Context, conn *connection, deviceID string) done {
	if m.pin() == "" {
		err := errors.New("the PIN of the set is not known, because the server does not tell it. Write it into `code`")
		return done{code: noCode(err.Error()), err: err}
	}
	answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, conn.api.CreateAccessCode, m.on(deviceID, "").createRequest())
	if err == nil {
		err = hasID("access code", answer.AccessCode.AccessCodeID)
	}
	if err == nil {
		return m.arrived(ctx, conn, answer.AccessCode.AccessCodeID, answer.ActionAttempt)
	}
	failed := done{code: noCode(m.hide(sentence(err.Error()))), err: err}
	if api.MayHaveHappened(err) {
		failed.doubt = m.doubtOf()
		last, cancel := lastLook(ctx)
		defer cancel()
		if code, _, _ := m.lost(last, conn.api, deviceID, failed.doubt, m); code != nil {
			return m.arrived(ctx, conn, code.AccessCodeID, api.ActionAttempt{})
		}
	}
	return failed
}

// arrived waits until a code is on its lock, if that is to be waited for.
func (m *accessCodeSetModel) arrived(ctx context.Context, conn *connection, id string, attempt api.ActionAttempt) done {
	var code *api.AccessCode
	var err error
	if conn.waitForSet {
		code, err = awaitLock(ctx, conn.api, id, attempt)
	} else {
		code, err = managedCode(ctx, conn.api, id)
	}
	if err != nil {
		return m.failed(ctx, conn.api, id, err)
	}
	return done{code: m.managed(code)}
}

// failed is what came of work that failed on a code that exists: what the code itself says by now.
func (m *accessCodeSetModel) failed(ctx context.Context, client *api.Client, id string, err error) done {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	code, readErr := managedCode(ctx, client, id)
	if readErr == nil {
		return done{code: m.managed(code).unless(m.hidesPIN(code) || wasTried(err)), err: err}
	}
	return done{code: lockCode{
		AccessCodeID: types.StringValue(id), Status: types.StringValue(string(api.Unknown)),
		AsDeclared: types.BoolValue(false), Errors: []string{m.hide(sentence(err.Error()))},
	}, err: err}
}

// bring makes the code on a lock what the set wants.
func (m *accessCodeSetModel) bring(ctx context.Context, conn *connection, deviceID, id string) done {
	found := look(ctx, findCode, conn.api, deviceID, id)
	switch {
	case found.err != nil:
		return m.failed(ctx, conn.api, id, untried(found.err))
	case found.nothing():
		return m.put(ctx, conn, deviceID)
	}
	if found.managed != nil && found.managed.Status == api.Removing {
		return m.replace(ctx, conn, deviceID, id)
	}
	plan, actual := m.on(deviceID, id), m.on(deviceID, id)
	actual.Code = types.StringNull() // so that the PIN is written also where the server does not tell the one there is
	if found.unmanaged != nil {
		actual.fillUnmanaged(found.unmanaged)
		code, err := convertPlanned(ctx, conn.api, plan, actual)
		if err != nil {
			return done{code: m.unmanaged(found.unmanaged), err: err}
		}
		found.managed = code
	}
	actual.fill(found.managed)
	actual.CodeWOVersion = types.Int64Null() // so that such a PIN is written whatever is there
	if plan.staysInDoubt(found.managed, true) {
		actual.askAgain(m.pin() != "")
	}
	code, err := changePlanned(ctx, conn.api, plan, actual, conn.waitForSet)
	if err != nil {
		return m.failed(ctx, conn.api, id, err)
	}
	return done{code: m.managed(code)}
}

// remove takes the code off a lock.
func (m *accessCodeSetModel) remove(ctx context.Context, conn *connection, deviceID string, code lockCode, doubt *doubt) done {
	id := code.AccessCodeID.ValueString()
	if id == "" {
		return done{gone: true, left: doubt}
	}
	err := deleteCode(ctx, conn.api, deviceID, id)
	return done{code: code, gone: err == nil, err: err}
}

// reportLock adds what went wrong on one lock of a set, as an error or as a warning. Where kept is false, nothing of the set gets into the
// state.
func (m *accessCodeSetModel) reportLock(ctx context.Context, client *api.Client, diags *diag.Diagnostics, add func(*diag.Diagnostics, path.Path, string, string), kept bool, action, deviceID string, failed done) {
	ctx, cancel := lastLook(ctx)
	defer cancel()
	err := failed.err
	const untouched = "The other locks of the set are not affected by this."
	others := untouched + " The next apply tries this one again."
	if action == actionPut && failed.code.AsDeclared.ValueBool() {
		others = untouched // and there is nothing to apply
	}
	next := nextStep(err)
	switch {
	case failed.doubt != nil && kept:
		look := "The next apply looks on this lock for a code of this name and PIN, before it creates another. Where the server does not tell PINs, look there yourself first."
		if m.writesOnly() {
			look += " Leave `code_wo` as it is until then: it alone tells which PIN to look for."
		}
		next = inDoubt(err, look)
		others = untouched
	case failed.doubt != nil:
		next = inDoubt(err, "Nothing of the set is in the state: look on this lock before running Terraform again, which would create a second access code.")
		others = ""
	case isStillThere(err) && keepsTrying(err):
		next, others = putsItOnAgain, untouched
	case keepsTrying(err) && action == actionRemove:
		next, others = mayStillOpen+raiseDelete+" Where a lock is taken out of the set, `timeouts { update }` counts.", untouched
	case keepsTrying(err):
		next = "The server keeps trying; nothing has to be repeated when the lock is back. For locks that always take longer, raise `timeouts`."
	case errors.Is(err, errCannotBeDeleted):
		next = deletionAdvice(err)
	case errors.Is(err, errCannotBeManaged):
		next = "The code stays on the lock as it is, unmanaged. Take the lock out of `device_ids`, or delete the code in the app of the lock."
	}
	add(diags, path.Root("access_codes").AtMapKey(deviceID), action, m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+joined(next, others))
}

// joined puts sentences behind each other.
func joined(first, second string) string {
	return strings.TrimSpace(first + " " + second)
}
