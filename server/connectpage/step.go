package connectpage

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// askStep stores the values of a login that needs another step, and leads the person to the step. The browser receives
// none of the values again.
func (h *handler) askStep(v *visit, a attempt, entered map[string]string, step *login.Step) {
	next := account.PendingLogin{Provider: a.vendor.Name, Entered: entered, Step: step}
	id, err := h.Access.Accounts.StartStep(v.r.Context(), v.webview.ID, a.before.ID, next)
	if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.NotFound {
		h.redirect(v, v.path(""))
		return
	}
	if err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	h.redirect(v, v.path(id.String()))
}

// pending returns the login that the path names. Without it, the person starts over, and pending has responded.
func (h *handler) pending(v *visit) (vendor Vendor, p account.PendingLogin, ok bool) {
	id, err := uuid.Parse(v.r.PathValue("login"))
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.redirect(v, v.path(""))
		return vendor, p, false
	case err != nil:
		h.render(v.w, v.r, http.StatusNotFound, gonePage(pathToRoot(v.r)))
		return vendor, p, false
	case v.webview.Exhausted:
		h.tooManyAttempts(v)
		return vendor, p, false
	}
	p, err = h.Access.Accounts.PendingLogin(v.r.Context(), v.webview.ID, id)
	if err == nil {
		vendor, ok = v.vendorNamed(p.Provider)
	}
	if e, isDomain := errors.AsType[*domain.Error](err); err == nil && !ok || isDomain && e.Kind == domain.NotFound {
		h.render(v.w, v.r, http.StatusNotFound, expiredPage(v))
		return vendor, p, false
	}
	if err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
	}
	return vendor, p, ok
}

// showStep shows the form of the next step, or why a login on the vendor's pages failed.
func (h *handler) showStep(v *visit) {
	vendor, p, ok := h.pending(v)
	switch {
	case !ok:
	case p.Step != nil:
		h.render(v.w, v.r, http.StatusOK, stepPage(v, vendor, p, nil, nil))
	default:
		refused := cmp.Or(p.Refusal, &login.Refusal{Message: "This login was not finished. Please log in again."})
		h.render(v.w, v.r, http.StatusOK, loginPage(v, vendor, nil, refused))
	}
}

// continueLogin tries a login with the values of the next step.
func (h *handler) continueLogin(v *visit) {
	vendor, p, ok := h.pending(v)
	switch {
	case !ok:
	case p.Step == nil:
		h.redirect(v, v.path(vendor.Name))
	default:
		h.tryEntered(v, attempt{vendor: vendor, fields: p.Step.Fields, before: p})
	}
}

// startOver forgets the values of the earlier steps.
func (h *handler) startOver(v *visit) {
	vendor, p, ok := h.pending(v)
	if !ok {
		return
	}
	if err := h.Access.Accounts.DropPendingLogin(v.r.Context(), v.webview.ID, p.ID); err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	h.redirect(v, v.path(vendor.Name))
}
