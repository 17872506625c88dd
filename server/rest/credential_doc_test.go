package rest

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of the design note must match the contract.
func TestCredentialTableMatchesContract(t *testing.T) {
	t.Parallel()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	operations, err := compileOperations(doc)
	if err != nil {
		t.Fatal(err)
	}
	columns := [][]string{
		{schemeAPIKey},
		{schemePAT + withWorkspace},
		{schemeConsole + withWorkspace},
		{schemeSession},
		{schemeSession, schemeCustomerSession},
		{schemePublishable},
		{schemePAT + withoutWorkspace},
		{schemeConsole + withoutWorkspace},
	}
	groups := map[string][]*operation{}
	for _, path := range slices.Sorted(maps.Keys(operations)) {
		group, _, _ := strings.Cut(path[1:], "/")
		groups[group] = append(groups[group], operations[path])
	}
	var table strings.Builder
	table.WriteString(
		"| operations | API key | PAT | console session | client session | of a customer | publishable key | PAT, no workspace | console session, no workspace |\n",
	)
	table.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		table.WriteString("| `" + group + "`")
		for _, kinds := range columns {
			table.WriteString(" | " + taken(groups[group], group, kinds))
		}
		table.WriteString(" |\n")
	}
	note, err := os.ReadFile("../../server/docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(note), "<!-- kinds -->\n")
	has, _, _ := strings.Cut(after, "<!-- /kinds -->")
	if strings.TrimSpace(has) != strings.TrimSpace(table.String()) {
		t.Errorf(
			"server/docs/credentials.md has another table than the contract; put this between its marks:\n%s",
			&table,
		)
	}
}

// taken are the operations of a group that take a kind of credential: in words, or those that do or, if they are fewer,
// those that do not.
func taken(group []*operation, name string, kinds []string) string {
	var do, not []string
	for _, o := range group {
		short := "`" + strings.Trim(strings.TrimPrefix(o.path[1:], name), "/") + "`"
		if o.public || slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(o.accepts, kind) }) {
			do = append(do, short)
		} else {
			not = append(not, short)
		}
	}
	switch {
	case len(not) == 0:
		return "all"
	case len(do) == 0:
		return "–"
	case len(not) < len(do):
		return "all but " + strings.Join(not, ", ")
	}
	return strings.Join(do, ", ")
}
