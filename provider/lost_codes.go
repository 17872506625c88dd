package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

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

// warnOfLostCodes warns about managed codes on the lock of a new code that may be the same code.
func (c *connection) warnOfLostCodes(ctx context.Context, diags *diag.Diagnostics, plan *accessCodeModel) {
	codes := c.lostCodesOn(ctx, plan)
	for i := range codes {
		code := &codes[i]
		c.warnOfLostCode(diags, lostCode{
			resource: "deviceaccess_access_code",
			id:       code.DeviceID + "/" + code.AccessCodeID,
			name:     api.Redact(*code.Name, pinsOf(code.Code, plan)...),
			where: fmt.Sprintf("The code %s on %s is like this new code. ",
				code.AccessCodeID, c.plannedLockName(ctx, code.DeviceID)),
		})
	}
}

// warnOfLostSharedCode warns about managed codes on the locks of a new shared code that may be the same code.
func (c *connection) warnOfLostSharedCode(ctx context.Context, diags *diag.Diagnostics, plan *sharedAccessCodeModel) {
	var known, ids, locks []string
	for _, lock := range plan.DeviceIDs.Elements() {
		if id, ok := lock.(types.String); ok && isSet(id) {
			known = append(known, id.ValueString())
		}
	}
	slices.Sort(known)
	name := plan.Name.ValueString()
	lost := onEach(known, func(deviceID string) []api.AccessCode {
		code := plan.codeOn(deviceID, "")
		code.Keepers = plan.Keepers
		return c.lostCodesOn(ctx, code)
	})
	for _, deviceID := range known {
		if codes := lost[deviceID]; len(codes) > 0 { // an import takes one code per lock
			name = api.Redact(name, pinsOf(codes[0].Code, plan.codeOn("", ""))...)
			ids = append(ids, deviceID+"/"+codes[0].AccessCodeID)
			locks = append(locks, "\n  "+c.plannedLockName(ctx, deviceID))
		}
	}
	if len(ids) == 0 {
		return
	}
	c.warnOfLostCode(diags, lostCode{
		resource: "deviceaccess_shared_access_code",
		id:       strings.Join(ids, ","),
		name:     name,
		where:    "The codes on these locks are like this new shared code:" + strings.Join(locks, "") + "\n\n",
	})
}

// lostCodesOn returns the managed codes on the lock of a new code that may be the same code. It sends no request of its
// own if the list of the lock cannot be used.
func (c *connection) lostCodesOn(ctx context.Context, plan *accessCodeModel) []api.AccessCode {
	if !c.isConnected() || !isSet(plan.DeviceID) || !isSet(plan.Name) {
		return nil
	}
	codes, _ := c.reads.AccessCodesOn(ctx, plan.DeviceID.ValueString())
	if !c.walk.namesLostCodes(!plan.Keepers.IsNull()) { // asked after the list, which gives Terraform time to read
		return nil
	}
	lost := slices.DeleteFunc(slices.Clone(codes), func(code api.AccessCode) bool {
		return !plan.isLike(&code) || c.walk.knows(code.AccessCodeID)
	})
	slices.SortFunc(lost, func(a, b api.AccessCode) int { return cmp.Compare(a.AccessCodeID, b.AccessCodeID) })
	return lost
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

// lostCode is the text of a warning about one resource.
type lostCode struct {
	resource, id, name string // resource is a type, and id is for its import
	where              string // says which codes, and ends with a space
}

func (c *connection) warnOfLostCode(diags *diag.Diagnostics, code lostCode) {
	switch c.lost.admit(code.id) {
	case lostNamed:
		diagnostics.Warning(diags, fmt.Sprintf("Lock has a managed access code %q already", code.name), fmt.Sprintf(
			"%sIf an apply was killed before it could write the state, it has created that code. Import it instead "+
				"of creating a second one:\n\n  import {\n    to = %s.NAME\n    id = %q\n  }\n\nIf another resource or "+
				"another client has that code, applying this plan creates a second one.",
			code.where, code.resource, code.id))
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
