package connectpage

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// markColors are the backgrounds of vendors' marks. Their contrast to white is at least 4.5.
var markColors = []string{
	"#1d4ed8", "#0f766e", "#7e22ce", "#b91c1c", "#a16207", "#15803d", "#be185d", "#4338ca", "#0369a1", "#57534e",
}

// markColor returns the color of a vendor's mark, which depends on its name only.
func markColor(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return markColors[h.Sum32()%uint32(len(markColors))]
}

// initials returns up to two letters of a name: of its first two words, or its first one.
func initials(name string) string {
	out := ""
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	for _, word := range words[:min(len(words), 2)] {
		first := []rune(word)[0]
		out += string(unicode.ToUpper(first))
	}
	if out == "" {
		return "•"
	}
	return out
}
