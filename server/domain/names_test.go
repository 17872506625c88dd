package domain

import (
	"strings"
	"testing"
)

func TestNames_WithDisguisingCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, cleaned, message string
	}{
		{"letters", "Zoë Жанна 李 ليلى", "Zoë Жанна 李 ليلى", ""},
		{"joined emoji", "👩\u200d👧 Ana", "👩\u200d👧 Ana", ""},
		{"Persian non-joiner", "می\u200cخواهم", "می\u200cخواهم", ""},
		{"escape", "A\x1b[31mB", "A[31mB", "control character (U+001B)"},
		{"bell", "A\aB", "AB", "control character (U+0007)"},
		{"null", "A\x00B", "AB", "control character (U+0000)"},
		{"delete", "A\x7fB", "AB", "control character (U+007F)"},
		{"C1", "A\u009bB", "AB", "control character (U+009B)"},
		{"tab", "A\tB", "A B", "control character (U+0009)"},
		{"line break", "A\nB", "A B", "control character (U+000A)"},
		{"line separator", "A\u2028B", "A B", "control character (U+2028)"},
		{"override", "A\u202eB", "AB", "character that changes the direction of writing (U+202E)"},
		{"isolate", "A\u2066B", "AB", "character that changes the direction of writing (U+2066)"},
		{"mark", "A\u200fB", "AB", "character that changes the direction of writing (U+200F)"},
	} {
		err := CheckName(c.text)
		if (err != nil) != (c.message != "") || err != nil && !strings.Contains(err.Message, c.message) {
			t.Errorf("%s: %v, want %q", c.name, err, c.message)
		}
		if text := CheckText("name", c.text); (text != nil) != (err != nil) {
			t.Errorf("%s: CheckText says %v, and CheckName %v", c.name, text, err)
		}
		if got := CleanName(c.text); got != c.cleaned || CheckName(got) != nil {
			t.Errorf("%s: cleaned %q, want %q", c.name, got, c.cleaned)
		}
	}
}
