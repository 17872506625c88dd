package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes foreign text, such as a name or a vendor's message, safe for one line of a terminal: it quotes text that
// contains unprintable characters.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strconv.Quote(text)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// printableLines makes text of several lines safe for a terminal: it escapes unprintable characters except newlines.
func printableLines(text string) string {
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
