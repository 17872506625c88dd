package store

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSearch is the number of characters of the longest text that a search finds. PostgreSQL compiles the pattern, whose size
// must be bounded. Names, addresses, and values of metadata are not longer.
const maxSearch = 500

// noMatch is a pattern that matches nothing.
const noMatch = "(?!)"

// SearchPattern returns a regular expression of PostgreSQL that matches values that contain text, ignoring case. It spells
// out both cases, because lower() of a database with LC_CTYPE C changes ASCII letters only. It returns nil for the empty
// text, which every value contains.
func SearchPattern(text string) *string {
	if text == "" {
		return nil
	}
	if utf8.RuneCountInString(text) > maxSearch {
		text := noMatch
		return &text
	}
	var b strings.Builder
	for _, r := range text {
		writeAnyCase(&b, r)
	}
	pattern := b.String()
	return &pattern
}

// writeAnyCase writes a pattern for all cases of a character.
func writeAnyCase(b *strings.Builder, r rune) {
	cases := []rune{r}
	for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
		cases = append(cases, c)
	}
	switch r {
	case 'i', 'I':
		cases = append(cases, 'İ') // Unicode folds it to i with a combining dot
	case 'İ':
		cases = append(cases, 'i', 'I')
	}
	switch {
	case len(cases) > 1:
		b.WriteString("[" + string(cases) + "]")
	case r < utf8.RuneSelf && !unicode.IsDigit(r):
		b.WriteString(`\` + string(r)) // it may be an operator
	default:
		b.WriteRune(r)
	}
}
