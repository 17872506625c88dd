package zwavejs

import (
	"encoding/json"
	"strings"
)

// What is kept of what a gateway tells for as long as it is connected: it may be somebody's who tells without an end.
const (
	mostNode  = 4095   // number of a node: those of Z-Wave Long Range have 12 bits
	mostLocks = 500    // of a network; the listing of so many is larger than it may be
	mostSlots = 1000   // of a lock; others are no codes to us
	mostPIN   = 32     // bytes; PINs of User Code have 4 to 10
	mostTold  = 20_000 // codes of a network before a lock has shown them
	mostCodes = 30_000 // codes of a network
	mostText  = 250    // bytes of a name
)

// brief is the beginning of a text, without the rest of it in memory.
func brief(text string, most int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), most)], ""))
}

// word is what a gateway calls something, where that is a word.
func word(text string) string {
	strange := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if text == "" || len(text) > 100 || strings.ContainsFunc(text, strange) {
		return "an error"
	}
	return text
}

// pinIn is JSON that is a PIN, with stars where it is hidden.
func pinIn(data json.RawMessage) (pin string, ok bool) {
	if len(data) > len(`""`)+6*mostPIN || json.Unmarshal(data, &pin) != nil || len(pin) > mostPIN {
		return "", false
	}
	return pin, true
}

// slotIn says whether a number is that of a slot.
func slotIn(n int) bool { return 1 <= n && n <= mostSlots }
