package lockstate

import (
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Names belong to people, and limits to vendors. The API keeps the name of a code in full (Name). The device gets a
// name that its vendor accepts (VendorName).

// vendorName returns the name that the device gets for a code.
func (l *Lock) vendorName(c *Code) string {
	if l.named == nil && l.caps().UniqueNames() {
		l.listNames()
	}
	name := l.caps().VendorName(domain.CleanName(domain.Value(c.Name)), func(name string) bool {
		return slices.ContainsFunc(l.named[strings.ToLower(name)], func(other *Code) bool { return other != c })
	})
	l.addName(name, c)
	return name
}

// listNames lists the codes on the device by their names, including those of pending changes.
func (l *Lock) listNames() {
	l.named = map[string][]*Code{}
	for _, c := range l.Codes {
		if c.Offline != "" {
			continue
		}
		name := c.VendorName
		if !c.Managed || name == nil && c.Ref != "" {
			name = c.Name
		}
		l.addName(domain.Value(name), c)
		if c.AppliedGen > 0 && c.AppliedGen < c.DesiredGen && c.Applied != nil {
			l.addName(c.Applied.vendorName(), c)
		}
	}
}

// addName adds a name to those of the device, if they are listed.
func (l *Lock) addName(name string, c *Code) {
	if l.named != nil && name != "" {
		l.named[strings.ToLower(name)] = append(l.named[strings.ToLower(name)], c)
	}
}
