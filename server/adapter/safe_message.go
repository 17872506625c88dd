package adapter

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	// maxMessageBytes is the number of bytes of a vendor's message that are processed.
	maxMessageBytes = 4 << 10
	// maxShownRunes is the number of characters of a vendor's message that are shown.
	maxShownRunes = 200
)

// SafeMessage returns a vendor's message for display: one short line in which the secret, which may be empty, and the
// matches of hidden are replaced by asterisks.
func SafeMessage(message, secret string, hidden ...*regexp.Regexp) string {
	if len(message) > maxMessageBytes {
		// Truncate before copying, and drop what may be the beginning of the secret at the end.
		message = message[:maxMessageBytes]
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
	if runes := []rune(message); len(runes) > maxShownRunes {
		message = string(runes[:maxShownRunes]) + "…"
	}
	return message
}
