package sandbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// startTolerance is how far back a time frame may begin where it has to lie in the future: the request
// was on its way for a while.
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

// checkPIN says why the lock refuses the PIN: INVALID_PIN.
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

// checkName says why the vendor refuses the name: INVALID_NAME.
func (p profile) checkName(name string) *problem {
	n := utf8.RuneCountInString(name)
	if n < p.NameMin || p.NameMax > 0 && n > p.NameMax {
		return refuse(invalidName, "A name has %d to %d characters.", p.NameMin, p.NameMax)
	}
	return nil
}

// checkTime says why the lock cannot keep the time frame: INVALID_TIME_FRAME. Was is the time frame that
// the code has so far, which may stay as it is.
func (p profile) checkTime(frame, was window, now time.Time) *problem {
	switch {
	case frame.open(), frame.same(was):
		return nil
	case !p.NativeSchedule:
		return refuse(invalidTimeFrame, "The lock keeps no time frames.")
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

// newPIN draws a PIN that the lock takes and that none of the codes has.
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
