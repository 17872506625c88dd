package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
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

// vendorName returns the name that a device gets for a code. taken reports whether another code on the device has a
// name. Only vendors that require unique names need it.
func vendorName(name string, caps capability.Set, taken func(string) bool) string {
	name = domain.CleanName(name)
	if caps.NameCharacters == capability.NamesAlphanumeric {
		name = alphanumeric(name)
	}
	shortest, longest, unique := nameRules(caps)
	full := lengthen(name, shortest)
	name = shorten(full, shortest, longest)
	for n := 2; unique && n < maxSameNames && taken(name); n++ {
		name = numbered(full, n, shortest, longest)
	}
	return name
}

// nameRules returns the bounds of a name's length in characters, 0 for none, and whether names must be unique.
func nameRules(caps capability.Set) (shortest, longest int, unique bool) {
	for _, c := range caps.Constraints {
		switch c.Type {
		case "name_length":
			shortest, longest = c.MinLength, c.MaxLength
		case "name_must_be_unique":
			unique = true
		}
	}
	return shortest, longest, unique
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

// vendorName returns the name that the device gets for a code.
func (t *deviceTx) vendorName(c *dbsqlc.AccessCode) (string, error) {
	if _, _, unique := nameRules(t.caps); unique && t.named == nil {
		if err := t.listNames(); err != nil {
			return "", err
		}
	}
	name := vendorName(domain.Value(c.Name), t.caps, func(name string) bool {
		return slices.ContainsFunc(t.named[strings.ToLower(name)], func(other *dbsqlc.AccessCode) bool {
			return other != c
		})
	})
	t.addName(name, c)
	return name, nil
}

// listNames lists the codes on the device by their names, including those of pending changes.
func (t *deviceTx) listNames() error {
	t.named = map[string][]*dbsqlc.AccessCode{}
	for _, c := range t.codes {
		if offline(*c) {
			continue
		}
		name := c.VendorName
		if !c.IsManaged || name == nil && c.VendorRef != nil {
			name = c.Name
		}
		t.addName(domain.Value(name), c)
		if c.AppliedGen == 0 || c.AppliedGen >= c.DesiredGen {
			continue
		}
		has, err := t.s.appliedOf(*c)
		if err != nil {
			return err
		}
		if has != nil {
			t.addName(has.vendorName(), c)
		}
	}
	return nil
}

// addName adds a name to those of the device, if they are listed.
func (t *deviceTx) addName(name string, c *dbsqlc.AccessCode) {
	if t.named != nil && name != "" {
		t.named[strings.ToLower(name)] = append(t.named[strings.ToLower(name)], c)
	}
}
