package lockrules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/lockrules"
)

func TestCheckPIN_ReportsEachBrokenRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, pin   string
		lengths     []int
		constraints []string
		want        []string // facts
	}{
		{name: "nothing known", pin: "1234"},
		{name: "unknown constraint", pin: "1234", constraints: []string{"invented_tomorrow"}},
		{name: "supported length", pin: "123456", lengths: []int{4, 6}},
		{name: "one length", pin: "1234", lengths: []int{6}, want: []string{"a PIN must have 6 digits"}},
		{name: "two lengths", pin: "12345", lengths: []int{6, 4}, want: []string{"a PIN must have 4 or 6 digits"}},
		{name: "range", pin: "123456789", lengths: []int{4, 5, 6}, want: []string{"a PIN must have 4 to 6 digits"}},
		{name: "gaps", pin: "12345", lengths: []int{4, 6, 8}, want: []string{"a PIN must have 4, 6, or 8 digits"}},
		{name: "zero", pin: "1204", constraints: []string{"no_zeros"}, want: []string{"a PIN must not contain 0 (no_zeros)"}},
		{name: "no zero", pin: "1234", constraints: []string{"no_zeros"}},
		{
			name: "starts with 12", pin: "1294", constraints: []string{"cannot_start_with_12"},
			want: []string{"a PIN must not start with 12 (cannot_start_with_12)"},
		},
		{name: "12 later", pin: "9124", constraints: []string{"cannot_start_with_12"}},
		{
			name: "triple", pin: "1222", constraints: []string{"no_triple_consecutive_ints"},
			want: []string{"a PIN must not have three equal digits in a row (no_triple_consecutive_ints)"},
		},
		{name: "double", pin: "1223", constraints: []string{"no_triple_consecutive_ints"}},
		{
			name: "ascending", pin: "3456", constraints: []string{"no_ascending_or_descending_sequence"},
			want: []string{
				"a PIN must not be an ascending or descending sequence (no_ascending_or_descending_sequence)",
			},
		},
		{
			name: "descending", pin: "6543", constraints: []string{"no_ascending_or_descending_sequence"},
			want: []string{
				"a PIN must not be an ascending or descending sequence (no_ascending_or_descending_sequence)",
			},
		},
		{name: "partly ascending", pin: "3459", constraints: []string{"no_ascending_or_descending_sequence"}},
		{
			name: "two different", pin: "1212", constraints: []string{"at_least_three_unique_digits"},
			want: []string{"a PIN must have at least three different digits (at_least_three_unique_digits)"},
		},
		{name: "three different", pin: "1213", constraints: []string{"at_least_three_unique_digits"}},
		{
			name: "same digits", pin: "7777", constraints: []string{"no_all_same_digits"},
			want: []string{"a PIN must have at least two different digits (no_all_same_digits)"},
		},
		{
			name: "089", pin: "1238", constraints: []string{"cannot_contain_089"},
			want: []string{"a PIN must not contain 0, 8, or 9 (cannot_contain_089)"},
		},
		{name: "7 is not in 089", pin: "1237", constraints: []string{"cannot_contain_089"}},
		{
			name: "0789", pin: "1237", constraints: []string{"cannot_contain_0789"},
			want: []string{"a PIN must not contain 0, 7, 8, or 9 (cannot_contain_0789)"},
		},
		{
			name: "two rules", pin: "1204", lengths: []int{6}, constraints: []string{"no_zeros"},
			want: []string{"a PIN must have 6 digits", "a PIN must not contain 0 (no_zeros)"},
		},
		{
			name: "vendor chooses", pin: "12", lengths: []int{6}, constraints: []string{"cannot_specify_pin_code"},
			want: []string{"the vendor chooses the PINs (cannot_specify_pin_code)"},
		},
	} {
		lock := lockrules.Lock{CodeLengths: c.lengths, Constraints: c.constraints}
		var facts []string
		for _, problem := range lockrules.CheckPIN(lock, c.pin) {
			facts = append(facts, problem.Fact)
			if problem.IsWarning || problem.Subject != lockrules.SubjectPIN || strings.Contains(problem.Fact, c.pin) {
				t.Errorf("%s: the problem is %+v", c.name, problem)
			}
		}
		if !slices.Equal(facts, c.want) {
			t.Errorf("%s: the facts are %q, want %q", c.name, facts, c.want)
		}
	}
}

func TestFits_NeedsDigitsAndALockThatTakesCodes(t *testing.T) {
	t.Parallel()
	for pin, want := range map[string]bool{
		"1234":          true,
		"123456789012":  true,
		"123":           false,
		"1234567890123": false,
		"12a4":          false,
		"１２３４":          false,
		"":              false,
	} {
		if got := lockrules.Fits(lockrules.Lock{}, pin); got != want {
			t.Errorf("%q fits: %v", pin, got)
		}
		if lockrules.Fits(lockrules.Lock{RejectsCodes: true}, pin) {
			t.Errorf("%q fits a device without codes", pin)
		}
	}
}

