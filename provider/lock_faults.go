package provider

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
)

// codeKind is a resource whose codes are checked. It says what its attributes are called.
type codeKind struct {
	isShared   bool
	attributes map[lockrules.Subject]string
	// otherLock is the advice for a lock that cannot have the code.
	otherLock string
}

var (
	singleCode = codeKind{
		attributes: map[lockrules.Subject]string{
			lockrules.SubjectPIN:       "code",
			lockrules.SubjectName:      "name",
			lockrules.SubjectLock:      "device_id",
			lockrules.SubjectFrame:     "ends_at",
			lockrules.SubjectSharedPIN: "common_code_key",
			lockrules.SubjectOffline:   "offline",
		},
		otherLock: "Set `device_id` to another lock.",
	}
	sharedCode = codeKind{
		isShared: true,
		attributes: map[lockrules.Subject]string{
			lockrules.SubjectPIN:   "code",
			lockrules.SubjectName:  "name",
			lockrules.SubjectLock:  "device_ids",
			lockrules.SubjectFrame: "ends_at",
		},
		otherLock: "Remove the lock from `device_ids`.",
	}
)

// lockFault is a problem that some locks have with a code.
type lockFault struct {
	problem lockrules.Problem
	devices []*api.Device
}

// report adds the diagnostic of a fault.
func (f *lockFault) report(diags *diag.Diagnostics, kind codeKind, code lockrules.Code) {
	add := diagnostics.ErrorAt
	if f.problem.IsWarning {
		add = diagnostics.WarningAt
	}
	subject := f.problem.Subject
	if kind.isShared && f.problem.Kind == lockrules.KindVendorPIN {
		subject = lockrules.SubjectLock // a shared code always has a PIN
	}
	fact := f.problem.Fact
	if f.problem.Holder != nil {
		fact += ": " + f.holder(code) + f.holderTimes()
	}
	add(diags, path.Root(kind.attributes[subject]), f.problem.Summary,
		fmt.Sprintf("On %s, %s. %s", lockNames(f.devices), fact, f.advice(kind, code)))
}

// holder names the code that has the PIN or the name, without a PIN.
func (f *lockFault) holder(code lockrules.Code) string {
	holder, named := f.problem.Holder, ""
	if name := api.Redact(holder.Name, code.PIN, holder.PIN); name != "" {
		named = fmt.Sprintf(" %q", name)
	}
	switch {
	case holder.IsPlanned:
		return fmt.Sprintf("the new code%s of this plan", named)
	case holder.IsManaged:
		return fmt.Sprintf("the managed code %s%s", holder.ID, named)
	}
	return fmt.Sprintf("the unmanaged code %s%s", holder.ID, named)
}

// holderTimes says when the other code has the PIN, if it has an end.
func (f *lockFault) holderTimes() string {
	holder := f.problem.Holder
	if !f.problem.IsOfTimes || holder.FrameIsUnknown {
		return ""
	}
	return fmt.Sprintf(", from %s to %s",
		holder.StartsAt.UTC().Format(time.RFC3339), holder.EndsAt.UTC().Format(time.RFC3339))
}

// lockNames lists locks by their names and identifiers.
func lockNames(devices []*api.Device) string {
	var names []string
	for _, device := range devices {
		names = append(names, fmt.Sprintf("%q (%s)", device.DisplayName, device.DeviceID))
	}
	if len(names) == 1 {
		return "the lock " + names[0]
	}
	return "the locks " + strings.Join(names, ", ")
}

// advice says what to do about a fault.
func (f *lockFault) advice(kind codeKind, code lockrules.Code) string {
	switch f.problem.Kind {
	case lockrules.KindPINRule:
		return "Choose another PIN."
	case lockrules.KindVendorPIN:
		switch {
		case kind.isShared:
			return kind.otherLock + " Declare its code with deviceaccess_access_code, without a PIN."
		case f.problem.Subject == lockrules.SubjectSharedPIN:
			return "Leave `common_code_key` out."
		}
		return "Leave `code` and `code_wo` out."
	case lockrules.KindNoCodes:
		if f.problem.Subject == lockrules.SubjectOffline {
			return "Leave `offline` out, or set `device_id` to another lock."
		}
		return "Applying this plan fails for it. " + kind.otherLock
	case lockrules.KindPINTaken:
		if f.problem.Holder.IsPlanned {
			return "Choose another PIN for one of them" + f.otherTimes() + "."
		}
		return f.takenAdvice()
	case lockrules.KindNameTaken:
		return "The server may add a number to the name on the lock, or reject the name. Choose another name to " +
			"avoid that."
	case lockrules.KindFull:
		return "Applying this plan fails unless a code leaves the lock first. The data sources " +
			"deviceaccess_access_codes and deviceaccess_unmanaged_access_codes list the codes."
	case lockrules.KindUnreachable, lockrules.KindDisconnected:
		return f.waitAdvice(code)
	}
	return ""
}

// otherTimes is the alternative to another PIN, as the rest of a sentence.
func (f *lockFault) otherTimes() string {
	if !f.problem.IsOfTimes {
		return ""
	}
	return fmt.Sprintf(", or time frames that are %.0f minutes apart", lockrules.PINReuseMargin.Minutes())
}

// takenAdvice says what to do about a PIN that another code has.
func (f *lockFault) takenAdvice() string {
	holder := f.problem.Holder
	importLine := f.devices[0].DeviceID + "/" + holder.ID
	if holder.IsManaged {
		return "Applying this plan fails unless that code leaves the lock first. If it is this code under another " +
			"address, use a moved block. If it is in no state, import it as `" + importLine + "`. Otherwise " +
			"choose another PIN" + f.otherTimes() + "."
	}
	return "Applying this plan fails while that code is on the lock. To adopt it, import it as `" + importLine +
		"`. Otherwise delete it in the lock's app, or choose another PIN."
}

// waitAdvice says what happens while a lock cannot be reached.
func (f *lockFault) waitAdvice(code lockrules.Code) string {
	if code.OnlineOnly {
		return "With `attempt_for_offline_device = false`, the server rejects the code until the lock is online."
	}
	const waits = "Applying this plan waits until the lock is reachable, or `timeouts` ends. "
	if f.problem.Kind == lockrules.KindDisconnected {
		return waits + "Its owner must log in again, on the page of a new deviceaccess_connect_webview."
	}
	return waits + "Bring the lock online first, or expect the wait."
}
