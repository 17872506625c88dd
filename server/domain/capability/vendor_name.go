package capability

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Names belong to people, and limits to vendors. The API keeps the name of a code in full (Name). The device gets a name
// that its vendor accepts (VendorName).

const (
	// fillerName replaces a name without accepted characters, and precedes one that is too short.
	fillerName = "Code"

	// maxFilled bounds the minimum length of names, which a vendor reports.
	maxFilled = 255

	// maxSameNames bounds the numbers that make names unique. It exceeds the number of codes of any lock.
	maxSameNames = 10000
)

// VendorName returns the name that a device gets for a code of a clean name. taken reports whether another code on the device has a
// name. Only vendors that require unique names need it.
func (s Set) VendorName(name string, taken func(string) bool) string {
	if s.NameCharacters == NamesAlphanumeric {
		name = alphanumeric(name)
	}
	shortest, longest, unique := s.nameRules()
	full := lengthen(name, shortest)
	name = shorten(full, shortest, longest)
	for n := 2; unique && n < maxSameNames && taken(name); n++ {
		name = numbered(full, n, shortest, longest)
	}
	return name
}

// nameRules returns the bounds of a name's length in characters, 0 for none, and whether names must be unique.
func (s Set) nameRules() (shortest, longest int, unique bool) {
	for _, c := range s.Constraints {
		switch c.Type {
		case "name_length":
			shortest, longest = c.MinLength, c.MaxLength
		case "name_must_be_unique":
			unique = true
		}
	}
	return shortest, longest, unique
}

// UniqueNames reports whether the names of the codes on a device must differ.
func (s Set) UniqueNames() bool {
	_, _, unique := s.nameRules()
	return unique
}

// alphanumeric reduces a name to ASCII letters, digits, and spaces. Letters lose their accents.
func alphanumeric(name string) string {
	var kept strings.Builder
	for _, r := range norm.NFKD.String(name) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			kept.WriteRune(r)
		case !unicode.Is(unicode.M, r): // an accent leaves no gap
			kept.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(kept.String()), " ")
}

// lengthen extends a name to the minimum length.
func lengthen(name string, shortest int) string {
	if len([]rune(name)) >= shortest {
		return name
	}
	name = strings.TrimSpace(fillerName + " " + name)
	missing := min(shortest, maxFilled) - len([]rune(name))
	return name + strings.Repeat("0", max(missing, 0))
}

// shorten cuts a name to the maximum length, where possible between two characters with all their accents.
func shorten(name string, shortest, longest int) string {
	all := []rune(name)
	if longest <= 0 || len(all) <= longest {
		return name
	}
	cut := longest
	for cut > 1 && unicode.Is(unicode.M, all[cut]) {
		cut--
	}
	const joiner = "\u200d" // joins emoji
	short := strings.TrimRight(string(all[:cut]), " "+joiner)
	if len([]rune(short)) < shortest {
		return string(all[:longest])
	}
	return short
}

// numbered shortens a name and appends a number.
func numbered(name string, n, shortest, longest int) string {
	number := " " + strconv.Itoa(n)
	switch room := longest - len(number); {
	case longest <= 0:
		return name + number
	case room > 0:
		return shorten(name, shortest-len(number), room) + number
	}
	return fmt.Sprintf("%0*d", shortest, n)
}