func TestCheck_JudgesWhatIsPlanned(t *testing.T) {
	t.Parallel()
	at := func(day int) *time.Time {
		moment := time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC)
		return &moment
	}
	vendor := []string{"cannot_specify_pin_code"}
	two := []lockrules.HeldCode{{ID: "a", PIN: "2468", Name: "Ana"}, {ID: "b", PIN: "1357", IsManaged: true}}
	for _, c := range []struct {
		name string
		lock lockrules.Lock
		code lockrules.Code
		want string // summaries, with "?" after a warning
	}{
		{"nothing known", lockrules.Lock{}, lockrules.Code{IsNew: true, PIN: "2468"}, ""},
		{"no codes", lockrules.Lock{RejectsCodes: true}, lockrules.Code{IsNew: true}, "Device cannot hold access codes?"},
		{"no codes, existing", lockrules.Lock{RejectsCodes: true}, lockrules.Code{}, ""},
		{
			"no offline codes",
			lockrules.Lock{RejectsOfflineCodes: true},
			lockrules.Code{IsNew: true, IsOffline: true},
			"Lock cannot have offline access codes",
		},
		{"offline code only", lockrules.Lock{RejectsCodes: true}, lockrules.Code{IsNew: true, IsOffline: true}, ""},
		{"vendor's PIN", lockrules.Lock{Constraints: vendor}, lockrules.Code{IsNew: true}, ""},
		{
			"own PIN",
			lockrules.Lock{Constraints: vendor},
			lockrules.Code{IsNew: true, PIN: "2468"},
			"PIN cannot be chosen for the lock",
		},
		{
			"shared PIN",
			lockrules.Lock{Constraints: vendor},
			lockrules.Code{IsNew: true, SharesPIN: true},
			"PIN cannot be chosen for the lock",
		},
		{"key of an existing code", lockrules.Lock{Constraints: vendor}, lockrules.Code{SharesPIN: true}, ""},
		{"PIN taken", lockrules.Lock{Codes: two}, lockrules.Code{PIN: "2468"}, "PIN is already on the lock?"},
		{"PIN taken, not planned", lockrules.Lock{Codes: two}, lockrules.Code{}, ""},
		{
			"first digits",
			lockrules.Lock{Codes: two, Constraints: []string{"unique_first_four_digits"}},
			lockrules.Code{PIN: "246899"},
			"PIN resembles one on the lock?",
		},
		{"first digits without that rule", lockrules.Lock{Codes: two}, lockrules.Code{PIN: "246899"}, ""},
		{
			"name taken",
			lockrules.Lock{Codes: two, Constraints: []string{"name_must_be_unique"}},
			lockrules.Code{Name: "ANA"},
			"Name is already on the lock?",
		},
		{"name taken without that rule", lockrules.Lock{Codes: two}, lockrules.Code{Name: "Ana"}, ""},
		{"no name", lockrules.Lock{Codes: two, Constraints: []string{"name_must_be_unique"}}, lockrules.Code{}, ""},
		{"full", lockrules.Lock{Codes: two, MaxCodes: 2}, lockrules.Code{IsNew: true}, "Lock is full?"},
		{"full, existing", lockrules.Lock{Codes: two, MaxCodes: 2}, lockrules.Code{}, ""},
		{"one slot", lockrules.Lock{Codes: two, MaxCodes: 3}, lockrules.Code{IsNew: true}, ""},
		{
			"full before",
			lockrules.Lock{Codes: []lockrules.HeldCode{{EndsAt: at(5)}}, MaxCodes: 1},
			lockrules.Code{IsNew: true, StartsAt: at(5), EndsAt: at(6)},
			"",
		},
		{
			"full after",
			lockrules.Lock{Codes: []lockrules.HeldCode{{StartsAt: at(6)}}, MaxCodes: 1},
			lockrules.Code{IsNew: true, StartsAt: at(5), EndsAt: at(6)},
			"",
		},
		{
			"full within",
			lockrules.Lock{Codes: []lockrules.HeldCode{{StartsAt: at(5), EndsAt: at(7)}}, MaxCodes: 1},
			lockrules.Code{IsNew: true, StartsAt: at(4), EndsAt: at(6)},
			"Lock is full?",
		},
		{
			"full later",
			lockrules.Lock{Codes: []lockrules.HeldCode{{StartsAt: at(5), EndsAt: at(7)}}, MaxCodes: 1},
			lockrules.Code{IsNew: true},
			"Lock is full?",
		},
		{"one after another", lockrules.Lock{Codes: []lockrules.HeldCode{
			{StartsAt: at(1), EndsAt: at(2)}, {StartsAt: at(2), EndsAt: at(3)},
		}, MaxCodes: 2}, lockrules.Code{IsNew: true}, ""},
		{"offline", lockrules.Lock{Obstacle: lockrules.Offline}, lockrules.Code{Waits: true}, "Lock is offline?"},
		{"offline, no wait", lockrules.Lock{Obstacle: lockrules.Offline}, lockrules.Code{IsNew: true}, ""},
		{
			"offline, online only",
			lockrules.Lock{Obstacle: lockrules.Offline},
			lockrules.Code{OnlineOnly: true},
			"Lock is offline?",
		},
		{
			"offline code of an offline lock",
			lockrules.Lock{Obstacle: lockrules.Offline},
			lockrules.Code{IsNew: true, IsOffline: true, Waits: true},
			"",
		},
		{
			"disconnected",
			lockrules.Lock{Obstacle: lockrules.Disconnected},
			lockrules.Code{Waits: true},
			"Account of the lock is disconnected?",
		},
		{
			"removed",
			lockrules.Lock{Obstacle: lockrules.Removed},
			lockrules.Code{Waits: true},
			"Lock was removed from its account?",
		},
		{
			"several",
			lockrules.Lock{Codes: two, MaxCodes: 2, CodeLengths: []int{6}},
			lockrules.Code{IsNew: true, PIN: "2468"},
			"PIN does not fit the lock, PIN is already on the lock?, Lock is full?",
		},
	} {
		var summaries []string
		for _, problem := range lockrules.Check(c.lock, c.code) {
			summary := problem.Summary
			if problem.IsWarning {
				summary += "?"
			}
			summaries = append(summaries, summary)
		}
		if got := strings.Join(summaries, ", "); got != c.want {
			t.Errorf("%s: the problems are %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheck_PINsTakeTurns(t *testing.T) {
	t.Parallel()
	at := func(minute int) *time.Time {
		moment := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
		return &moment
	}
	stay := func(from, until int) lockrules.HeldCode {
		return lockrules.HeldCode{PIN: "2468", IsManaged: true, StartsAt: at(from), EndsAt: at(until)}
	}
	held := func(code lockrules.HeldCode, change func(*lockrules.HeldCode)) lockrules.HeldCode {
		change(&code)
		return code
	}
	frame := func(from, until int) lockrules.Code { return lockrules.Code{StartsAt: at(from), EndsAt: at(until)} }
	for name, c := range map[string]struct {
		held    lockrules.HeldCode
		code    lockrules.Code
		refused bool // with a new PIN
		kept    bool // with its PIN and another time frame
	}{
		"the margin later":           {stay(0, 60), frame(75, 90), false, false},
		"less than the margin later": {stay(0, 60), frame(74, 90), true, true},
		"the margin earlier":         {stay(75, 90), frame(0, 60), false, false},
		"overlapping":                {stay(0, 60), frame(30, 90), true, true},
		"ongoing":                    {stay(0, 60), lockrules.Code{}, true, true},
		"known at apply":             {stay(0, 60), lockrules.Code{FrameIsUnknown: true}, false, false},
		"of an ongoing code": {
			lockrules.HeldCode{PIN: "2468", IsManaged: true}, frame(75, 90), true, false,
		},
		"of a code known at apply": {
			lockrules.HeldCode{PIN: "2468", IsManaged: true, FrameIsUnknown: true}, frame(75, 90), false, false,
		},
		"ongoing, of a code known at apply": {
			lockrules.HeldCode{PIN: "2468", IsManaged: true, FrameIsUnknown: true}, lockrules.Code{}, true, true,
		},
		"of an unmanaged code": {
			held(stay(0, 60), func(h *lockrules.HeldCode) { h.IsManaged = false }), frame(75, 90), true, false,
		},
		"of an offline code": {
			held(stay(0, 60), func(h *lockrules.HeldCode) { h.IsOffline = true }), frame(75, 90), true, false,
		},
		"earlier than a code on the lock": {
			held(stay(75, 90), func(h *lockrules.HeldCode) { h.IsOnLock = true }), frame(0, 60), true, true,
		},
		"later than a code on the lock": {
			held(stay(0, 60), func(h *lockrules.HeldCode) { h.IsOnLock = true }), frame(75, 90), false, false,
		},
	} {
		lock := lockrules.Lock{Codes: []lockrules.HeldCode{c.held}}
		for kept, want := range map[bool]bool{false: c.refused, true: c.kept} {
			code := c.code
			if code.PIN = "2468"; kept {
				code.PIN, code.KeptPIN = "", "2468"
			}
			problems := lockrules.Check(lock, code)
			if refused := len(problems) > 0; refused != want {
				t.Errorf("%s, kept PIN %t: refused %t", name, kept, refused)
			}
			for _, p := range problems {
				if p.Kind != lockrules.KindPINTaken || !p.IsWarning || p.Holder == nil {
					t.Errorf("%s: the problem is %+v", name, p)
				}
			}
		}
	}
}

func TestCheck_SimilarPINsTakeNoTurns(t *testing.T) {
	t.Parallel()
	day := func(n int) *time.Time {
		moment := time.Date(2030, 1, n, 0, 0, 0, 0, time.UTC)
		return &moment
	}
	problems := lockrules.Check(lockrules.Lock{
		Constraints: []string{"unique_first_four_digits"},
		Codes:       []lockrules.HeldCode{{PIN: "246813", IsManaged: true, StartsAt: day(1), EndsAt: day(2)}},
	}, lockrules.Code{PIN: "246899", StartsAt: day(3), EndsAt: day(4)})
	if len(problems) != 1 || problems[0].IsOfTimes {
		t.Errorf("the problems are %+v", problems)
	}
}
