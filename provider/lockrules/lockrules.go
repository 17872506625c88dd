// Package lockrules judges an access code by what its lock accepts: lengths and digits of PINs, free slots, and the
// codes that the lock holds. It must not know Terraform or the API client.
//
// The rules are those of the API (CodeConstraint in api/openapi.yaml). A constraint that the package does not know
// restricts nothing.
package lockrules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Lock is what is known about a lock. The zero value accepts every code.
type Lock struct {
	// RejectsCodes means that the server cannot set codes on the lock.
	RejectsCodes bool
	// RejectsOfflineCodes means that the vendor issues no offline codes for the lock.
	RejectsOfflineCodes bool
	// CodeLengths lists the accepted numbers of digits. Empty means any.
	CodeLengths []int
	// Constraints lists the constraint types of the lock, such as "no_zeros".
	Constraints []string
	// MaxCodes is the number of codes that the lock holds at the same time, or 0 if that is not known.
	MaxCodes int
	// Obstacle says why the server cannot reach the lock now. Empty means that it can.
	Obstacle Obstacle
	// Codes are the other codes of the lock, without those that are being removed.
	Codes []HeldCode
}

// Obstacle is a reason for which the server cannot reach a lock.
type Obstacle string

const (
	// Offline means that the lock has no connection.
	Offline Obstacle = "offline"
	// Disconnected means that the account of the lock must be connected again.
	Disconnected Obstacle = "disconnected"
	// Removed means that the lock was removed from its account at the vendor.
	Removed Obstacle = "removed"
)

// HeldCode is a code of a lock. Texts are empty, and times nil, where they are not known.
type HeldCode struct {
	// ID is the identifier of the code.
	ID string
	// Name is the name of the code.
	Name string
	// PIN has the digits of the code.
	PIN string
	// IsManaged means that the workspace manages the code.
	IsManaged bool
	// IsPlanned means that the code is a new one of the same plan.
	IsPlanned bool
	// IsOffline means that the vendor has issued the code, so the server cannot remove it.
	IsOffline bool
	// IsOnLock means that the lock has the code, open or scheduled.
	IsOnLock bool
	// StartsAt and EndsAt bound the time in which the code takes a slot.
	StartsAt, EndsAt *time.Time
	// FrameIsUnknown means that the time frame is not known until apply.
	FrameIsUnknown bool
}

// Code is a planned code. Check judges only what is set.
type Code struct {
	// IsNew means that the code takes a slot.
	IsNew bool
	// PIN is a new PIN, or empty if the server chooses it or it does not change.
	PIN string
	// KeptPIN is the PIN of an existing code whose time frame changes and whose PIN does not, or empty.
	KeptPIN string
	// Name is a new name, or empty if the server chooses it or it does not change.
	Name string
	// SharesPIN means that the code gets the PIN of other codes.
	SharesPIN bool
	// IsOffline means that the vendor issues the code, without a connection to the lock.
	IsOffline bool
	// Waits means that apply waits until the lock has the code.
	Waits bool
	// OnlineOnly means that the server rejects the code while the lock is offline.
	OnlineOnly bool
	// StartsAt and EndsAt bound the time frame. Nil means unbounded.
	StartsAt, EndsAt *time.Time
	// FrameIsUnknown means that the time frame is not known until apply.
	FrameIsUnknown bool
}

// Subject is the part of a code that a problem is about.
type Subject string

const (
	// SubjectPIN is the PIN.
	SubjectPIN Subject = "PIN"
	// SubjectName is the name.
	SubjectName Subject = "name"
	// SubjectLock is the choice of the lock.
	SubjectLock Subject = "lock"
	// SubjectSharedPIN is the key of codes that share a PIN.
	SubjectSharedPIN Subject = "shared PIN"
	// SubjectFrame is the time frame.
	SubjectFrame Subject = "time frame"
	// SubjectOffline is the choice of an offline code.
	SubjectOffline Subject = "offline code"
)

// Problem is a reason for which a lock may not take a code.
type Problem struct {
	// Subject is the part of the code that the problem is about.
	Subject Subject
	// IsWarning means that the cause may be gone when the code is set.
	IsWarning bool
	// Summary states the problem in a few words.
	Summary string
	// Fact completes the sentence "On this lock, …". It never contains the PIN.
	Fact string
	// Kind identifies the cause.
	Kind Kind
	// Holder is the code that has the PIN or the name, if that is the cause.
	Holder *HeldCode
	// IsOfTimes means that the lock takes both codes if their time frames are PINReuseMargin apart.
	IsOfTimes bool
}

// Kind is the cause of a problem.
type Kind string

