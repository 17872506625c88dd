package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

// codeView is a code as pages show it. It has no field for the PIN, and none that could contain it.
type codeView struct {
	id, device          uuid.UUID
	managed             bool
	name, nameOnLock    string
	deviceName          string
	zone                string // of the lock; empty: unknown
	kind                codeKind
	starts, ends        *time.Time
	status              string
	since               time.Time // of the oldest pending change; zero: there is none
	scheduled           *time.Time
	changes             []string // that the lock has not confirmed
	pin                 pinState
	errors, warnings    []domain.Problem
	commonKey           string
	externalAllowed     bool
	isBackup, hasBackup bool
	pulledBackup        uuid.UUID
	convertible         bool // unmanaged: can become managed
	createdAt           time.Time
	managedBy           string // empty: unknown
}

// codeKind is when a code opens: a kind of overview.CodeFilter.
type codeKind string

const (
	kindAlways  codeKind = "always"
	kindTimed   codeKind = "time_bound"
	kindOnce    codeKind = "one_time"
	kindOffline codeKind = "offline"
)

// words returns the kind in words.
func (k codeKind) words() string {
	switch k {
	case kindAlways:
		return "Always"
	case kindOnce:
		return "Opens once"
	case kindOffline:
		return "Offline"
	}
	return "From–to"
}

// isOffline reports whether the vendor computes the code.
func (k codeKind) isOffline() bool { return k == kindOffline || k == kindOnce }

// pinState says whether the server knows a PIN.
type pinState int

const (
	pinHidden     pinState = iota // the server knows it, and pages do not show it
	pinUnreadable                 // the vendor hides it
	pinAwaited                    // the vendor has not chosen it yet
)

// viewOf returns a code without its PIN.
func viewOf(c device.Code) codeView {
	v := codeView{
		id:              c.ID,
		device:          c.DeviceID,
		managed:         c.Managed,
		name:            cmp.Or(domain.Value(c.Name), "Code without a name"),
		nameOnLock:      domain.Value(c.VendorName),
		kind:            kindOf(c),
		starts:          c.StartsAt,
		ends:            c.EndsAt,
		status:          string(c.Status),
		errors:          c.Errors,
		warnings:        c.Warnings,
		commonKey:       domain.Value(c.CommonCodeKey),
		externalAllowed: c.ExternalModificationAllowed,
		isBackup:        c.Backup,
		hasBackup:       c.BackupAvailable,
		pulledBackup:    c.PulledBackup,
		convertible:     !c.Managed && !c.CannotBeManaged,
		createdAt:       c.CreatedAt,
	}
	switch {
	case c.PINMasked || c.PIN != nil:
		v.pin = pinHidden
	case c.WaitingForPIN:
		v.pin = pinAwaited
	default:
		v.pin = pinUnreadable
	}
	for _, m := range c.Mutations {
		if v.since.IsZero() || m.At.Before(v.since) {
			v.since = m.At
		}
		if m.ScheduledAt != nil {
			v.scheduled = m.ScheduledAt
		}
		v.changes = append(v.changes, m.Message)
	}
	return v
}

func kindOf(c device.Code) codeKind {
	switch {
	case c.OfflineKind == device.OfflineOneTime:
		return kindOnce
	case c.OfflineKind != "":
		return kindOffline
	case c.TimeBound():
		return kindTimed
	}
	return kindAlways
}

// moment is the next time at which something happens to a code, and what.
type moment struct {
	what string
	at   time.Time
}

// next returns the next change of a code, or false.
func (v codeView) next(now time.Time) (moment, bool) {
	for _, m := range []struct {
		what string
		at   *time.Time
	}{{"begins", v.starts}, {"ends", v.ends}} {
		if m.at != nil && m.at.After(now) {
			return moment{m.what, *m.at}, true
		}
	}
	return moment{}, false
}

// removing reports whether the code is being removed from its lock.
func (v codeView) removing() bool { return v.status == string(device.StatusRemoving) }

// retryable reports whether a retry can help.
func (v codeView) retryable() bool {
	return !v.kind.isOffline() && !v.removing() && (v.status != string(device.StatusSet) || len(v.changes) > 0) &&
		v.scheduled == nil
}

