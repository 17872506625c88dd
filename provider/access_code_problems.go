package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// A plan that has nothing to change is green, also while a PIN is not on its door. So each refresh warns of the codes that say
// themselves what keeps them from their locks. Terraform shows the first of the warnings that have one summary, and how many more
// there are: so the summary is the same for all codes that the same thing keeps off, and a site that is offline is one warning. It does
// not do that for codes that are no longer in the configuration, so a run names so many of them only, and says that there are more.

// namedCodes is how many codes that the same thing keeps off their locks a run of the provider names.
const namedCodes = 20

// askedNames is for how many locks a run of the provider asks the server for their names, which only few warnings show.
const askedNames = 10

// troubles is what a run has warned of: how many codes by error, and the names of locks that it has asked for.
type troubles struct {
	mu    sync.Mutex
	codes map[string]int
	known map[string]string
}

// problemTexts are the errors of a code in words, without its PIN.
func problemTexts(problems []api.Problem, pins ...string) []string {
	texts := []string{}
	for _, problem := range problems {
		texts = append(texts, api.Redact(strings.TrimSuffix(problem.Message, ".")+" ("+problem.ErrorCode+")", pins...))
	}
	return texts
}

func textList(texts []string) types.List {
	values := make([]attr.Value, len(texts))
	for i, text := range texts {
		values[i] = types.StringValue(text)
	}
	return types.ListValueMust(types.StringType, values)
}

// keptOff are the errors by which a code is not on its lock as it should be: none of one that is being taken off or that is only on
// its way. Of one that is there, and of one of the future, which waits whatever its lock does by now, only its own errors count: its lock
// has refused it, or a change of it.
func keptOff(code *api.AccessCode) []api.Problem {
	future := code.Status == api.Unset && code.StartsAt != nil && code.StartsAt.After(time.Now())
	return slices.DeleteFunc(slices.Clone(code.Errors), func(p api.Problem) bool {
		return code.Status == api.Removing || p.ErrorCode == "empty_backup_access_code_pool" || (future || code.Status == api.Set) && !p.IsAccessCodeError
	})
}

// warnOfTrouble says of a managed code what keeps it off its lock, if anything does.
func (c *connection) warnOfTrouble(ctx context.Context, diags *diag.Diagnostics, code *api.AccessCode, pins ...string) {
	problems := keptOff(code)
	if len(problems) == 0 || !c.troubles.take(diags, problems[0].ErrorCode) {
		return
	}
	name := ""
	if code.Name != nil {
		name = fmt.Sprintf(" %q", api.Redact(*code.Name, pins...))
	}
	summary, stands, again := "Access code is not on its lock", "", ""
	if code.Status == api.Set {
		summary, stands = "Access code is not on its lock as it is to be", " "+stillOpens
	}
	if refused(code) {
		again = "The next apply sends it again. "
	}
	diagnostics.Warning(diags, summary+" ("+problems[0].ErrorCode+")", fmt.Sprintf("%s The code %s%s has the status %s on %s.%s\n\n%s %s"+
		"Which codes have trouble, their `errors` say.", strings.Join(sentences(problemTexts(problems, pins...)), " "),
		code.AccessCodeID, name, code.Status, c.troubles.lock(ctx, c.api, code.DeviceID), stands, troubleAdvice(problems), again))
}

// warnOfTroubles is warnOfTrouble for the codes of a set, in their own order.
func (c *connection) warnOfTroubles(ctx context.Context, diags *diag.Diagnostics, set *accessCodeSetModel, found map[string]foundCode) {
	for _, deviceID := range slices.Sorted(maps.Keys(found)) {
		if code := found[deviceID].managed; code != nil {
			c.warnOfTrouble(ctx, diags, code, pinsOf(code.Code, set.on("", ""))...)
		}
	}
}

func sentences(texts []string) []string {
	for i := range texts {
		texts[i] = sentence(texts[i])
	}
	return texts
}

// setsByItself is what becomes of a code without anybody doing anything. A refresh does not know whether the resource is
// tainted, and so whether the plan that its warnings stand in replaces it.
const setsByItself = "then the server sets the code, and nothing has to be applied for that. A plan that replaces it because it is tainted, as after an apply that has not " +
	"seen it set, is not needed: run `terraform untaint` on the resource to keep it."

// troubleAdvice is what can be done about the first of these errors that is known.
func troubleAdvice(problems []api.Problem) string {
	for _, problem := range problems {
		switch problem.ErrorCode {
		case "device_removed":
			return "If the lock is to stay, add it to its account at the vendor again: then the server sets the code. If it is gone for good, take the code out of the " +
				"configuration, or give it the `device_id` of the lock that is in its place."
		case "account_disconnected":
			return logInAgain + sentence(setsByItself)
		case "device_offline", "hub_disconnected":
			return "Bring the lock online: " + setsByItself + " Until it is set the door knows what it knew before."
		case "duplicate_code_on_device":
			return "Choose another PIN, or delete the code on the lock that has it. To take that one over instead, import it: see the guide *Adopt existing codes*."
		case "no_space_for_access_code_on_device":
			return "Delete a code of the lock: the data sources deviceaccess_access_codes and deviceaccess_unmanaged_access_codes list those there are."
		case "code_constraints_violated":
			return "Choose a PIN and a name that the lock takes: `supported_code_lengths` and `code_constraints` of the data source deviceaccess_device say which."
		}
	}
	return "Correct what the server names. The next refresh shows whether the code is on the lock then."
}

// take says whether one more code may be named. In place of the first that may not it warns of all others.
func (t *troubles) take(diags *diag.Diagnostics, errorCode string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.codes == nil {
		t.codes = map[string]int{}
	}
	t.codes[errorCode]++
	if t.codes[errorCode] == namedCodes+1 {
		diagnostics.Warning(diags, "More access codes are not on their locks ("+errorCode+")", fmt.Sprintf("%d codes are named in warnings of their own, and there are more. "+
			"Which codes have trouble, their `errors` say.", namedCodes))
	}
	return t.codes[errorCode] <= namedCodes
}

// lock is lockName for many warnings: it asks for few locks, and once for each.
func (t *troubles) lock(ctx context.Context, client *api.Client, deviceID string) string {
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

// lockName is a lock as people know it, as far as the server tells.
func lockName(ctx context.Context, client *api.Client, deviceID string) string {
	if device, err := deviceByID(ctx, client, deviceID); err == nil && device.DisplayName != "" {
		return fmt.Sprintf("the lock %q (%s)", device.DisplayName, deviceID)
	}
	return "the lock " + deviceID
}