const (
	// KindPINRule means that the lock does not accept the digits.
	KindPINRule Kind = "pin_rule"
	// KindVendorPIN means that the vendor chooses the PINs.
	KindVendorPIN Kind = "vendor_pin"
	// KindNoCodes means that the lock holds no such codes.
	KindNoCodes Kind = "no_codes"
	// KindPINTaken means that another code has the PIN.
	KindPINTaken Kind = "pin_taken"
	// KindNameTaken means that another code has the name, and names must be unique.
	KindNameTaken Kind = "name_taken"
	// KindFull means that no slot is free.
	KindFull Kind = "full"
	// KindUnreachable means that the server cannot reach the lock now.
	KindUnreachable Kind = "unreachable"
	// KindDisconnected means that the server cannot log in to the account of the lock.
	KindDisconnected Kind = "disconnected"
)

// vendorChoosesPINs is the constraint type of locks whose vendor chooses the PINs.
const vendorChoosesPINs = "cannot_specify_pin_code"

// Check returns the problems of a code on a lock.
func Check(lock Lock, code Code) []Problem {
	var problems []Problem
	if code.IsNew {
		problems = checkKind(lock, code)
	}
	if len(problems) > 0 || code.IsOffline {
		return problems
	}
	if code.SharesPIN && code.IsNew && slices.Contains(lock.Constraints, vendorChoosesPINs) {
		problems = append(problems, vendorPIN(SubjectSharedPIN))
	}
	if code.PIN != "" {
		problems = append(problems, CheckPIN(lock, code.PIN)...)
		problems = append(problems, checkTaken(lock, code)...)
	}
	if code.KeptPIN != "" {
		problems = append(problems, checkNextStay(lock, code)...)
	}
	problems = append(problems, checkName(lock, code)...)
	if code.IsNew {
		problems = append(problems, checkSlots(lock, code)...)
	}
	return append(problems, checkReach(lock, code)...)
}

// Fits reports whether a lock accepts a PIN, regardless of the codes that the lock holds.
func Fits(lock Lock, pin string) bool {
	return !lock.RejectsCodes && isPIN(pin) && len(CheckPIN(lock, pin)) == 0
}

// isPIN reports whether a text is a PIN of the API.
func isPIN(pin string) bool {
	return len(pin) >= 4 && len(pin) <= 12 && strings.Trim(pin, "0123456789") == ""
}

// CheckPIN returns the rules of a lock that a PIN breaks. The PIN must consist of digits.
func CheckPIN(lock Lock, pin string) []Problem {
	if slices.Contains(lock.Constraints, vendorChoosesPINs) {
		return []Problem{vendorPIN(SubjectPIN)}
	}
	var problems []Problem
	broken := func(fact string) {
		problems = append(problems, Problem{
			Subject: SubjectPIN,
			Kind:    KindPINRule,
			Summary: "PIN does not fit the lock",
			Fact:    fact,
		})
	}
	if len(lock.CodeLengths) > 0 && !slices.Contains(lock.CodeLengths, len(pin)) {
		broken(fmt.Sprintf("a PIN must have %s digits", alternatives(lock.CodeLengths)))
	}
	for _, constraint := range lock.Constraints {
		if rule, ok := pinRules[constraint]; ok && !rule.obeys(pin) {
			broken(fmt.Sprintf("a PIN %s (%s)", rule.demand, constraint))
		}
	}
	return problems
}

func vendorPIN(subject Subject) Problem {
	return Problem{
		Subject: subject,
		Kind:    KindVendorPIN,
		Summary: "PIN cannot be chosen for the lock",
		Fact:    "the vendor chooses the PINs (" + vendorChoosesPINs + ")",
	}
}

// checkKind returns a problem if the lock holds no codes of this kind.
func checkKind(lock Lock, code Code) []Problem {
	switch {
	case code.IsOffline && lock.RejectsOfflineCodes:
		return []Problem{{
			Subject: SubjectOffline,
			Kind:    KindNoCodes,
			Summary: "Lock cannot have offline access codes",
			Fact:    "the vendor issues no offline codes",
		}}
	case !code.IsOffline && lock.RejectsCodes:
		return []Problem{{
			Subject:   SubjectLock,
			Kind:      KindNoCodes,
			IsWarning: true, // a lock that has lost its bridge must not block the plan of everything else
			Summary:   "Device cannot hold access codes",
			Fact:      "the server cannot set access codes",
		}}
	}
	return nil
}

// checkTaken warns about the code that has the PIN. The same run may remove or change that code.
func checkTaken(lock Lock, code Code) []Problem {
	const prefix = 4 // of unique_first_four_digits
	unique := slices.Contains(lock.Constraints, "unique_first_four_digits")
	for i, held := range lock.Codes {
		problem := Problem{Subject: SubjectPIN, Kind: KindPINTaken, IsWarning: true, Holder: &lock.Codes[i]}
		switch {
		case held.PIN == code.PIN && held.mayTakeTurnsWith(code):
			continue
		case held.PIN == code.PIN:
			problem.Summary, problem.Fact = "PIN is already on the lock", "another code has this PIN"
			problem.IsOfTimes = held.canTakeTurns()
		case unique && len(held.PIN) >= prefix && strings.HasPrefix(code.PIN, held.PIN[:prefix]):
			problem.Summary = "PIN resembles one on the lock"
			problem.Fact = "another code has the same first four digits (unique_first_four_digits)"
		default:
			continue
		}
		return []Problem{problem}
	}
	return nil
}

