package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// A plan without changes looks good even while a PIN is not on its lock. So each refresh warns about codes with
// errors. Terraform groups warnings with the same summary, so the summary names the error only, and an offline site
// is one warning. Terraform does not group warnings about codes outside the configuration, so a run limits their
// number.

// namedCodes is the maximum number of warnings with the same error code in a run of the provider.
const namedCodes = 20

// askedNames is the maximum number of locks whose names a run of the provider requests.
const askedNames = 10

// warningCounter counts the warnings of a run by error code, and caches the names of locks.
type warningCounter struct {
	mu    sync.Mutex
	codes map[string]int
	known map[string]string
}

// problemTexts returns the error messages of a code, without its PIN.
func problemTexts(problems []api.Problem, pins ...string) []string {
	texts := []string{}
	for _, problem := range problems {
		texts = append(texts, api.Redact(strings.TrimSuffix(problem.Message, ".")+" ("+problem.ErrorCode+")", pins...))
	}
	return texts
}

// problem is an element of the attribute errors.
type problem struct {
	ErrorCode types.String `tfsdk:"error_code"`
	Message   types.String `tfsdk:"message"`
}

var problemType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"error_code": types.StringType,
	"message":    types.StringType,
}}

// problemsAttribute returns the attribute errors.
func problemsAttribute(description string, modifiers ...planmodifier.List) schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: description,
		PlanModifiers:       modifiers,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"error_code": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "The stable name of the error, such as `device_offline`. Null if the server " +
					"has named none.",
			},
			"message": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "What is wrong, for people.",
			},
		}},
	}
}

// problemsOf converts the errors of a code. It removes the PINs from their messages.
func problemsOf(problems []api.Problem, pins ...string) []problem {
	converted := make([]problem, len(problems))
	for i, p := range problems {
		converted[i] = problem{textOrNull(p.ErrorCode), types.StringValue(api.Redact(p.Message, pins...))}
	}
	return converted
}

// problemList returns the value of the attribute errors.
func problemList(problems []api.Problem, pins ...string) types.List {
	values := make([]attr.Value, len(problems))
	for i, p := range problemsOf(problems, pins...) {
		values[i] = types.ObjectValueMust(problemType.AttrTypes, map[string]attr.Value{
			"error_code": p.ErrorCode,
			"message":    p.Message,
		})
	}
	return types.ListValueMust(problemType, values)
}

// failureOf converts the error of a request. It removes the PIN from its message.
func failureOf(err error, pin string) problem {
	return problem{textOrNull(errorCodeOf(err)), types.StringValue(api.Redact(sentence(err.Error()), pin))}
}

// errorCodeOf returns the type of a server's error or of a failed action attempt, or "".
func errorCodeOf(err error) string {
	if refused, ok := errors.AsType[*api.ResponseError](err); ok {
		return refused.Type
	}
	if attempt, ok := errors.AsType[*api.AttemptError](err); ok && attempt.Reason != nil {
		return attempt.Reason.Type
	}
	return ""
}

// keptOff returns the errors that keep the desired code off its lock. A code that is being deleted has none. For a
// code that is set, and for a future code, only errors about the code itself count: its lock has rejected the code or
// a change.
func keptOff(code *api.AccessCode) []api.Problem {
	future := code.Status == api.Unset && code.StartsAt != nil && code.StartsAt.After(time.Now())
	return slices.DeleteFunc(slices.Clone(code.Errors), func(p api.Problem) bool {
		return code.Status == api.Removing || p.ErrorCode == "empty_backup_access_code_pool" ||
			(future || code.Status == api.Set) && !p.IsAccessCodeError
	})
}

// warnOfTrouble warns about the errors that keep a managed code off its lock.
func (c *connection) warnOfTrouble(ctx context.Context, diags *diag.Diagnostics, code *api.AccessCode, pins ...string) {
	problems := keptOff(code)
	if len(problems) == 0 || !c.warnings.admit(diags, problems[0].ErrorCode) {
		return
	}
	name := ""
	if code.Name != nil {
		name = fmt.Sprintf(" %q", api.Redact(*code.Name, pins...))
	}
	summary, effect, retry := "Access code is not on its lock", "", ""
	if code.Status == api.Set {
		summary, effect = "Access code is not on its lock as configured", " "+stillOpens
	}
	if isRejected(code) {
		retry = "The next apply sends it again. "
	}
	diagnostics.Warning(diags, summary+" ("+problems[0].ErrorCode+")", fmt.Sprintf(
		"%s The code %s%s has the "+
			"status %s on %s.%s\n\n%s %sTo find all affected codes, check their "+
			"`errors`.",
		strings.Join(sentences(problemTexts(problems, pins...)), " "),
		code.AccessCodeID,
		name,
		code.Status,
		c.warnings.cachedLockName(ctx, c.api, code.DeviceID),
		effect,
		troubleAdvice(problems),
		retry,
	))
}