// problem returns the worst problem of a code for a list; empty: none.
func (v codeView) problem() string {
	if len(v.errors) == 0 {
		return ""
	}
	own := slices.IndexFunc(v.errors, func(p domain.Problem) bool { return p.Scope == domain.OfCode })
	text := v.errors[max(own, 0)].Message
	if more := len(v.errors) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// advice says what to do about a problem of a code.
func advice(p domain.Problem) string {
	switch p.Code {
	case domain.ErrDuplicate:
		return "Remove the other code with this PIN, or create this one again with another PIN."
	case domain.ErrNoSpace:
		return "Remove a code from the lock, then try again."
	case domain.ErrConstraints:
		return "Create the code again with a PIN and a name that the lock accepts."
	case domain.ErrFailedToSet, domain.ErrFailedToUpdate:
		return "Check the lock, then try again."
	case domain.ErrFailedToRemove, domain.ErrFailedToExpire:
		return "The code may still open the door. Check the lock, and remove the code in the vendor's app if it stays."
	case domain.ErrFailedToIssue:
		return "Check the vendor account, then create the code again."
	case domain.ErrInactive:
		return "Enable the code in the vendor's app."
	case domain.ErrExternal:
		return "Try again to restore the code, or allow changes at the lock."
	}
	switch p.Scope {
	case domain.OfAccount:
		return "Update the credential of the account."
	case domain.OfDevice:
		return "Check the power of the lock, its bridge, and the network."
	}
	return ""
}

// managedBy returns the creator of a code in words.
func managedBy(c overview.Creator) string {
	switch {
	case strings.Contains(strings.ToLower(c.Name), "terraform"):
		return "Terraform (" + c.Name + ")"
	case c.Kind == "operator":
		return "Console (" + c.Name + ")"
	case c.Kind == audit.ByCommandLine:
		return "Command line"
	case c.Kind == audit.ByPage:
		return "Connect page"
	case c.Kind == string(domain.EndUser):
		return "Client session"
	case c.Name != "":
		return "Key " + c.Name
	case c.Kind != "":
		return "API key"
	}
	return ""
}

// pinRules returns the rules of a lock for PINs in words.
func pinRules(d device.Device) (rules []string) {
	caps := d.Capabilities
	if caps.ProviderPIN {
		return []string{"The vendor chooses the PIN."}
	}
	if len(caps.CodeLengths) > 0 {
		rules = append(rules, "The PIN has "+alternatives(caps.CodeLengths)+" digits.")
	} else {
		rules = append(rules, "The PIN has 4 to 12 digits.")
	}
	for _, c := range caps.Constraints {
		if text := constraintWords[c.Type]; text != "" {
			rules = append(rules, text)
		}
	}
	return rules
}

// constraintWords are constraint types of the API in words.
var constraintWords = map[string]string{
	"no_zeros":                            "It must not contain 0.",
	"cannot_start_with_12":                "It must not start with 12.",
	"no_triple_consecutive_ints":          "It must not have three equal digits in a row.",
	"no_ascending_or_descending_sequence": "It must not be an ascending or descending sequence.",
	"at_least_three_unique_digits":        "It must have at least three different digits.",
	"no_all_same_digits":                  "It must have at least two different digits.",
	"cannot_contain_089":                  "It must not contain 0, 8, or 9.",
	"cannot_contain_0789":                 "It must not contain 0, 7, 8, or 9.",
	"unique_first_four_digits":            "Its first four digits must differ from those of the other codes.",
	"start_date_in_future":                "A time frame must begin in the future.",
	"name_must_be_unique":                 "Names must differ on the lock.",
}

// alternatives returns numbers in ascending order as text: "4 to 6" or "4, 6, or 8".
func alternatives(numbers []int) string {
	first, last := numbers[0], numbers[len(numbers)-1]
	if len(numbers) > 2 && last-first == len(numbers)-1 {
		return fmt.Sprintf("%d to %d", first, last)
	}
	var texts []string
	for _, n := range numbers {
		texts = append(texts, fmt.Sprint(n))
	}
	switch len(texts) {
	case 1:
		return texts[0]
	case 2:
		return texts[0] + " or " + texts[1]
	}
	return strings.Join(texts[:len(texts)-1], ", ") + ", or " + texts[len(texts)-1]
}

// inputType returns the type of a field.
func (f formInput) inputType() string { return cmp.Or(f.kind, "text") }

// zoneName returns the name of a lock's time zone.
func zoneName(zone string) string { return cmp.Or(zone, "UTC") }

// zoneText returns a lock's time zone as a fact.
func zoneText(zone string) string { return cmp.Or(zone, "Unknown, so times are in UTC") }

// zoneHelp says in which zone the times of a form are.
func zoneHelp(zone string) string {
	if zone == "" {
		return "Times are in UTC, because the time zone of the lock is unknown."
	}
	return "Times are in " + zone + ", the time zone of the lock."
}

func joined(sentences []string) string { return strings.Join(sentences, " ") }

// pinHelp says that offline codes have no PIN of the operator's choice.
func pinHelp(d device.Device) string {
	if d.Capabilities.OfflineCodes {
		return " Leave it empty for an offline code: the vendor computes it."
	}
	return ""
}

// doorText returns whether a door is locked and open.
func doorText(d device.Device) string {
	text := "Unlocked"
	if *d.Locked {
		text = "Locked"
	}
	if d.DoorOpen != nil && *d.DoorOpen {
		text += ", open"
	} else if d.DoorOpen != nil {
		text += ", closed"
	}
	return text
}

func unmanagedText(n int) string {
	if n == 1 {
		return "1 unmanaged code: adopt it"
	}
	return fmt.Sprintf("%d unmanaged codes: adopt them", n)
}
