package device

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// checkPIN checks a PIN against the rules of a device. It fails with Invalid; the message does not contain the PIN.
func checkPIN(pin string, caps capability.Set) error {
	if len(pin) < 4 || len(pin) > 12 || strings.Trim(pin, "0123456789") != "" {
		return domain.Invalidf("code", "A code has 4 to 12 digits")
	}
	if len(caps.CodeLengths) > 0 && !slices.Contains(caps.CodeLengths, len(pin)) {
		return domain.Invalidf("code", "This device takes codes of %s digits", lengths(caps.CodeLengths))
	}
	for _, c := range caps.Constraints {
		if rule, ok := pinRules[c.Type]; ok && !rule.obeys(pin) {
			return domain.Invalidf("code", "A PIN on this device %s (%s)", rule.demand, c.Type)
		}
	}
	return nil
}

func lengths(ls []int) string {
	var b strings.Builder
	for i, l := range ls {
		switch {
		case i > 0 && i == len(ls)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, l)
	}
	return b.String()
}

// pinRules are the constraint types of the API about digits (CodeConstraint in api/openapi.yaml). Constraints that depend on
// other codes or on the vendor are checked when the code is set on the device.
var pinRules = map[string]struct {
	demand string
	obeys  func(string) bool
}{
	"no_zeros": {
		"must not contain 0",
		func(p string) bool { return !strings.Contains(p, "0") },
	},
	"cannot_start_with_12": {
		"must not start with 12",
		func(p string) bool { return !strings.HasPrefix(p, "12") },
	},
	"no_triple_consecutive_ints": {
		"must not have three equal digits in a row",
		func(p string) bool { return longestRun(p, 0) < 3 },
	},
	"no_ascending_or_descending_sequence": {
		"must not be an ascending or descending sequence",
		func(p string) bool { return longestRun(p, 1) < len(p) && longestRun(p, -1) < len(p) },
	},
	"at_least_three_unique_digits": {
		"must have at least three different digits",
		func(p string) bool { return differentDigits(p) >= 3 },
	},
	"no_all_same_digits": {
		"must have at least two different digits",
		func(p string) bool { return differentDigits(p) >= 2 },
	},
	"cannot_contain_089": {
		"must not contain 0, 8 or 9",
		func(p string) bool { return !strings.ContainsAny(p, "089") },
	},
	"cannot_contain_0789": {
		"must not contain 0, 7, 8 or 9",
		func(p string) bool { return !strings.ContainsAny(p, "0789") },
	},
}

// longestRun returns the length of the longest part of p in which each digit exceeds the previous one by step.
func longestRun(p string, step int) int {
	longest, run := 1, 1
	for i := 1; i < len(p); i++ {
		if int(p[i])-int(p[i-1]) == step {
			run++
		} else {
			run = 1
		}
		longest = max(longest, run)
	}
	return longest
}

func differentDigits(p string) int {
	var seen [10]bool
	n := 0
	for _, c := range []byte(p) {
		if !seen[c-'0'] {
			seen[c-'0'] = true
			n++
		}
	}
	return n
}

// parseTimeFrame parses both ends of a time frame; two empty texts are no time frame. It fails with Invalid if only one
// is empty, if the end is not after the start, or if the end is past.
func parseTimeFrame(starts, ends string, now time.Time) (*time.Time, *time.Time, error) {
	if starts == "" && ends == "" {
		return nil, nil, nil
	}
	if starts == "" || ends == "" {
		field := "starts_at"
		if ends == "" {
			field = "ends_at"
		}
		return nil, nil, domain.Invalidf(field, "Both starts_at and ends_at must be provided if one is")
	}
	s, startsErr := domain.ParseTime("starts_at", starts)
	e, endsErr := domain.ParseTime("ends_at", ends)
	if err := domain.All(startsErr, endsErr); err != nil {
		return nil, nil, err
	}
	return checkTimeFrame(s, e, now)
}

func checkTimeFrame(s, e, now time.Time) (*time.Time, *time.Time, error) {
	switch {
	case !e.After(s):
		return nil, nil, domain.Invalidf("ends_at", "ends_at must be after starts_at")
	case !e.After(now):
		return nil, nil, domain.Invalidf("ends_at", "ends_at must be in the future")
	}
	return &s, &e, nil
}

// checkWhole checks that a time frame has both ends or neither: vendors list codes with one end, but accept no such
// write. It fails with Invalid.
func checkWhole(starts, ends *time.Time) error {
	switch {
	case starts != nil && ends == nil:
		return domain.Invalidf("ends_at",
			"At its vendor this code has a starts_at and no ends_at, which cannot be written back; "+
				"give ends_at too, or type ongoing")
	case starts == nil && ends != nil:
		return domain.Invalidf("starts_at",
			"At its vendor this code has an ends_at and no starts_at, which cannot be written back; "+
				"give starts_at too, or type ongoing")
	}
	return nil
}
