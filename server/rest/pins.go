package rest

import (
	"fmt"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
)

// shownCode returns a code as the caller may see it.
func shownCode(p domain.Principal, c device.Code) device.Code {
	if p.CanReadPINs() {
		return c
	}
	return c.WithoutPINs()
}

// shownEvent returns an event as the caller may see it.
func shownEvent(p domain.Principal, e event.Event) event.Event {
	if p.CanReadPINs() {
		return e
	}
	return e.WithoutPINs()
}

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
