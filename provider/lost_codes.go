package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// An apply that is killed during a creation leaves a code on the lock that is in no state. The next plan creates a
// second one. So the plan of a creation names the managed codes of the lock that are like the new one and that
// Terraform has not read from its state. Terraform reads resources of the state while it plans others, so the warning
// must also be right for a code that it reads later.

// lostCodes has the codes that the provider has named since it was configured.
type lostCodes struct {
	mu    sync.Mutex
	named map[string]bool
}

// warnOfLostCodes warns about managed codes on the lock of a new code that may be the same code. It sends no request
// of its own if the list of the lock cannot be used.
func (c *connection) warnOfLostCodes(ctx context.Context, diags *diag.Diagnostics, plan *accessCodeModel) {
	if !c.isConnected() || !isSet(plan.DeviceID) || !isSet(plan.Name) {
		return
	}
	codes, _ := c.reads.AccessCodesOn(ctx, plan.DeviceID.ValueString())
	if c.walk.applied.Load() { // the list may have codes that this apply has created
		return
	}
	slices.SortFunc(codes, func(a, b api.AccessCode) int { return cmp.Compare(a.AccessCodeID, b.AccessCodeID) })
	for i := range codes {
		if code := &codes[i]; plan.isLike(code) && !c.walk.knows(code.AccessCodeID) {
			c.warnOfLostCode(ctx, diags, code, plan)
		}
	}
}

// isLike reports whether the plan would have created the code.
func (m *accessCodeModel) isLike(code *api.AccessCode) bool {
	differs := code.Status == api.Removing || code.Name == nil || *code.Name != m.Name.ValueString() ||
		isSet(m.Code) && code.Code != nil && *code.Code != m.Code.ValueString()
	if differs || code.IsOfflineAccessCode {
		return !differs
	}
	return (m.StartsAt.IsUnknown() || m.StartsAt.same(instantOf(code.StartsAt))) &&
		(m.EndsAt.IsUnknown() || m.EndsAt.same(instantOf(code.EndsAt)))
}

func (c *connection) warnOfLostCode(
	ctx context.Context,
	diags *diag.Diagnostics,
	code *api.AccessCode,
	plan *accessCodeModel,
) {
	name := api.Redact(*code.Name, pinsOf(code.Code, plan)...)
	switch c.lost.admit(code.AccessCodeID) {
	case lostNamed:
		diagnostics.Warning(diags, fmt.Sprintf("Lock has a managed access code %q already", name), fmt.Sprintf(
			"The code %[1]s on %[2]s is like this new code. If an apply was killed before it could write the "+
				"state, it has created that code. Import it instead of creating a second one:\n\n  import {\n    to = "+
				"deviceaccess_access_code.NAME\n    id = \"%[3]s/%[1]s\"\n  }\n\nIf another resource or "+
				"another client has that code, applying this plan creates a second one.",
			code.AccessCodeID, c.warnings.cachedLockName(ctx, c.api, code.DeviceID), code.DeviceID))
	case lostUnnamed:
		diagnostics.Warning(diags, "More new access codes are like codes on their locks", fmt.Sprintf(
			"%d codes have their own warnings, and there are more. The data source deviceaccess_access_codes lists "+
				"all codes of a lock.", namedCodes))
	case lostRepeated:
	}
}

// lostAdmission is whether a lost code gets a warning.
type lostAdmission int

const (
	lostNamed    lostAdmission = iota // its own
	lostUnnamed                       // one about all codes above the limit
	lostRepeated                      // none
)

// admit counts a code.
func (l *lostCodes) admit(id string) lostAdmission {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.named[id] {
		return lostRepeated
	}
	if l.named == nil {
		l.named = map[string]bool{}
	}
	l.named[id] = true
	switch n := len(l.named); {
	case n <= namedCodes:
		return lostNamed
	case n == namedCodes+1:
		return lostUnnamed
	}
	return lostRepeated
}
