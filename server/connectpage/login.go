package connectpage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
)

// loginTimeout bounds the time for a vendor to respond.
const loginTimeout = 30 * time.Second

// visit is a request for a page of a webview.
type visit struct {
	w         http.ResponseWriter
	r         *http.Request
	webview   account.Webview
	workspace account.Workspace
	vendors   []Vendor // the vendors to choose from
}

// inviter returns the name of the company that asks the person to log in.
func (v *visit) inviter() string {
	partner := ""
	if v.workspace.ConnectPartnerName != nil {
		partner = *v.workspace.ConnectPartnerName
	}
	return cmp.Or(partner, v.workspace.CompanyName, v.workspace.Name)
}

// path returns the relative path from the request's path to a page of the webview, with the language that the person
// has chosen.
func (v *visit) path(page string) string {
	return keepLanguage(v.r.Context(), v.pathWithoutQuery(page))
}

// pathWithoutQuery is path without the language.
func (v *visit) pathWithoutQuery(page string) string {
	to := pathToRoot(v.r) + v.webview.Token
	if page != "" {
		to += "/" + page
	}
	return to
}

// pathToRoot returns the relative path from a request's path to /connect/. All links are relative, because a proxy may
// add a path prefix.
func pathToRoot(r *http.Request) string {
	return strings.Repeat("../", max(0, strings.Count(r.URL.Path, "/")-2))
}

// onWebview looks up the webview of the URL.
func (h *handler) onWebview(show func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up := pathToRoot(r)
		webview, workspace, err := h.Access.Accounts.OpenWebview(r.Context(), r.PathValue("token"))
		if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.NotFound {
			h.render(w, r, http.StatusNotFound, gonePage(up))
			return
		}
		if err != nil {
			h.serverError(w, r, up, err)
			return
		}
		r = h.observeWebview(w, r, "/connect/{token}", webview, workspace)
		show(h.visit(w, r, webview, workspace))
	}
}

// visit returns the visit of a webview.
func (h *handler) visit(
	w http.ResponseWriter,
	r *http.Request,
	webview account.Webview,
	workspace account.Workspace,
) *visit {
	allowRedirects(w.Header(), webview)
	v := &visit{
		w:         w,
		r:         r,
		webview:   webview,
		workspace: workspace,
	}
	for _, name := range h.Access.Accounts.Offered(webview, workspace) {
		if vendor, known := h.Vendors.Vendor(workspace, name); known {
			if kinds := intersect(vendor.Kinds, webview.Capabilities); len(kinds) > 0 {
				vendor.Kinds = kinds
			}
			v.vendors = append(v.vendors, vendor)
		}
	}
	return v
}

// intersect returns the texts that are in both lists.
func intersect(a, b []string) (out []string) {
	for _, one := range a {
		if slices.Contains(b, one) {
			out = append(out, one)
		}
	}
	return out
}

// choice is what the first page shows.
type choice struct {
	// search is what the person searches for.
	search string
	// shown are the vendors that match the search.
	shown []Vendor
}

// showChoice shows the vendors, or the state of the login.
func (h *handler) showChoice(v *visit) {
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.showDone(v)
	case v.webview.Status == account.WebviewPending && v.webview.AccountID != nil:
		h.redirect(v, v.path("waiting"))
	case v.webview.Exhausted:
		h.render(v.w, v.r, http.StatusTooManyRequests, exhaustedPage(v))
	case len(v.vendors) == 1:
		h.redirect(v, v.path(v.vendors[0].Name))
	default:
		h.chooseVendor(v)
	}
}

// maxFoundNames is the maximum number of devices that the last page names.
const maxFoundNames = 10

// showDone shows what the server has found in the account.
func (h *handler) showDone(v *visit) {
	found, err := h.Access.Accounts.FoundOnWebview(v.r.Context(), v.webview, maxFoundNames)
	if err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	h.render(v.w, v.r, http.StatusOK, donePage(v, h.successURL(v.webview), found))
}

