package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// onEach calls do for several locks or codes concurrently, and returns the results by identifier. A lock that does
// not answer blocks no other lock. The client limits the number of requests.
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

// foundCode is the code of a shared code on a lock: managed, unmanaged, nothing, or an error.
type foundCode struct {
	managed   *api.AccessCode
	unmanaged *api.UnmanagedAccessCode
	err       error
}

type codeFinder = func(
	ctx context.Context, client *api.Client, deviceID, id string,
) (*api.AccessCode, *api.UnmanagedAccessCode, error)

func (f foundCode) nothing() bool { return f.managed == nil && f.unmanaged == nil }

// readOnLock reads a code on a lock with findCode or refreshCode. It fails if the code is on another lock.
func readOnLock(ctx context.Context, find codeFinder, client *api.Client, deviceID, id string) (found foundCode) {
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
		found.err = fmt.Errorf("the code %[1]s is on the lock %[2]s, not on %[3]s. Name it as %[2]s/%[1]s where it "+
			"is imported", id, actual, deviceID)
	}
	return found
}

// lockResult is what came of the work on one lock.
type lockResult struct {
	code       lockCode
	removed    bool
	err        error
	uncertain  *uncertain // whether a code is on the lock that is not known
	unresolved *uncertain // the one that the lock was in before, and that nothing more is done about
}

// isRefused reports whether the lock has no code and gets none: the server did not create it, or the lock has refused
// it. A wait that ended otherwise is no refusal, because the server keeps trying.
func (r lockResult) isRefused() bool {
	switch {
	case r.err == nil || r.uncertain != nil:
		return false
	case r.code.AccessCodeID.IsNull():
		return true
	}
	return isRefusal(r.err)
}

// createOn creates the code on a lock without one.
func (m *sharedAccessCodeModel) createOn(ctx context.Context, conn *connection, deviceID string) lockResult {
	if m.pin() == "" {
		err := errors.New("the PIN of the shared code is not known, because the server does not return it. Set `code`")
		return lockResult{code: noCode(failureOf(err, "")), err: err}
	}
	answer, err := createRetryingDuplicates(ctx, conn.api, m.codeOn(deviceID, "").createRequest())
	if err == nil {
		return m.arrived(ctx, conn, answer.AccessCode.AccessCodeID, answer.ActionAttempt)
	}
	failed := lockResult{code: noCode(failureOf(err, m.pin())), err: err}
	if api.MayHaveHappened(err) {
		failed.uncertain = m.newUncertain()
		last, cancel := finalReadContext(ctx)
		defer cancel()
		if code, _, _ := m.findLostCode(last, conn.api, deviceID, failed.uncertain, m); code != nil {
			return m.arrived(ctx, conn, code.AccessCodeID, api.ActionAttempt{})
		}
	}
	return failed
}

// arrived waits until a code is on its lock, unless wait_until_on_lock is false.
func (m *sharedAccessCodeModel) arrived(
	ctx context.Context,
	conn *connection,
	id string,
	attempt api.ActionAttempt,
) lockResult {
	var code *api.AccessCode
	var err error
	if conn.waitUntilOnLock {
		code, err = awaitLock(ctx, conn.api, id, attempt)
	} else {
		code, err = managedCode(ctx, conn.api, id)
	}
	if err != nil {
		return m.failedResult(ctx, conn.api, id, err)
	}
	return lockResult{code: m.managed(code)}
}

// failedResult returns the result of failed work on an existing code, with the current state of the code.
func (m *sharedAccessCodeModel) failedResult(ctx context.Context, client *api.Client, id string, err error) lockResult {
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	code, readErr := managedCode(ctx, client, id)
	if readErr == nil {
		return lockResult{code: m.managed(code).undeclaredIf(m.hidesPIN(code) || attemptFailed(err)), err: err}
	}
	return lockResult{code: lockCode{
		AccessCodeID: types.StringValue(id),
		Status:       types.StringValue(string(api.Unknown)),
		AsDeclared:   types.BoolValue(false),
		Errors:       []problem{failureOf(err, m.pin())},
	}, err: err}
}