// checkName warns about the code that has the name, if the vendor requires unique names.
func checkName(lock Lock, code Code) []Problem {
	if code.Name == "" || !slices.Contains(lock.Constraints, "name_must_be_unique") {
		return nil
	}
	for i, held := range lock.Codes {
		if strings.EqualFold(held.Name, code.Name) {
			return []Problem{{
				Subject:   SubjectName,
				Kind:      KindNameTaken,
				IsWarning: true,
				Summary:   "Name is already on the lock",
				Fact:      "names must be unique (name_must_be_unique), and another code has this name",
				Holder:    &lock.Codes[i],
			}}
		}
	}
	return nil
}

// checkSlots warns if the lock has no free slot at some time of the code. The same run may remove a code.
func checkSlots(lock Lock, code Code) []Problem {
	if lock.MaxCodes == 0 || len(lock.Codes) < lock.MaxCodes {
		return nil
	}
	moments := []time.Time{timeOf(code.StartsAt)}
	for _, held := range lock.Codes {
		moments = append(moments, timeOf(held.StartsAt))
	}
	for _, at := range moments {
		if at.Before(timeOf(code.StartsAt)) || code.EndsAt != nil && !at.Before(*code.EndsAt) {
			continue
		}
		taken := 0
		for _, held := range lock.Codes {
			if !timeOf(held.StartsAt).After(at) && (held.EndsAt == nil || held.EndsAt.After(at)) {
				taken++
			}
		}
		if taken >= lock.MaxCodes {
			return []Problem{{
				Subject:   SubjectLock,
				Kind:      KindFull,
				IsWarning: true,
				Summary:   "Lock is full",
				Fact:      fmt.Sprintf("at most %d codes fit, and %d are there", lock.MaxCodes, taken),
			}}
		}
	}
	return nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// checkReach warns if the server cannot reach the lock now.
func checkReach(lock Lock, code Code) []Problem {
	if lock.Obstacle == "" || !code.Waits && !code.OnlineOnly {
		return nil
	}
	problem := Problem{Subject: SubjectLock, Kind: KindUnreachable, IsWarning: true}
	switch lock.Obstacle {
	case Disconnected:
		problem.Kind = KindDisconnected
		problem.Summary, problem.Fact = "Account of the lock is disconnected", "the account is disconnected"
	case Removed:
		problem.Summary, problem.Fact = "Lock was removed from its account", "the vendor's account has no such lock"
	default:
		problem.Summary, problem.Fact = "Lock is offline", "the connection is down"
	}
	return []Problem{problem}
}

// pinRules are the constraint types of the API about digits.
var pinRules = map[string]struct {
	demand string
	obeys  func(pin string) bool
}{
	"no_zeros":            {"must not contain 0", without("0")},
	"cannot_contain_089":  {"must not contain 0, 8, or 9", without("089")},
	"cannot_contain_0789": {"must not contain 0, 7, 8, or 9", without("0789")},
	"cannot_start_with_12": {
		"must not start with 12",
		func(p string) bool { return !strings.HasPrefix(p, "12") },
	},
	"no_triple_consecutive_ints": {
		"must not have three equal digits in a row",
		func(p string) bool { return longestRun(p, 0) < 3 },
	},
	"no_all_same_digits": {
		"must have at least two different digits",
		func(p string) bool { return differentDigits(p) >= 2 },
	},
	"at_least_three_unique_digits": {
		"must have at least three different digits",
		func(p string) bool { return differentDigits(p) >= 3 },
	},
	"no_ascending_or_descending_sequence": {
		"must not be an ascending or descending sequence",
		func(p string) bool { return longestRun(p, 1) < len(p) && longestRun(p, -1) < len(p) },
	},
}

func without(digits string) func(pin string) bool {
	return func(pin string) bool { return !strings.ContainsAny(pin, digits) }
}

// longestRun returns the length of the longest part in which each digit exceeds the previous one by step.
func longestRun(pin string, step int) int {
	longest, run := 1, 1
	for i := 1; i < len(pin); i++ {
		if int(pin[i])-int(pin[i-1]) != step {
			run = 0
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

func differentDigits(pin string) int {
	return len(slices.Compact(slices.Sorted(slices.Values([]byte(pin)))))
}

// alternatives writes numbers as "4, 5, or 6", and consecutive ones as "4 to 8".
func alternatives(numbers []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	first, last := sorted[0], sorted[len(sorted)-1]
	switch {
	case len(sorted) == 1:
		return fmt.Sprint(first)
	case last-first == len(sorted)-1:
		return fmt.Sprintf("%d to %d", first, last)
	case len(sorted) == 2:
		return fmt.Sprintf("%d or %d", first, last)
	}
	var texts []string
	for _, number := range sorted[:len(sorted)-1] {
		texts = append(texts, fmt.Sprint(number))
	}
	return fmt.Sprintf("%s, or %d", strings.Join(texts, ", "), last)
}