// chooseVendor shows the vendors that match the search.
func (h *handler) chooseVendor(v *visit) {
	inUse, err := h.Access.Accounts.KindsInUse(v.r.Context(), v.workspace.ID)
	if err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	sortVendors(v.vendors, inUse)
	c := choice{shown: v.vendors}
	if text := v.r.URL.Query().Get(searchParameter); len(text) <= maxSearchLength && utf8.ValidString(text) {
		c.search = strings.TrimSpace(text)
		c.shown = searchVendors(v.vendors, c.search)
	}
	h.render(v.w, v.r, http.StatusOK, choicePage(v, c))
}

// vendor returns the vendor that the path names.
func (v *visit) vendor() (Vendor, bool) { return v.vendorNamed(v.r.PathValue("vendor")) }

// vendorNamed returns a vendor that the webview offers.
func (v *visit) vendorNamed(name string) (Vendor, bool) {
	i := slices.IndexFunc(v.vendors, func(one Vendor) bool { return one.Name == name })
	if i < 0 {
		return Vendor{}, false
	}
	return v.vendors[i], true
}

// showLogin shows the login form.
func (h *handler) showLogin(v *visit) {
	vendor, known := v.vendor()
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.redirect(v, v.path(""))
	case !known:
		h.render(v.w, v.r, http.StatusNotFound, gonePage(pathToRoot(v.r)))
	case v.webview.Exhausted:
		h.tooManyAttempts(v)
	default:
		h.render(v.w, v.r, http.StatusOK, loginPage(v, vendor, nil, nil))
	}
}

// tooManyAttempts responds on a page with too many attempts. If the person has logged in, the page continues to wait
// for the devices.
func (h *handler) tooManyAttempts(v *visit) {
	waits, err := h.isWaiting(v)
	switch {
	case err != nil:
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
	case waits:
		h.redirect(v, v.path("waiting"))
	case v.r.Method == http.MethodPost && failureURL(v.webview) != "":
		h.redirect(v, failureURL(v.webview))
	default:
		h.render(v.w, v.r, http.StatusTooManyRequests, exhaustedPage(v))
	}
}

// isWaiting reports whether the person has logged in to a working account and the server is looking for its devices.
func (h *handler) isWaiting(v *visit) (bool, error) {
	if v.webview.Status != account.WebviewPending || v.webview.AccountID == nil {
		return false, nil
	}
	problem, err := h.Access.Accounts.AccountProblem(v.r.Context(), *v.webview.AccountID)
	return problem == "", err
}

// attempt is a login that a person continues.
type attempt struct {
	vendor Vendor
	// fields are the inputs of this step.
	fields []login.Field
	// before is the login with the earlier steps; its zero value means that this is the first one.
	before account.PendingLogin
	// entered holds the values of this step.
	entered map[string]string
}

// page returns the form of the attempt.
func (a attempt) page(v *visit, refused *login.Refusal) templ.Component {
	if a.before.Step != nil {
		return stepPage(v, a.vendor, a.before, a.entered, refused)
	}
	return loginPage(v, a.vendor, a.entered, refused)
}

// has reports whether the attempt asks for a field.
func (a attempt) has(field string) bool {
	return slices.ContainsFunc(a.fields, func(f login.Field) bool { return f.Name == field })
}

// logIn tries a login with the entered values.
func (h *handler) logIn(v *visit) {
	vendor, known := v.vendor()
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.redirect(v, v.path(""))
	case !known || len(vendor.Fields) == 0:
		h.render(v.w, v.r, http.StatusNotFound, gonePage(pathToRoot(v.r)))
	default:
		h.tryEntered(v, attempt{vendor: vendor, fields: vendor.Fields})
	}
}

