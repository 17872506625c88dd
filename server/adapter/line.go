package adapter

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	mostMessage = 4 << 10 // bytes of a vendor's message that are looked at
	mostShown   = 200     // characters of it that are shown
)

// Line is a vendor's message as it may be shown: one line, short, without the secret, which may be empty, and without
// what is hidden besides.
func Line(message, secret string, hidden ...*regexp.Regexp) string {
	if len(message) > mostMessage { // it is cut before it is copied, with what may be a part of the secret at its end
		message = message[:mostMessage]
		message = message[:max(len(message)-len(secret), 0)]
	}
	const stars = "****"
	if secret != "" {
		message = strings.ReplaceAll(message, secret, stars)
	}
	for _, h := range hidden {
		message = h.ReplaceAllString(message, stars)
	}
	message = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, message)
	if runes := []rune(message); len(runes) > mostShown {
		message = string(runes[:mostShown]) + "…"
	}
	return message
}
