package rest

import (
	"fmt"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// authorizePIN returns an error if a request names a PIN, and the caller may not read PINs. The answer would confirm a
// guessed PIN.
func authorizePIN(p domain.Principal, pin string) error {
	if pin == "" || p.CanReadPINs() {
		return nil
	}
	return &failure{
		status: http.StatusForbidden,
		kind:   "forbidden",
		message: fmt.Sprintf("This key has the role %s, which reads no PINs, so it cannot find a code by its PIN. "+
			"Name the code with access_code_id, or use a key with the role %s", p.Role, domain.RoleOperator),
	}
}
