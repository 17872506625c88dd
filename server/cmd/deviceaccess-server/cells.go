package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is a text that others have chosen, such as a name or what a vendor says, for a table or a sentence. It is one line, and
// nothing in it is obeyed by a terminal: what cannot be printed has it quoted.
func cell(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strconv.Quote(text)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// lines is a text of several lines, of which a terminal obeys the ends alone.
func lines(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}
