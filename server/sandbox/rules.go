package sandbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// startTolerance is how far in the past a time frame that must start in the future may start, to allow for the
// duration of the request.
const startTolerance = time.Minute

var pinRules = map[constraintKind]func(pin string) bool{
	noZeros:           func(pin string) bool { return !strings.Contains(pin, "0") },
	cannotStartWith12: func(pin string) bool { return !strings.HasPrefix(pin, "12") },
	cannotContain0789: func(pin string) bool { return !strings.ContainsAny(pin, "0789") },
	threeUniqueDigits: func(pin string) bool {
		digits := map[rune]bool{}
		for _, d := range pin {
			digits[d] = true
		}
		return len(digits) >= 3
	},
	noSequence: func(pin string) bool {
		up, down := true, true
		for i := 1; i < len(pin); i++ {
			up = up && pin[i] == pin[i-1]+1
			down = down && pin[i] == pin[i-1]-1
		}
		return !up && !down
	},
}

// checkPIN returns why the lock rejects the PIN: INVALID_PIN.
func (p profile) checkPIN(pin string) *problem {
	if strings.Trim(pin, "0123456789") != "" || !slices.Contains(p.CodeLengths, len(pin)) {
		return refuse(invalidPIN, "A PIN of this lock has %s digits.", span(p.CodeLengths))
	}
	for _, c := range p.Constraints {
		if ok := pinRules[c]; ok != nil && !ok(pin) {
			return refuse(invalidPIN, "The lock refuses this PIN: %s.", c)
		}
	}
	return nil
}

// checkName returns why the vendor rejects the name: INVALID_NAME.
func (p profile) checkName(name string) *problem {
	n := utf8.RuneCountInString(name)
	accepted := func(r rune) bool { return !unicode.IsControl(r) }
	if p.NameAlphanumeric {
		accepted = func(r rune) bool {
			return r == ' ' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
		}
	}
	switch {
	case n < p.NameMin || p.NameMax > 0 && n > p.NameMax:
		return refuse(invalidName, "A name has %d to %d characters.", p.NameMin, p.NameMax)
	case strings.ContainsFunc(name, func(r rune) bool { return !accepted(r) }):
		return refuse(invalidName, "The name has a character that the lock does not accept.")
	}
	return nil
}

// checkTime returns why the lock cannot apply the time frame: INVALID_TIME_FRAME. was is the current time frame of
// the code, which may remain unchanged.
func (p profile) checkTime(frame, was window, now time.Time) *problem {
	switch {
	case frame.open(), frame.same(was):
		return nil
	case !p.NativeSchedule:
		return refuse(invalidTimeFrame, "The lock does not support time frames.")
	case frame.StartsAt == nil || frame.EndsAt == nil:
		return refuse(invalidTimeFrame, "A time frame needs starts_at and ends_at.")
	case !frame.EndsAt.After(*frame.StartsAt):
		return refuse(invalidTimeFrame, "ends_at must be after starts_at.")
	case !frame.EndsAt.After(now):
		return refuse(invalidTimeFrame, "ends_at is in the past.")
	case slices.Contains(p.Constraints, startDateInFuture) && frame.StartsAt.Before(now.Add(-startTolerance)) &&
		!sameTime(frame.StartsAt, was.StartsAt):
		return refuse(invalidTimeFrame, "starts_at is in the past.")
	}
	return nil
}

// newPIN draws a PIN that the lock accepts and that none of the codes has.
func (p profile) newPIN(rng *rand.Rand, codes []stored) string {
	for {
		pin := make([]byte, p.CodeLengths[0])
		for i := range pin {
			pin[i] = byte('0' + rng.IntN(10))
		}
		taken := slices.ContainsFunc(codes, func(c stored) bool { return c.PIN == string(pin) })
		if !taken && p.checkPIN(string(pin)) == nil {
			return string(pin)
		}
	}
}

func span(lengths []int) string {
	if n := len(lengths); n > 1 {
		return fmt.Sprintf("%d to %d", lengths[0], lengths[n-1])
	}
	return fmt.Sprint(lengths[0])
}
