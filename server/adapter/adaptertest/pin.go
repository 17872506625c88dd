package adaptertest

import (
	"math/rand/v2"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// pinRules maps each constraint on a single PIN to its predicate and to seeds of PINs that break it. A seed is
// repeated and cut to the required length. The constraints are documented in seamapi/docs, access code constraints.
var pinRules = map[string]struct {
	keeps  func(pin string) bool
	breaks []string // repeated and cut to the length
}{
	"no_zeros": {without("0"), []string{"90"}},
	"cannot_start_with_12": {
		func(pin string) bool { return !strings.HasPrefix(pin, "12") },
		[]string{"1284"},
	},
	"no_triple_consecutive_ints": {
		func(pin string) bool { return longestRun(pin) < 3 },
		[]string{"123718", "321917"},
	},
	"no_ascending_or_descending_sequence": {
		func(pin string) bool { return longestRun(pin) < len(pin) },
		[]string{"123456789", "987654321"},
	},
	"at_least_three_unique_digits": {func(pin string) bool { return unique(pin) >= 3 }, []string{"1", "15"}},
	"no_all_same_digits":           {func(pin string) bool { return unique(pin) > 1 }, []string{"4"}},
	"cannot_contain_089":           {without("089"), []string{"610", "681", "691"}},
	"cannot_contain_0789":          {without("0789"), []string{"610", "671", "681", "691"}},
}

func without(digits string) func(string) bool {
	return func(pin string) bool { return !strings.ContainsAny(pin, digits) }
}

func unique(pin string) int {
	seen := map[rune]bool{}
	for _, d := range pin {
		seen[d] = true
	}
	return len(seen)
}

// longestRun returns the length of the longest ascending or descending run of digits.
func longestRun(pin string) int {
	longest, up, down := 1, 1, 1
	for i := 1; i < len(pin); i++ {
		up, down = up+1, down+1
		if pin[i] != pin[i-1]+1 {
			up = 1
		}
		if pin[i] != pin[i-1]-1 {
			down = 1
		}
		longest = max(longest, up, down)
	}
	return longest
}

// broken returns PINs of the length that break the rule.
func broken(rule string, length int) []string {
	var pins []string
	for _, seed := range pinRules[rule].breaks {
		pin := strings.Repeat(seed, length/len(seed)+1)[:length]
		if !pinRules[rule].keeps(pin) {
			pins = append(pins, pin)
		}
	}
	return pins
}

// pins generates PINs that differ in their first four digits.
type pins struct {
	given func(length int) string
	rules []string
	used  map[string]bool
	rng   *rand.Rand
}

func newPINs(caps capability.Set, given func(int) string) pins {
	p := pins{given: given, used: map[string]bool{}, rng: rand.New(rand.NewPCG(1, 2))}
	for _, c := range caps.Constraints {
		p.rules = append(p.rules, c.Type)
	}
	return p
}

func (p pins) exclude(pin string) {
	if len(pin) >= 4 {
		p.used[pin[:4]] = true
	}
}

func (p pins) next(length int) string {
	if p.given != nil {
		return p.given(length)
	}
	for {
		digits := make([]byte, length)
		for i := range digits {
			digits[i] = byte('0' + p.rng.IntN(10))
		}
		pin := string(digits)
		if p.used[pin[:min(4, length)]] || unique(pin) < 3 || longestRun(pin) > 2 {
			continue
		}
		if p.keepsRules(pin) {
			p.exclude(pin)
			return pin
		}
	}
}

func (p pins) keepsRules(pin string) bool {
	for _, rule := range p.rules {
		if r, ok := pinRules[rule]; ok && !r.keeps(pin) {
			return false
		}
	}
	return true
}
