package domain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the maximum number of characters of a name, as in the contract. The API enforces the contract.
// Commands are held to this rule only.
const maxName = 255

// CheckText fails with Invalid for text that cannot be stored in the field or searched for, or that could disguise
// itself where it is shown. An empty text passes.
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
	if i := strings.IndexFunc(text, disguises); i >= 0 {
		return Invalidf(field, "%s contains a %s. Leave it out", what, describe(text[i:]))
	}
	return nil
}

// CheckName fails with Invalid for a name that CheckText refuses for its characters. Names are written to terminals,
// consoles, and locks.
func CheckName(name string) *Error {
	if i := strings.IndexFunc(name, disguises); i >= 0 {
		return Invalidf("", "String must not contain a %s. Leave it out", describe(name[i:]))
	}
	return nil
}

// CleanName returns a vendor's name in the form that is stored: without the characters that CheckName refuses.
func CleanName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !disguises(r):
			return r
		case unicode.IsSpace(r): // such as a line break
			return ' '
		}
		return -1
	}, Storable(name))
}

// disguises reports whether a character changes how the text around it is shown: a control character, a line or
// paragraph separator, or a character that changes the direction of writing.
func disguises(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// describe names the first character of a text.
func describe(text string) string {
	r, _ := utf8.DecodeRuneInString(text)
	kind := "control character"
	if unicode.Is(unicode.Bidi_Control, r) {
		kind = "character that changes the direction of writing"
	}
	return fmt.Sprintf("%s (U+%04X)", kind, r)
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