// tryEntered reads the values of a step, and tries the login with the values of all steps.
func (h *handler) tryEntered(v *visit, a attempt) {
	var err error
	if a.entered, err = read(v.r, a.fields); err != nil {
		a.entered = nil
		refused := &login.Refusal{Message: "We could not read your entries. Please enter them again."}
		h.render(v.w, v.r, http.StatusBadRequest, a.page(v, refused))
		return
	}
	if refused := validate(a.fields, a.entered); refused != nil {
		h.render(v.w, v.r, http.StatusUnprocessableEntity, a.page(v, refused))
		return
	}
	after, told := h.guess(v.r)
	if after > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds(after)))
		h.render(v.w, v.r, http.StatusTooManyRequests, a.page(v, mustWait(after)))
		return
	}
	guessed := false
	defer func() { told(guessed) }()
	all := maps.Clone(a.entered)
	maps.Copy(all, a.before.Entered)
	webview, err := h.try(v.r.Context(), v, a.vendor, func(ctx context.Context) (account.NewAccount, error) {
		return h.Vendors.LogIn(ctx, v.workspace, a.vendor.Name, all)
	})
	guessed = isGuess(err)
	if step, ok := errors.AsType[*login.Step](err); ok {
		h.askStep(v, a, all, step)
		return
	}
	h.answer(v, a, webview, err)
}

// answer responds to the result of a login.
func (h *handler) answer(v *visit, a attempt, webview account.Webview, err error) {
	refused, _ := errors.AsType[*login.Refusal](err)
	e, _ := errors.AsType[*domain.Error](err)
	status := http.StatusUnprocessableEntity
	switch {
	case err == nil && webview.Status == account.WebviewAuthorized:
		h.redirect(v, cmp.Or(h.successURL(webview), v.path("")))
		return
	case err == nil:
		h.redirect(v, v.path("waiting"))
		return
	case account.IsTooManyLogins(err):
		h.tooManyAttempts(v)
		return
	case refused != nil:
	case e != nil && e.Kind == domain.Conflict:
		status, refused = http.StatusConflict, &login.Refusal{Message: e.Message}
	case e != nil && e.Kind == domain.NotFound: // the webview has expired in the meantime
		h.redirect(v, v.path(""))
		return
	default:
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	if a.before.Step != nil && (e != nil || refused.Field != "" && !a.has(refused.Field)) {
		// This step cannot correct it.
		if err := h.Access.Accounts.DropPendingLogin(v.r.Context(), v.webview.ID, a.before.ID); err != nil {
			h.serverError(v.w, v.r, pathToRoot(v.r), err)
			return
		}
		a = attempt{vendor: a.vendor, fields: a.vendor.Fields}
	}
	h.render(v.w, v.r, status, a.page(v, refused))
}

// try logs in. It counts each attempt, and records each refusal.
func (h *handler) try(
	ctx context.Context,
	v *visit,
	vendor Vendor,
	logIn func(context.Context) (account.NewAccount, error),
) (account.Webview, error) {
	if err := h.Access.Accounts.BeginLogin(ctx, v.webview.ID); err != nil {
		return v.webview, err
	}
	return h.tryCounted(ctx, v, vendor, logIn)
}

// tryCounted is try for an attempt that was counted.
func (h *handler) tryCounted(
	ctx context.Context,
	v *visit,
	vendor Vendor,
	logIn func(context.Context) (account.NewAccount, error),
) (account.Webview, error) {
	admission.Release(ctx) // release the slot while the vendor responds
	limited, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	acct, err := logIn(limited)
	var webview account.Webview
	if err == nil {
		var request uuid.UUID
		if seen, ok := v.w.(*recordedResponse); ok {
			request = seen.request
		}
		webview, err = h.Access.Accounts.LogIn(
			audit.ActingOnPage(ctx, v.webview.WorkspaceID, v.webview.ID, request, "/connect"),
			v.webview.ID,
			vendor.Name,
			acct,
		)
	}
	if err == nil {
		return webview, nil
	}
	_, needsStep := errors.AsType[*login.Step](err)
	e, _ := errors.AsType[*domain.Error](err)
	left := ctx.Err() != nil // closing the page is not a refusal
	if !left && !needsStep && (e == nil || e.Kind != domain.NotFound) {
		err = errors.Join(err, h.Access.Accounts.FailLogin(context.WithoutCancel(ctx), v.webview.ID, vendor.Name))
	}
	return v.webview, err
}

// showWaiting shows the progress page until the devices are available.
func (h *handler) showWaiting(v *visit) {
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.redirect(v, cmp.Or(h.successURL(v.webview), v.path("")))
		return
	case v.webview.AccountID == nil || v.webview.Status == account.WebviewFailed:
		h.redirect(v, v.path(""))
		return
	}
	problem, err := h.Access.Accounts.AccountProblem(v.r.Context(), *v.webview.AccountID)
	if err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	h.render(v.w, v.r, http.StatusOK, waitingPage(v, v.selected(), problem))
}