// updateOn changes the code on a lock to the desired one.
func (m *sharedAccessCodeModel) updateOn(ctx context.Context, conn *connection, deviceID, id string) lockResult {
	found := readOnLock(ctx, findCode, conn.api, deviceID, id)
	switch {
	case found.err != nil:
		return m.failedResult(ctx, conn.api, id, untried(found.err))
	case found.nothing():
		return m.createOn(ctx, conn, deviceID)
	}
	if found.managed != nil && found.managed.Status == api.Removing {
		return m.replace(ctx, conn, deviceID, id)
	}
	plan, actual := m.codeOn(deviceID, id), m.codeOn(deviceID, id)
	actual.Code = types.StringNull() // write the PIN even if the server hides it
	if found.unmanaged != nil {
		actual.fillUnmanaged(found.unmanaged)
		code, err := convertPlanned(ctx, conn.api, plan, actual)
		if err != nil {
			return lockResult{code: m.unmanaged(found.unmanaged), err: err}
		}
		found.managed = code
	}
	actual.fill(found.managed)
	actual.CodeWOVersion = types.Int64Null() // always write a write-only PIN
	if plan.isUncertain(found.managed, true) {
		actual.resend(m.pin() != "")
	}
	code, err := changePlanned(ctx, conn.api, plan, actual, conn.waitUntilOnLock)
	if err != nil {
		return m.failedResult(ctx, conn.api, id, err)
	}
	return lockResult{code: m.managed(code)}
}

// removeFrom deletes the code from a lock.
func (m *sharedAccessCodeModel) removeFrom(
	ctx context.Context,
	conn *connection,
	deviceID string,
	code lockCode,
	doubt *uncertain,
) lockResult {
	id := code.AccessCodeID.ValueString()
	if id == "" {
		return lockResult{removed: true, unresolved: doubt}
	}
	err := deleteCode(ctx, conn.api, deviceID, id)
	return lockResult{code: code, removed: err == nil, err: err}
}

// reportLock adds an error or a warning about one lock of a shared code. If kept is false, the state does not get the
// shared code.
func (m *sharedAccessCodeModel) reportLock(
	ctx context.Context,
	client *api.Client,
	diags *diag.Diagnostics,
	add func(*diag.Diagnostics, path.Path, string, string),
	kept bool,
	action, deviceID string,
	failed lockResult,
) {
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	err := failed.err
	const untouched = "The other locks of the shared code are not affected."
	others := untouched + " The next apply retries this lock."
	if action == actionPut && failed.code.AsDeclared.ValueBool() {
		others = untouched // nothing to apply
	}
	next := nextStep(err)
	switch {
	case failed.uncertain != nil && kept:
		look := "The next apply searches this lock for a code of this name and PIN before it creates another one. " +
			"If the server hides PINs, check the lock yourself first."
		if m.writesOnly() {
			look += " Do not change `code_wo` until then: the search needs its PIN."
		}
		next = uncertainAdvice(err, look)
		others = untouched
	case failed.uncertain != nil:
		next = uncertainAdvice(
			err,
			"The shared code is not in the state: check this lock before you run Terraform again, which "+
				"would create a second access code.",
		)
		others = ""
	case isAccepted(err):
		next = joinSentences("The server has accepted the conversion of the code. Run `terraform apply` again: if the "+
			"code is still unmanaged, the plan shows the conversion.", next)
		others = untouched
	case isStillThere(err) && keepsTrying(err):
		next, others = putsItOnAgain, untouched
	case accountIsDisconnected(err) && action == actionPut:
		next, others = logInAgain+"Then the server sets the code.", untouched
	case keepsTrying(err) && action == actionRemove:
		next, others = mayStillOpen+raiseDelete+" If you removed the lock from the shared code, raise `timeouts { update "+
			"}` instead.", untouched
	case keepsTrying(err):
		next = "The server keeps trying; you need not repeat anything when the lock is online. For locks that " +
			"always take longer, raise `timeouts`."
	case errors.Is(err, errCannotBeDeleted):
		next = deletionAdvice(err)
	case isOfType(err, "device_not_found") && action == actionPut:
		next = "If the lock was removed from its account, remove it from `device_ids`. Otherwise check the identifier."
	case managedHolder(err) != "":
		next = "The managed access code " + managedHolder(err) + " has this PIN, and did not leave the lock. If only " +
			"the address of the shared code has changed, declare that with a moved block. If another resource has " +
			"the code, remove that resource with a removed block and `destroy = false`, and import its codes into " +
			"the shared code. Otherwise choose another PIN."
	case errors.Is(err, errCannotBeManaged):
		next = "The code stays on the lock, unmanaged. Remove the lock from `device_ids`, or delete the code in " +
			"the lock's app."
	}
	add(
		diags,
		path.Root("access_codes").AtMapKey(deviceID),
		diagnostics.CouldNot(action),
		m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+joinSentences(next, others),
	)
}

