package registry

import (
	"fmt"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Table returns the table of vendors in Markdown, for the documentation.
func Table() string {
	var b strings.Builder
	b.WriteString("| vendor | `accounts connect` | tested |\n|---|---|---|\n")
	for _, v := range All() {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", nameOf(v), v.Adapter, v.Verification)
	}
	return b.String()
}

func nameOf(v adapter.Vendor) string {
	if v.Protocol {
		return v.DisplayName + " (any vendor that implements the contract)"
	}
	return v.DisplayName
}