// giveUp sends back a person who does not log in. If the person has logged in, perhaps on another copy of the page,
// it continues normally.
func (h *handler) giveUp(v *visit) {
	if v.webview.Status == account.WebviewAuthorized {
		h.redirect(v, cmp.Or(h.successURL(v.webview), v.path("")))
		return
	}
	h.redirect(v, cmp.Or(giveUpURL(v.webview), v.path("")))
}

// read returns the values of the fields. It ignores the query string, because query strings appear in logs.
func read(r *http.Request, fields []login.Field) (map[string]string, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	entered := map[string]string{}
	for _, f := range fields {
		entered[f.Name] = r.PostForm.Get(f.Name)
		if f.Kind != "password" {
			entered[f.Name] = strings.TrimSpace(entered[f.Name])
		}
	}
	return entered, nil
}

// maxFieldLength is the maximum length of a field in characters.
const maxFieldLength = 512

// validate validates the entered values without the vendor. Invalid values do not count as an attempt.
func validate(fields []login.Field, entered map[string]string) *login.Refusal {
	for _, f := range fields {
		text := entered[f.Name]
		switch {
		case text == "" && !f.Optional:
			return &login.Refusal{Field: f.Name, Message: cmp.Or(f.Prompt, "Fill in this field.")}
		case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
			return &login.Refusal{
				Field:   f.Name,
				Message: "This entry contains a character that is not allowed. Please enter it again.",
			}
		case utf8.RuneCountInString(text) > maxFieldLength:
			return &login.Refusal{Field: f.Name, Message: "This entry is too long. Please enter it again."}
		}
	}
	return nil
}

// successURL returns where the page sends the person after a login, or an empty string.
func (h *handler) successURL(w account.Webview) string {
	if w.RedirectURL == "" || w.AccountID == nil {
		return ""
	}
	return withQuery(w.RedirectURL, "connect_webview_id", w.ID.String(), "connected_account_id", w.AccountID.String())
}

// giveUpURL returns where the page sends a person who gives up, or an empty string.
func giveUpURL(w account.Webview) string {
	return redirectWithoutAccount(cmp.Or(w.FailureURL, w.RedirectURL), w)
}

// failureURL returns where the page sends a person whose logins have all failed, or an empty string. It is never the
// target of successful logins.
func failureURL(w account.Webview) string { return redirectWithoutAccount(w.FailureURL, w) }

// redirectWithoutAccount returns a redirect URL without an account.
func redirectWithoutAccount(to string, w account.Webview) string {
	if to == "" {
		return ""
	}
	return withQuery(to, "connect_webview_id", w.ID.String())
}

func withQuery(text string, pairs ...string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "" // cannot happen: the URL was checked when the webview was created
	}
	q := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// redirect redirects the browser.
func (h *handler) redirect(v *visit, to string) {
	if v.r.Header.Get("HX-Request") != "" {
		v.w.Header().Set("HX-Redirect", to)
		v.w.WriteHeader(http.StatusNoContent)
		return
	}
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", readerIn(r.Context()).code)
	w.Header().Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if err := page.Render(r.Context(), w); err != nil {
		h.Log.DebugContext(r.Context(), "cannot send the page", "error", err)
	}
}

// serverError responds to an internal error, or to one of the database that passes.
func (h *handler) serverError(w http.ResponseWriter, r *http.Request, up string, err error) {
	h.Log.ErrorContext(r.Context(), "a login page failed", "error", err)
	status := http.StatusInternalServerError
	if health.DatabaseUnavailable(err) {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	h.render(w, r, status, brokenPage(up))
}
