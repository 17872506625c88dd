package rest

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// adminOperations change the workspace, its accounts, and who can reach it. An entry that ends in a slash covers all
// operations below it except those that only read.
var adminOperations = []string{
	"/workspaces/",
	"/client_sessions/",
	"/webhooks/",
	"/deviceaccess/webhooks/rotate_secret",
	"/connect_webviews/",
	"/connected_accounts/update",
	"/connected_accounts/delete",
	"/devices/delete",
}

// adminReads are operations that read credentials of others: links for logging in, and the tokens of client sessions.
// With them, a caller could create sessions and connect accounts.
var adminReads = []string{
	"/connect_webviews/get", "/connect_webviews/list", "/client_sessions/get", "/client_sessions/list",
}

// operatorReads are operations that read what a viewer must not know. generate_code never returns a PIN that is in use on
// the device, so a caller that repeats it often enough learns these PINs.
var operatorReads = []string{"/access_codes/generate_code"}

// requiredRole returns the weakest role that may call an operation. An operation that is neither a read by its name nor
// for administrators is for operators.
func requiredRole(operation string) domain.Role {
	switch {
	case slices.Contains(adminReads, operation):
		return domain.RoleAdmin
	case slices.Contains(operatorReads, operation):
		return domain.RoleOperator
	case isRead(operation):
		return domain.RoleViewer
	}
	for _, admin := range adminOperations {
		if operation == admin || strings.HasSuffix(admin, "/") && strings.HasPrefix(operation, admin) {
			return domain.RoleAdmin
		}
	}
	return domain.RoleOperator
}

// isRead reports whether an operation only reads, by the naming scheme of the contract.
func isRead(operation string) bool {
	name := path.Base(operation)
	return name == "get" || name == "list" || name == "health" || name == "generate_code" ||
		strings.HasPrefix(name, "list_") || strings.HasPrefix(name, "get_") && !strings.HasPrefix(name, "get_or_")
}

// authorizeRole returns an error if the role of a key does not include the operation.
func (o *operation) authorizeRole(p domain.Principal) error {
	if p.Kind == domain.EndUser || p.Kind == domain.PublishableKey || p.Role.Includes(o.role) {
		return nil
	}
	may := "which only reads"
	if p.Role == domain.RoleOperator {
		may = "which does not manage workspaces, accounts, webhooks, and sessions"
	}
	return &failure{
		status: http.StatusForbidden,
		kind:   "forbidden",
		message: fmt.Sprintf("This key has the role %s, %s. Use a key with the role %s", p.Role, may,
			o.role),
	}
}
