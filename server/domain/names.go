package domain

import (
	"strings"
	"unicode/utf8"
)

// maxName is the maximum number of characters of a name, as in the contract. The API enforces the contract.
// Commands are held to this rule only.
const maxName = 255

// CheckText fails with Invalid for text that cannot be stored in the field or searched for. An empty text
// passes.
func CheckText(field, text string) error {
	what := "The " + strings.ReplaceAll(field, "_", " ")
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return Invalidf(field, "%s is not UTF-8. Encode it as UTF-8", what)
	case strings.Contains(text, "\x00"): // Postgres stores none
		return Invalidf(field, "%s contains a null character. Leave it out", what)
	case n > maxName:
		return Invalidf(field, "%s has %d characters. Use at most %d", what, n, maxName)
	}
	return nil
}

// CheckLabel is CheckText for a required name.
func CheckLabel(field, name string) error {
	if strings.TrimSpace(name) == "" {
		return Invalidf(
			field,
			"The %s is blank. Use at least one visible character",
			strings.ReplaceAll(field, "_", " "),
		)
	}
	return CheckText(field, name)
}
