package capability

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func namesOf(shortest, longest int, unique bool, characters NameCharacters) Set {
	caps := Set{NameCharacters: characters}
	if shortest > 0 || longest > 0 {
		bounds := Constraint{Type: "name_length", MinLength: shortest, MaxLength: longest}
		caps.Constraints = append(caps.Constraints, bounds)
	}
	if unique {
		caps.Constraints = append(caps.Constraints, Constraint{Type: "name_must_be_unique"})
	}
	return caps
}

func TestVendorName(t *testing.T) {
	t.Parallel()
	const alnum = NamesAlphanumeric
	for _, c := range []struct {
		name     string
		full     string
		shortest int
		longest  int
		alnum    bool
		on       []string // names on the device; nil: they need not be unique
		want     string
	}{
		{name: "fits", full: "Cleaner", shortest: 1, longest: 20, want: "Cleaner"},
		{name: "no bound", full: strings.Repeat("é", 255), want: strings.Repeat("é", 255)},
		{name: "29 characters", full: "Reservation 2025-07 Ana Gómez", longest: 20, want: "Reservation 2025-07"},
		{name: "exactly as long", full: "12345678901234567890", longest: 20, want: "12345678901234567890"},
		{name: "counts characters", full: "Żółć gęślą jaźń", longest: 12, want: "Żółć gęślą j"},
		{name: "keeps a base and its accent", full: "Gomez\u0301 Ana", longest: 5, want: "Gome"},
		{name: "keeps no joiner", full: "Ana 👩\u200d👩", longest: 6, want: "Ana 👩"},
		{name: "too short", full: "A", shortest: 2, longest: 14, want: "Code A"},
		{name: "empty and may be", full: "", longest: 20, want: ""},
		{name: "empty", full: "", shortest: 1, longest: 12, want: "Code"},
		{name: "much too short", full: "A", shortest: 9, longest: 12, want: "Code A000"},
		{name: "too short with little room", full: "A", shortest: 2, longest: 3, want: "Cod"},
		{name: "control characters", full: "Ana\x1b[31m\u202e\nGómez\x00", longest: 20, want: "Ana[31m Gómez"},
		{name: "accents", full: "Zoë O'Brien-Łuk", shortest: 1, longest: 20, alnum: true, want: "Zoe O Brien uk"},
		{name: "another script", full: "Жанна", shortest: 1, longest: 12, alnum: true, want: "Code"},
		{name: "free", full: "Guest", longest: 14, on: []string{"Other"}, want: "Guest"},
		{name: "taken", full: "Guest", longest: 14, on: []string{"Guest"}, want: "Guest 2"},
		{name: "taken in another case", full: "Guest", longest: 14, on: []string{"GUEST", "guest 2"}, want: "Guest 3"},
		{name: "taken and long", full: "Reservation Ana", longest: 14, on: []string{"Reservation An"}, want: "Reservation 2"},
		{name: "taken without room", full: "Guest", longest: 2, on: []string{"Gu"}, want: "2"},
		{name: "taken without bound", full: "Guest", on: []string{"Guest"}, want: "Guest 2"},
	} {
		characters := NameCharacters("")
		if c.alnum {
			characters = alnum
		}
		caps := namesOf(c.shortest, c.longest, c.on != nil, characters)
		got := caps.VendorName(domain.CleanName(c.full), func(name string) bool {
			return slices.ContainsFunc(c.on, func(o string) bool { return strings.EqualFold(o, name) })
		})
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestVendorName_ObeysEveryRule combines rules and names.
func TestVendorName_ObeysEveryRule(t *testing.T) {
	t.Parallel()
	names := []string{
		"", " ", "A", "Cleaner", "Ana\u202eGómez", "👩\u200d👩\u200d👧", "Жанна", "e\u0301\u0301\u0301",
		strings.Repeat("Ünïcödé ", 32), strings.Repeat("\u0301", 255), "\xff\xfe",
	}
	for _, shortest := range []int{-1, 0, 1, 2, 6, 30, 1 << 40} {
		for _, longest := range []int{0, 2, 12, 20, 255} {
			for _, characters := range []NameCharacters{"", NamesAlphanumeric} {
				if longest > 0 && longest < shortest {
					continue
				}
				t.Run(fmt.Sprint(shortest, longest, characters), func(t *testing.T) {
					t.Parallel()
					on := map[string]bool{}
					for range 3 {
						for _, name := range names {
							caps := namesOf(shortest, longest, true, characters)
							got := caps.VendorName(
								domain.CleanName(name),
								func(name string) bool { return on[strings.ToLower(name)] },
							)
							n := utf8.RuneCountInString(got)
							if !utf8.ValidString(got) || n < min(shortest, maxFilled) || longest > 0 && n > longest {
								t.Errorf("%q becomes %q", name, got)
							}
							if on[strings.ToLower(got)] {
								t.Errorf("%q becomes %q, which is taken", name, got)
							}
							on[strings.ToLower(got)] = true
						}
					}
				})
			}
		}
	}
}
