package adapter

import (
	"regexp"
	"slices"
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
	return SafeMessageOf(message, []string{secret}, hidden...)
}

// SafeMessageOf is SafeMessage for several secrets.
func SafeMessageOf(message string, secrets []string, hidden ...*regexp.Regexp) string {
	// The longest come first, because a secret may contain another.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	if len(message) > maxMessageBytes && len(secrets) > 0 {
		// Truncate before copying, and drop what may be the beginning of a secret at the end.
		message = message[:maxMessageBytes]
		message = message[:max(len(message)-len(secrets[0]), 0)]
	}
	const stars = "****"
	for _, secret := range secrets {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, stars)
		}
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
