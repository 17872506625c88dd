package access

import (
	"strings"
	"unicode/utf8"
)

// mostName is how many characters a name has at most, as in the contract. The API holds requests to that one; commands are held
// to the rules here alone.
const mostName = 255

// CheckText fails with Invalid for what cannot be kept as the field, or searched for. An empty text is none.
func CheckText(field, text string) error {
	what := "The " + strings.ReplaceAll(field, "_", " ")
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return Invalidf(field, "%s is not UTF-8: give it in that encoding", what)
	case strings.Contains(text, "\x00"): // Postgres stores none
		return Invalidf(field, "%s contains a null character: leave it out", what)
	case n > mostName:
		return Invalidf(field, "%s has %d characters; give at most %d", what, n, mostName)
	}
	return nil
}

// CheckLabel is CheckText for what something has to be known by.
func CheckLabel(field, name string) error {
	if strings.TrimSpace(name) == "" {
		return Invalidf(field, "The %s is blank: give it a character that can be seen", strings.ReplaceAll(field, "_", " "))
	}
	return CheckText(field, name)
}
