package device

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestPINsObeyTheDevice(t *testing.T) {
	t.Parallel()
	constraint := func(kinds ...string) (c capability.Set) {
		for _, k := range kinds {
			c.Constraints = append(c.Constraints, capability.Constraint{Type: k})
		}
		return c
	}
	for _, c := range []struct {
		name, pin string
		caps      capability.Set
		ok        bool
	}{
		{"four digits", "1234", capability.Set{}, true},
		{"twelve digits", "123456789012", capability.Set{}, true},
		{"three digits", "123", capability.Set{}, false},
		{"thirteen digits", "1234567890123", capability.Set{}, false},
		{"letters", "12a4", capability.Set{}, false},
		{"other digits", "１２３４", capability.Set{}, false},
		{"supported length", "123456", capability.Set{CodeLengths: []int{4, 6}}, true},
		{"unsupported length", "12345", capability.Set{CodeLengths: []int{4, 6}}, false},
		{"zero", "1204", constraint("no_zeros"), false},
		{"no zero", "1234", constraint("no_zeros"), true},
		{"begins with 12", "1294", constraint("cannot_start_with_12"), false},
		{"12 later", "9124", constraint("cannot_start_with_12"), true},
		{"triple", "1222", constraint("no_triple_consecutive_ints"), false},
		{"double", "1223", constraint("no_triple_consecutive_ints"), true},
		{"ascending", "3456", constraint("no_ascending_or_descending_sequence"), false},
		{"descending", "6543", constraint("no_ascending_or_descending_sequence"), false},
		{"partly ascending", "3459", constraint("no_ascending_or_descending_sequence"), true},
		{"two different", "1212", constraint("at_least_three_unique_digits"), false},
		{"three different", "1213", constraint("at_least_three_unique_digits"), true},
		{"all the same", "7777", constraint("no_all_same_digits"), false},
		{"089", "1238", constraint("cannot_contain_089"), false},
		{"0789", "1237", constraint("cannot_contain_0789"), false},
		{"unknown constraint", "1237", constraint("invented_tomorrow"), true},
		{"all constraints count", "1023", constraint("cannot_start_with_12", "no_zeros"), false},
	} {
		err := checkPIN(c.pin, c.caps)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "0789" && !strings.Contains(err.Error(), "A PIN on this device must not contain 0, 7, 8 or 9") {
			t.Errorf("the message does not state the rule: %v", err)
		}
		if err != nil && strings.Contains(err.Error(), c.pin) {
			t.Errorf("%s: the message shows the PIN", c.name)
		}
	}
}

func TestTimeFrames(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, starts, ends string
		field              string // of the error; empty: none
	}{
		{"none", "", "", ""},
		{"zones count", "2026-11-21T13:00:00Z", "2026-11-21T14:00:00+02:00", "ends_at"},
		{"begun already", "2026-11-20T13:00:00Z", "2026-11-22T14:00:00+02:00", ""},
		{"fractions", "2026-11-21T13:00:00.123Z", "2026-11-21T14:00:00.5Z", ""},
		{"no seconds", "2026-11-21T13:00Z", "2026-11-21T14:00Z", ""},
		{"no zone is UTC", "2026-11-21T13:00:00", "2026-11-21T14:00:00", ""},
		{"no end", "2026-11-21T13:00:00Z", "", "ends_at"},
		{"no start", "", "2026-11-21T13:00:00Z", "starts_at"},
		{"no time", "tomorrow", "2026-11-21T13:00:00Z", "starts_at"},
		{"ends before it starts", "2026-11-22T13:00:00Z", "2026-11-22T12:00:00Z", "ends_at"},
		{"ends as it starts", "2026-11-22T13:00:00Z", "2026-11-22T13:00:00Z", "ends_at"},
		{"over", "2026-11-20T13:00:00Z", "2026-11-21T11:59:59Z", "ends_at"},
	} {
		_, _, err := parseTimeFrame(c.starts, c.ends, now)
		e, _ := errors.AsType[*domain.Error](err)
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (e == nil || e.Field != c.field):
			t.Errorf("%s: %v, expected an error on %s", c.name, err, c.field)
		}
	}
}
