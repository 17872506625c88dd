package zwavejs

import (
	"encoding/json"
	"strings"
)

// Limits of what is stored of the messages of a gateway, which may be faulty or malicious.
const (
	// maxNodeID is the maximum node identifier; Z-Wave Long Range has 12 bits.
	maxNodeID = 4095
	// maxLocks is per network. The list of more locks would exceed its size limit.
	maxLocks = 500
	// maxSlots is per lock; codes in higher slots are ignored.
	maxSlots = 1000
	// maxPINSize is in bytes; PINs of User Code have 4 to 10.
	maxPINSize = 32
	// maxSeededCodes is the maximum number of codes of a network up to which codes in the gateway's copy are adopted.
	maxSeededCodes = 20_000
	// maxCodes is the maximum number of codes of a network.
	maxCodes = 30_000
	// maxTextSize is the maximum size of a name in bytes.
	maxTextSize = 250
)

// brief returns the first bytes of a text without retaining the rest in memory.
func brief(text string, most int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), most)], ""))
}

// word returns an identifier of the gateway, or a placeholder if it is not a word.
func word(text string) string {
	strange := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if text == "" || len(text) > 100 || strings.ContainsFunc(text, strange) {
		return "an error"
	}
	return text
}

// pinIn decodes a PIN from JSON; hidden PINs consist of asterisks.
func pinIn(data json.RawMessage) (pin string, ok bool) {
	if len(data) > len(`""`)+6*maxPINSize || json.Unmarshal(data, &pin) != nil || len(pin) > maxPINSize {
		return "", false
	}
	return pin, true
}

// slotIn reports whether n is a valid slot.
func slotIn(n int) bool { return 1 <= n && n <= maxSlots }