// warnOfTroubles is warnOfTrouble for the codes of a shared code, in the order of their locks.
func (c *connection) warnOfTroubles(
	ctx context.Context,
	diags *diag.Diagnostics,
	set *sharedAccessCodeModel,
	found map[string]foundCode,
) {
	for _, deviceID := range slices.Sorted(maps.Keys(found)) {
		if code := found[deviceID].managed; code != nil {
			c.warnOfTrouble(ctx, diags, code, pinsOf(code.Code, set.codeOn("", ""))...)
		}
	}
}

func sentences(texts []string) []string {
	for i := range texts {
		texts[i] = sentence(texts[i])
	}
	return texts
}

// setsLater says that the server sets the code automatically.
const setsLater = "then the server sets the code automatically."

// troubleAdvice says what to do about the first known error.
func troubleAdvice(problems []api.Problem) string {
	for _, problem := range problems {
		switch problem.ErrorCode {
		case "device_removed":
			return "If the lock is still in use, add it to its account at the vendor again; the server then sets " +
				"the code. Otherwise remove the code from the configuration, or set `device_id` to the new lock."
		case "account_disconnected":
			return logInAgain + sentence(setsLater)
		case "device_offline", "hub_disconnected":
			return "Bring the lock online: " + setsLater + " Until then, the lock keeps its previous codes."
		case "duplicate_code_on_device":
			return "Choose another PIN, or delete the code on the lock that has this PIN. To adopt that code " +
				"instead, import it: see the guide *Adopt existing codes*."
		case "no_space_for_access_code_on_device":
			return "Delete a code on the lock: the data sources deviceaccess_access_codes and " +
				"deviceaccess_unmanaged_access_codes list them."
		case "code_constraints_violated":
			return "Choose a PIN and a name that the lock accepts: see `supported_code_lengths` and " +
				"`code_constraints` of the data source deviceaccess_device."
		}
	}
	return "Correct the problem in the message. The next refresh shows whether the code is on the lock."
}

// admit reports whether one more code may be named. For the first code above the limit, it adds a warning about the
// rest.
func (t *warningCounter) admit(diags *diag.Diagnostics, errorCode string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.codes == nil {
		t.codes = map[string]int{}
	}
	t.codes[errorCode]++
	if t.codes[errorCode] == namedCodes+1 {
		diagnostics.Warning(
			diags,
			"More access codes are not on their locks ("+errorCode+")",
			fmt.Sprintf(
				"%d codes have their own warnings, and there are more. To find all affected codes, check their "+
					"`errors`.",
				namedCodes,
			),
		)
	}
	return t.codes[errorCode] <= namedCodes
}

// plannedLockName is cachedLockName for a plan that has listed the devices for its checks.
func (c *connection) plannedLockName(ctx context.Context, deviceID string) string {
	if device := c.reads.Device(ctx, deviceID); device != nil && device.DisplayName != "" {
		return fmt.Sprintf("the lock %q (%s)", device.DisplayName, deviceID)
	}
	return c.warnings.cachedLockName(ctx, c.api, deviceID)
}

// cachedLockName is lockName with a cache and a limit of requests.
func (t *warningCounter) cachedLockName(ctx context.Context, client *api.Client, deviceID string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, known := t.known[deviceID]
	switch {
	case known:
		return name
	case len(t.known) >= askedNames:
		return "the lock " + deviceID
	case t.known == nil:
		t.known = map[string]string{}
	}
	t.known[deviceID] = lockName(ctx, client, deviceID)
	return t.known[deviceID]
}

// lockName returns the name and identifier of a lock, for messages.
func lockName(ctx context.Context, client *api.Client, deviceID string) string {
	if device, err := deviceByID(ctx, client, deviceID); err == nil && device.DisplayName != "" {
		return fmt.Sprintf("the lock %q (%s)", device.DisplayName, deviceID)
	}
	return "the lock " + deviceID
}
