package console

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

const (
	// revealOperation names a reveal in the audit log. The API has no such operation.
	revealOperation = "pin.revealed"
	// revealSeconds is how long a page shows a PIN.
	revealSeconds = 15
	// revealSignInAge is how old a sign-in may be. An unattended browser shows no PINs.
	revealSignInAge = 10 * time.Minute
)

// reveal shows the PIN of one code. The audit log has the entry before the response begins.
func (h *handler) reveal(rq *request) error {
	rq.w.Header().Set("Cache-Control", "no-store")
	if rq.session.SignedInAt.IsZero() || rq.now.Sub(rq.session.SignedInAt) > revealSignInAge {
		return rq.render(http.StatusForbidden, signInAgainPage(rq))
	}
	c, err := h.Access.Devices.GetCode(rq.r.Context(), rq.reader(), true, rq.param("code"), "", "")
	if err != nil {
		return err
	}
	pin, err := h.Access.Devices.RevealPIN(rq.r.Context(), rq.principal, rq.param("code"))
	if errors.Is(err, device.ErrPINUnreadable) {
		return rq.render(http.StatusConflict, unreadablePage(rq, viewOf(c)))
	}
	if err != nil {
		return err
	}
	// The page leads back, with and without JavaScript.
	rq.w.Header().Set("Refresh", strconv.Itoa(revealSeconds)+"; url="+rq.codeURL())
	return rq.show(revealedPage(rq, viewOf(c), pin))
}