// joinSentences joins two sentences.
func joinSentences(first, second string) string {
	return strings.TrimSpace(first + " " + second)
}

// A creation without an answer may have put the code on its lock, where it opens the door under an unknown identifier.
// The shared code records these locks, and searches them before it creates another code or drops the lock. It does not
// search other locks: a code of the same name and PIN there belongs to another owner.

// uncertainLocksKey is the key of the private state for these locks.
const uncertainLocksKey = "locks_in_doubt"

// uncertain is a creation without an answer.
type uncertain struct {
	// WrittenOnly means that the PIN is write-only, so it is not stored.
	WrittenOnly bool `json:"written_only"`

	// likely lists the codes on the lock that the creation may have created.
	likely []string
}

// newUncertain returns the record of an unanswered creation for this shared code.
func (m *sharedAccessCodeModel) newUncertain() *uncertain {
	return &uncertain{WrittenOnly: m.writesOnly()}
}

// pin returns the PIN to search for. For a write-only PIN it is the configured one, which may have changed; "" means
// none.
func (d *uncertain) pin(state, config *sharedAccessCodeModel) string {
	if d.WrittenOnly {
		return config.pin()
	}
	return state.Code.ValueString()
}

func recordUncertain(ctx context.Context, private privateState, results map[string]lockResult) diag.Diagnostics {
	doubts := map[string]*uncertain{}
	for deviceID, result := range results {
		if result.uncertain != nil {
			doubts[deviceID] = result.uncertain
		}
	}
	encoded, _ := json.Marshal(doubts) // booleans always encode
	return private.SetKey(ctx, uncertainLocksKey, encoded)
}

// uncertainLocks returns the recorded unanswered creations by lock. The record may also be a list of locks without
// details.
func (m *sharedAccessCodeModel) uncertainLocks(
	ctx context.Context,
	private privateState,
	diags *diag.Diagnostics,
) (doubts map[string]*uncertain) {
	stored, problems := private.GetKey(ctx, uncertainLocksKey)
	diags.Append(problems...)
	var locks []string
	if json.Unmarshal(stored, &locks) == nil {
		doubts = map[string]*uncertain{}
		for _, deviceID := range locks {
			doubts[deviceID] = m.newUncertain()
		}
		return doubts
	}
	_ = json.Unmarshal(stored, &doubts) // none, where nothing was stored
	return doubts
}

// findUnanswered adds the codes of unanswered creations to those of the shared code. It returns results for the locks
// where it found none, or could not search. The latter must not be changed.
func (m *sharedAccessCodeModel) findUnanswered(
	ctx context.Context,
	client *api.Client,
	codes map[string]lockCode,
	doubts map[string]*uncertain,
	config *sharedAccessCodeModel,
) map[string]lockResult {
	locks := slices.DeleteFunc(slices.Collect(maps.Keys(doubts)), func(deviceID string) bool {
		code, known := codes[deviceID]
		return !known || !code.AccessCodeID.IsNull()
	})
	type found struct {
		code   *api.AccessCode
		likely []string
		err    error
	}
	unsettled := map[string]lockResult{}
	for deviceID, found := range onEach(locks, func(deviceID string) (f found) {
		f.code, f.likely, f.err = m.findLostCode(ctx, client, deviceID, doubts[deviceID], config)
		return f
	}) {
		code := codes[deviceID]
		if found.code == nil {
			doubt := doubts[deviceID]
			doubt.likely = found.likely
			unsettled[deviceID] = lockResult{code: code, err: untried(found.err), uncertain: doubt}
			continue
		}
		code.AccessCodeID = types.StringValue(found.code.AccessCodeID)
		codes[deviceID] = code
	}
	return unsettled
}

