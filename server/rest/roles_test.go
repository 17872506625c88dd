package rest

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Each role is admitted to the operations that include it, by each method, and to no other. The operations that the
// contract offers by GET read, and all others need at least an operator. Reads of credentials need an administrator, and
// those that reveal PINs an operator.
func TestRoles_EveryRoleEveryOperation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	operations, err := compileOperations(doc)
	if err != nil {
		t.Fatal(err)
	}
	for path, o := range operations {
		reads := o.allowsMethod(http.MethodGet)
		if wants := domain.RoleViewer; reads != (o.role == wants) &&
			!slices.Contains(slices.Concat(adminReads, operatorReads), path) {
			t.Errorf("%s needs the role %s, and reads: %t", path, o.role, reads)
		}
	}
	for _, role := range append([]domain.Role{"", "owner"}, domain.Roles...) {
		t.Run("role "+string(role), func(t *testing.T) {
			t.Parallel()
			for path, item := range doc.Paths.Map() {
				if slices.Contains(refuseKeys, path) || operations[path].public {
					continue
				}
				for method := range item.Operations() {
					res := b.send(t, request{
						method: method,
						path:   path,
						header: map[string]string{"Authorization": "Bearer " + rolePrefix + string(role)},
					})
					admitted, want := res.status != http.StatusForbidden, role.Includes(operations[path].role)
					if admitted != want {
						t.Errorf("%s %s admits the role %q: %t: %d", method, path, role, admitted, res.status)
					}
					if reason, _ := res.body["error"].(map[string]any); !want && (reason["type"] != "forbidden" ||
						!strings.Contains(reason["message"].(string), "Use a key with the role "+string(operations[path].role))) {
						t.Errorf("%s %s does not say which role it needs: %s", method, path, res.raw)
					}
				}
			}
		})
	}
}

// What needs an administrator. A new operation that is missing here is for operators.
func TestRoles_AdminOperations(t *testing.T) {
	t.Parallel()
	c, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	var admin []string
	for path, o := range c.operations {
		if o.role == domain.RoleAdmin {
			admin = append(admin, path)
		}
	}
	slices.Sort(admin)
	want := []string{
		"/client_sessions/create",
		"/client_sessions/delete",
		"/client_sessions/get",
		"/client_sessions/get_or_create",
		"/client_sessions/grant_access",
		"/client_sessions/list",
		"/client_sessions/revoke",
		"/connect_webviews/create",
		"/connect_webviews/delete",
		"/connect_webviews/get",
		"/connect_webviews/list",
		"/connected_accounts/delete",
		"/connected_accounts/update",
		"/deviceaccess/webhooks/rotate_secret",
		"/devices/delete",
		"/webhooks/create",
		"/webhooks/delete",
		"/webhooks/update",
		"/workspaces/create",
		"/workspaces/reset_sandbox",
		"/workspaces/update",
	}
	if !slices.Equal(admin, want) {
		t.Errorf("administrators alone may call\n%v, want\n%v", admin, want)
	}
}

// The table of the documentation lists the weakest role of each operation.
func TestRoles_TableIsFresh(t *testing.T) {
	t.Parallel()
	c, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]*operation{}
	for _, path := range slices.Sorted(maps.Keys(c.operations)) {
		if o := c.operations[path]; !o.public {
			group, _, _ := strings.Cut(path[1:], "/")
			groups[group] = append(groups[group], o)
		}
	}
	var table strings.Builder
	table.WriteString("| operations | viewer | operator | admin |\n|---|---|---|---|\n")
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		table.WriteString("| `" + group + "`")
		for _, role := range []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleAdmin} {
			table.WriteString(" | " + ofRole(groups[group], group, role))
		}
		table.WriteString(" |\n")
	}
	page, err := os.ReadFile("../docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "<!-- roles -->\n")
	if has, _, _ := strings.Cut(after, "<!-- /roles -->"); has != table.String() {
		t.Errorf("server/docs/credentials.md has another table; put this between its marks:\n%s", &table)
	}
}

// ofRole lists the operations of a group with a role, in words or as those that have it or have it not.
func ofRole(group []*operation, name string, role domain.Role) string {
	var do, not []string
	for _, o := range group {
		short := "`" + strings.Trim(strings.TrimPrefix(o.path[1:], name), "/") + "`"
		if o.role == role {
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