// findLostCode finds the code of an unanswered creation. Without it, the server would reject another creation because
// the PIN is taken, or create a second code. A code with a time frame apart is one of another stay. If no code has the
// name and PIN, lost returns the codes of the name whose PINs the server hides, or all of that name if the PIN of the
// creation is not known.
func (m *sharedAccessCodeModel) findLostCode(
	ctx context.Context,
	client *api.Client,
	deviceID string,
	doubt *uncertain,
	config *sharedAccessCodeModel,
) (found *api.AccessCode, likely []string, err error) {
	codes, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, nil, err
	}
	pin, request := doubt.pin(m, config), m.codeOn(deviceID, "").createRequest()
	for i, code := range codes {
		switch {
		case code.Name == nil || *code.Name != m.Name.ValueString(), isApart(&codes[i], request):
		case pin != "" && code.Code != nil && *code.Code == pin:
			return &codes[i], nil, nil
		case doubt.WrittenOnly || pin == "" || code.Code == nil:
			likely = append(likely, code.AccessCodeID)
		}
	}
	return nil, likely, nil
}

// changesSearch reports whether the plan changes the name, PIN, or time frame that a search for an unanswered creation
// needs.
func (m *sharedAccessCodeModel) changesSearch(state *sharedAccessCodeModel) bool {
	return !m.Name.Equal(state.Name) || !m.Code.Equal(state.Code) || !m.CodeWOVersion.Equal(state.CodeWOVersion) ||
		!m.StartsAt.same(state.StartsAt) || !m.EndsAt.same(state.EndsAt)
}

// reportUnsearched adds errors for the locks that could not be searched, and reports whether there are any.
func (m *sharedAccessCodeModel) reportUnsearched(
	ctx context.Context,
	client *api.Client,
	unsettled map[string]lockResult,
	diags *diag.Diagnostics,
) (refused bool) {
	ctx, cancel := finalReadContext(ctx)
	defer cancel()
	for _, deviceID := range slices.Sorted(maps.Keys(unsettled)) {
		err := unsettled[deviceID].err
		if err == nil {
			continue
		}
		refused = true
		diagnostics.FailureAt(
			diags,
			path.Root("access_codes").AtMapKey(deviceID),
			actionPut,
			m.hide(sentence(lockName(ctx, client, deviceID)+": "+err.Error()))+"\n\n"+
				joinSentences(
					nextStep(err),
					"The shared code was not changed: the server did not answer a creation on this lock, and "+
						"the provider finds the code by its current name, PIN, and time frame. Run Terraform again: "+
						"it searches the lock first.",
				),
		)
	}
	return refused
}

// warnOfLost warns that a lock may have a code that was not found, when the shared code drops the lock or creates
// another code.
func (m *sharedAccessCodeModel) warnOfLost(
	ctx context.Context,
	client *api.Client,
	diags *diag.Diagnostics,
	deviceID string,
	result lockResult,
) {
	said, next := "the lock has no code of this name and PIN now", "If the server hides PINs, search the lock for "+
		"a code of this name, and delete it."
	switch likely := result.unresolved.likely; {
	case len(likely) > 0:
		said = "without the PIN, the provider cannot know whether the creation made one of these codes of this " +
			"name: " + strings.Join(likely, ", ")
		next = "Check whether that code is used outside of this shared code. If not, delete it: it may open the door."
	case !result.removed:
		return
	}
	diagnostics.WarningAt(diags, path.Root("device_ids"), "An access code may have been left on a "+
		"lock", sentence(lockName(ctx, client, deviceID)+
		": the server did not answer a creation of the code, and "+said)+"\n\n"+next)
}
