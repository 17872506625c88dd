package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) accountRoutes() []route {
	return []route{
		page("/accounts", h.listAccounts),
		adminForm("/accounts/connect", h.showConnect),
		action(domain.RoleAdmin, "/accounts/connect", "accounts connect", h.connectAccount),
		page("/accounts/{account}", h.showAccount),
		action(domain.RoleAdmin, "/accounts/{account}/update", "/connected_accounts/update", h.updateAccount),
		adminForm("/accounts/{account}/credential", h.showCredential),
		action(domain.RoleAdmin, "/accounts/{account}/credential", "accounts update", h.updateCredential),
		action(domain.RoleOperator, "/accounts/{account}/sync", "/connected_accounts/sync", h.syncAccount),
		action(domain.RoleAdmin, "/accounts/{account}/disconnect", "/connected_accounts/delete", h.disconnectAccount),
		page("/accounts/links", h.listLinks),
		page("/accounts/links/{link}", h.showLink),
		adminForm("/accounts/links/new", h.showNewLink),
		action(domain.RoleAdmin, "/accounts/links", "/connect_webviews/create", h.createLink),
		action(domain.RoleAdmin, "/accounts/links/{link}/delete", "/connect_webviews/delete", h.deleteLink),
	}
}

// accountNotices are the notices of actions on accounts and connect links.
var accountNotices = map[string]string{
	"account-connected":    "Connected. The server now looks for its devices; they appear here within a minute.",
	"account-updated":      "Saved.",
	"credential-updated":   "The new credential works and is stored.",
	"account-syncing":      "The server reads the account and all its devices again.",
	"account-disconnected": "Disconnected. Codes that are on the locks still open them.",
	"link-deleted":         "The link no longer works. An account that was connected with it stays connected.",
}

// adminForm returns a route that shows a form for administrators.
func adminForm(pattern string, handle func(*request) error) route {
	r := page(pattern, handle)
	r.role = domain.RoleAdmin
	return r
}

// isServerAdmin reports whether the operator is an administrator of all workspaces. Only they let the server dial
// addresses, which can be in its own network.
func (rq *request) isServerAdmin() bool {
	return rq.h.Accounts != nil && rq.session.Operator.RoleIn(uuid.Nil).Includes(domain.RoleAdmin)
}

// needServerAdmin fails with Forbidden unless the operator is an administrator of all workspaces.
func (rq *request) needServerAdmin() error {
	if rq.isServerAdmin() {
		return nil
	}
	return &domain.Error{
		Kind: domain.Forbidden,
		Type: "forbidden",
		Message: "Only administrators of all workspaces enter addresses and credentials here. Send the owner of the " +
			"account a connect link.",
	}
}

// kinds returns the kinds of accounts by adapter.
func (h *handler) kinds() map[string]AccountKind {
	out := map[string]AccountKind{
		account.SandboxAdapter:       {DisplayName: "Simulated devices"},
		account.SandboxAccessAdapter: {DisplayName: "Simulated access systems"},
	}
	if h.Accounts != nil {
		for _, kind := range h.Accounts.Kinds() {
			out[kind.Adapter] = kind
		}
	}
	return out
}

// accountRow is an account in the list and on its page.
type accountRow struct {
	account.ConnectedAccount
	kind    AccountKind
	devices overview.AccountDevices
	// calls is nil without a limit of calls.
	calls *account.CallsLeft
}

// kindName is the name of the kind of account.
func (a accountRow) kindName() string { return cmp.Or(a.kind.DisplayName, a.Adapter) }

// user is the login name or the address.
func (a accountRow) user() string { return cmp.Or(a.User.APIURL, a.User.Email, a.User.Username) }

// accountStates are the options of the filter by state.
var accountStates = []option{{"", "All"}, {"failing", "Not working"}, {"working", "Working"}}

func (h *handler) listAccounts(rq *request) error {
	ctx := rq.r.Context()
	f := overview.AccountFilter{
		Adapter:     rq.query("kind"),
		CustomerKey: rq.query("customer"),
		Search:      rq.query("q"),
	}
	if state := rq.query("state"); state != "" {
		f.Failing = new(state == "failing")
	}
	list, err := h.Access.Overview.Accounts(
		ctx,
		rq.workspace.ID,
		f,
		overview.ParsePosition(rq.query(afterParam)),
		pageRows,
	)
	if err != nil {
		return err
	}
	rows, err := h.readAccounts(rq, list.IDs)
	if err != nil {
		return err
	}
	adapters, err := h.Access.Overview.Adapters(ctx, rq.workspace.ID)
	if err != nil {
		return err
	}
	options, kinds := []option{{"", "All"}}, h.kinds()
	for _, name := range adapters {
		options = append(options, option{name, cmp.Or(kinds[name].DisplayName, name)})
	}
	return rq.show(accountsPage(rq, rows, options, list.Next.String()))
}

// readAccounts reads accounts in the given order.
func (h *handler) readAccounts(rq *request, ids []uuid.UUID) ([]accountRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx := rq.r.Context()
	found, _, err := h.Access.Accounts.ListConnectedAccounts(
		ctx,
		rq.reader(),
		account.Filter{IDs: ids},
		domain.Page{Limit: len(ids)},
	)
	if err != nil {
		return nil, err
	}
	devices, err := h.Access.Overview.CountDevices(ctx, rq.workspace.ID, ids)
	if err != nil {
		return nil, err
	}
	kinds := h.kinds()
	rows := make([]accountRow, len(found))
	for i, a := range found {
		rows[i] = accountRow{ConnectedAccount: a, kind: kinds[a.Adapter], devices: devices[a.ID]}
	}
	slices.SortFunc(rows, func(a, b accountRow) int {
		return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID))
	})
	return rows, h.countCalls(rq, rows)
}

// countCalls sets the calls left of accounts with a budget, with one query for each kind of account.
func (h *handler) countCalls(rq *request, rows []accountRow) error {
	of := map[account.Bucket][]uuid.UUID{}
	for _, a := range rows {
		if a.kind.Budget.Burst > 0 {
			of[a.kind.Budget] = append(of[a.kind.Budget], a.ID)
		}
	}
	for bucket, ids := range of {
		left, err := h.Access.Overview.CallsLeft(rq.r.Context(), ids, bucket)
		if err != nil {
			return err
		}
		for i, a := range rows {
			if a.kind.Budget != bucket {
				continue
			}
			calls, known := left[a.ID]
			if !known {
				calls.Calls = bucket.Burst
			}
			rows[i].calls = &calls
		}
	}
	return nil
}

// callsText says how many calls the vendor's limit leaves.
func callsText(left account.CallsLeft) string {
	if left.Blocked > 0 {
		return "none for " + duration(left.Blocked)
	}
	return fmt.Sprintf("%d calls", max(0, int(left.Calls)))
}

// countedText is a number of things that are counted up to overview.MaxCount.
func countedText(n int) string {
	if n > overview.MaxCount {
		return fmt.Sprintf("over %d", overview.MaxCount)
	}
	return fmt.Sprint(n)
}

// accountView is what the page of an account shows.
type accountView struct {
	accountRow
	list     []device.Device
	more     bool // whether the account has more devices
	webviews []overview.Webview
}

// accountDevices is how many devices the page of an account shows.
const accountDevices = 20

func (h *handler) showAccount(rq *request) error {
	ctx := rq.r.Context()
	a, err := h.Access.Accounts.GetConnectedAccount(ctx, rq.reader(), rq.param("account"), "")
	if err != nil {
		return err
	}
	rows, err := h.readAccounts(rq, []uuid.UUID{a.ID})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return domain.AccountNotFound("connected_account_id", a.ID.String())
	}
	v := accountView{accountRow: rows[0]}
	list, err := h.Access.Overview.Devices(
		ctx,
		rq.workspace.ID,
		overview.DeviceFilter{Account: a.ID},
		overview.Position{},
		accountDevices,
	)
	if err != nil {
		return err
	}
	if len(list.IDs) > 0 {
		v.list, _, err = h.Access.Devices.ListDevices(
			ctx,
			rq.reader(),
			device.Filter{IDs: new(texts(list.IDs))},
			domain.Page{Limit: accountDevices},
		)
		if err != nil {
			return err
		}
	}
	v.more = list.Next != overview.Position{}
	v.webviews, _, err = h.Access.Overview.Webviews(
		ctx,
		rq.workspace.ID,
		overview.WebviewFilter{Account: a.ID},
		overview.Position{},
		accountDevices,
	)
	if err != nil {
		return err
	}
	return rq.show(accountPage(rq, v))
}

// pathOfDevice is the path of the page of a device.
func pathOfDevice(d device.Device) string {
	switch d.Capabilities.Kind() {
	case "thermostat":
		return "/thermostats/" + d.ID.String()
	case "noise_detection":
		return "/noise-sensors/" + d.ID.String()
	}
	return "/locks/" + d.ID.String()
}

// accountAdvice says what to do about an error of an account.
func accountAdvice(code string) string {
	if code == account.AccountDisconnected {
		return "Update the credential, or send the owner a new connect link."
	}
	return "Check that it runs, that its address is right, and that this server can reach it. The server keeps trying."
}

// webviewState is the state of a connect link in words.
func webviewState(now time.Time, w overview.Webview) (tone, string) {
	switch {
	case w.Status == account.WebviewAuthorized:
		return good, "Used"
	case !w.ExpiresAt.After(now):
		return idle, "Expired"
	case w.AccountID != nil:
		return news, "Reading devices"
	case w.Status == account.WebviewFailed:
		return warning, "Last login failed"
	}
	return news, "Open"
}

func (h *handler) updateAccount(rq *request) error {
	id := rq.param("account")
	_, err := h.Access.Accounts.UpdateConnectedAccount(rq.r.Context(), rq.principal, id, account.Update{
		DisplayName:      rq.form("name"),
		CustomerKey:      rq.form("customer_key"),
		ManageNewDevices: new(rq.form("manage") != ""),
	})
	if err != nil {
		return err
	}
	return rq.done(rq.url("/accounts/"+id), "account-updated")
}

func (h *handler) syncAccount(rq *request) error {
	id := rq.param("account")
	if err := h.Access.Accounts.SyncConnectedAccount(rq.r.Context(), rq.principal, id); err != nil {
		return err
	}
	return rq.done(rq.url("/accounts/"+id), "account-syncing")
}

func (h *handler) disconnectAccount(rq *request) error {
	if err := h.Access.Accounts.DeleteConnectedAccount(rq.r.Context(), rq.principal, rq.param("account")); err != nil {
		return err
	}
	return rq.done(rq.url("/accounts"), "account-disconnected")
}

// connectForm is the form that connects an account or changes its credential.
type connectForm struct {
	kind AccountKind
	// account is zero for a new account.
	account account.ConnectedAccount
	// values are the entered values that are no secrets, by name.
	values map[string]string
	// failure is why the connection was not stored; nil: it was not tried yet.
	failure *domain.Error
}

// connectable returns the kinds that the form connects.
func (h *handler) connectable() (out []AccountKind) {
	if h.Accounts == nil {
		return nil
	}
	return slices.DeleteFunc(h.Accounts.Kinds(), func(k AccountKind) bool { return k.Usage == "" })
}

// connectableKind returns the kind that the form connects, or false if there is none.
func (h *handler) connectableKind(name string) (AccountKind, bool) {
	all := h.connectable()
	i := slices.IndexFunc(all, func(k AccountKind) bool { return k.Adapter == name })
	if i < 0 {
		return AccountKind{}, false
	}
	return all[i], true
}

func (h *handler) showConnect(rq *request) error {
	if err := rq.needServerAdmin(); err != nil {
		return err
	}
	if rq.workspace.IsSandbox {
		return errSandboxAccounts
	}
	kind, ok := h.connectableKind(rq.query("kind"))
	if !ok {
		return rq.show(connectKindsPage(rq, h.connectable()))
	}
	return rq.show(connectPage(rq, connectForm{kind: kind}))
}

// errSandboxAccounts is the error for connecting real devices to a sandbox.
var errSandboxAccounts = &domain.Error{
	Kind:    domain.Conflict,
	Type:    "sandbox_workspace",
	Message: "This workspace is a sandbox for simulated devices. Open a workspace for real devices, and connect there.",
}

// enteredSettings returns the values of the form of a kind. kept are those that may be shown again.
func (rq *request) enteredSettings(kind AccountKind) (all, kept map[string]string) {
	all, kept = map[string]string{}, map[string]string{"name": rq.form("name"), "writes": rq.form("writes")}
	for _, s := range kind.Settings {
		value := rq.r.PostFormValue("setting-" + s.Name)
		if !s.Secret {
			value = strings.TrimSpace(value)
			kept[s.Name] = value
		}
		if value != "" {
			all[s.Name] = value
		}
	}
	return all, kept
}

func (h *handler) connectAccount(rq *request) error {
	if err := rq.needServerAdmin(); err != nil {
		return err
	}
	if rq.workspace.IsSandbox {
		return errSandboxAccounts
	}
	kind, ok := h.connectableKind(rq.form("kind"))
	if !ok {
		return domain.Invalidf("kind", "Choose what to connect.")
	}
	all, kept := rq.enteredSettings(kind)
	admission.Release(rq.r.Context()) // it waits for the vendor
	id, err := h.Accounts.Connect(rq.r.Context(), NewAccount{
		Workspace:   rq.workspace.ID,
		Adapter:     kind.Adapter,
		Name:        rq.form("name"),
		Settings:    all,
		AllowWrites: rq.form("writes") != "",
	})
	if failure, ok := domain.AsError(err); ok {
		return rq.render(statusOf(failure.Kind), connectPage(rq, connectForm{
			kind: kind, values: kept, failure: failure,
		}))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.url("/accounts/"+id.String()), "account-connected")
}

// credentialForm returns the form that changes the credential of the account in the path.
func (h *handler) credentialForm(rq *request) (form connectForm, err error) {
	if err := rq.needServerAdmin(); err != nil {
		return form, err
	}
	form.account, err = h.Access.Accounts.GetConnectedAccount(rq.r.Context(), rq.reader(), rq.param("account"), "")
	if err != nil {
		return form, err
	}
	kind, ok := h.connectableKind(form.account.Adapter)
	if !ok {
		return form, &domain.Error{
			Kind:    domain.Conflict,
			Type:    "no_credential",
			Message: "This account has no credential that can be changed with a form. Send its owner a connect link.",
		}
	}
	form.kind = kind
	return form, nil
}

func (h *handler) showCredential(rq *request) error {
	form, err := h.credentialForm(rq)
	if err != nil {
		return err
	}
	return rq.show(connectPage(rq, form))
}

func (h *handler) updateCredential(rq *request) error {
	form, err := h.credentialForm(rq)
	if err != nil {
		return err
	}
	all, kept := rq.enteredSettings(form.kind)
	admission.Release(rq.r.Context()) // it waits for the vendor
	err = h.Accounts.Update(rq.r.Context(), form.account.ID, all)
	if failure, ok := domain.AsError(err); ok && failure.Kind != domain.NotFound {
		form.values, form.failure = kept, failure
		return rq.render(statusOf(failure.Kind), connectPage(rq, form))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.url("/accounts/"+form.account.ID.String()), "credential-updated")
}

// linkStates are the options of the filter of connect links.
var linkStates = []option{{"", "All"}, {"open", "Open"}, {"used", "Used"}, {"expired", "Expired"}}

func (h *handler) listLinks(rq *request) error {
	list, next, err := h.Access.Overview.Webviews(
		rq.r.Context(),
		rq.workspace.ID,
		overview.WebviewFilter{State: rq.query("state")},
		overview.ParsePosition(rq.query(afterParam)),
		pageRows,
	)
	if err != nil {
		return err
	}
	return rq.show(linksPage(rq, list, next.String()))
}

// brands returns the vendors on connect pages of the workspace, and their names for people.
func (h *handler) brands(rq *request) ([]Brand, map[string]string) {
	if h.Accounts == nil {
		return nil, nil
	}
	list, names := h.Accounts.Brands(rq.workspace), map[string]string{}
	for _, b := range list {
		names[b.Name] = b.DisplayName
	}
	return list, names
}

// brandNames returns the vendors of a connect link in words.
func (h *handler) brandNames(rq *request, providers []string) string {
	if len(providers) == 0 {
		return "any"
	}
	_, names := h.brands(rq)
	out := make([]string, len(providers))
	for i, name := range providers {
		out[i] = cmp.Or(names[name], name)
	}
	return strings.Join(out, ", ")
}

// linkForm is the form of a new connect link.
type linkForm struct {
	brands   []Brand
	chosen   []string
	redirect string
	customer string
	failure  *domain.Error
}

func (h *handler) showNewLink(rq *request) error {
	brands, _ := h.brands(rq)
	return rq.show(newLinkPage(rq, linkForm{brands: brands, customer: rq.query("customer")}))
}

func (h *handler) createLink(rq *request) error {
	form := linkForm{redirect: rq.form("redirect"), customer: rq.form("customer_key")}
	form.brands, _ = h.brands(rq)
	if err := rq.r.ParseForm(); err == nil {
		form.chosen = rq.r.PostForm["brand"]
	}
	n := account.NewWebview{
		ManageNewDevices: rq.form("manage") != "",
		RedirectURL:      form.redirect,
		CustomerKey:      form.customer,
	}
	if len(form.chosen) > 0 {
		n.Providers = &form.chosen
	}
	w, err := h.Access.Accounts.CreateWebview(rq.r.Context(), rq.principal, n)
	if failure, ok := domain.AsError(err); ok && failure.Kind == domain.Invalid {
		form.failure = failure
		return rq.render(http.StatusUnprocessableEntity, newLinkPage(rq, form))
	}
	if err != nil {
		return err
	}
	return rq.show(linkPage(rq, w, rq.publicURL("/connect/"+w.Token)))
}

// showLink shows a connect link without its URL.
func (h *handler) showLink(rq *request) error {
	w, err := h.Access.Accounts.GetWebview(rq.r.Context(), rq.reader(), rq.param("link"))
	if err != nil {
		return err
	}
	row := overview.Webview{
		ID:               w.ID,
		CustomerKey:      w.CustomerKey,
		Status:           w.Status,
		SelectedProvider: domain.Value(w.SelectedProvider),
		AccountID:        w.AccountID,
		CreatedAt:        w.CreatedAt,
		ExpiresAt:        w.ExpiresAt,
		AuthorizedAt:     domain.Value(w.AuthorizedAt),
	}
	if w.Providers != nil {
		row.Providers = *w.Providers
	}
	return rq.show(linkStatePage(rq, row, w.Exhausted))
}

func (h *handler) deleteLink(rq *request) error {
	if err := h.Access.Accounts.DeleteWebview(rq.r.Context(), rq.principal, rq.param("link")); err != nil {
		return err
	}
	return rq.done(rq.url("/accounts/links"), "link-deleted")
}

// publicURL returns the URL of a path of this server for people.
func (rq *request) publicURL(path string) string {
	if base := strings.TrimSuffix(rq.h.LinkURL, "/"); base != "" {
		return base + path
	}
	scheme := "http"
	if rq.h.Address.IsSecure(rq.r) {
		scheme = "https"
	}
	return scheme + "://" + rq.h.Address.Host(rq.r) + path
}

// disconnectQuestion says what disconnecting an account does.
func disconnectQuestion(a accountRow) string {
	return fmt.Sprintf(
		"This deletes the credential, and the server stops managing %s devices and their codes. The codes stay "+
			"on the locks and still open the doors: delete the codes first if they must not. If you connect the account again, "+
			"its devices get new ids.",
		countedText(a.devices.Count),
	)
}

// connectTitle returns the title of the form and what it does.
func connectTitle(f connectForm) (title, lead string) {
	if f.account.Adapter == "" {
		return "Connect " + f.kind.DisplayName, "The server tests the connection before it stores it."
	}
	return "Update " + f.account.DisplayName,
		"Empty fields stay unchanged. The server tests the connection before it stores it. Devices keep their ids and codes."
}

// connectTarget is where the form is sent.
func connectTarget(rq *request, f connectForm) string {
	if f.account.Adapter == "" {
		return rq.url("/accounts/connect")
	}
	return rq.url("/accounts/" + f.account.ID.String() + "/credential")
}

// connectCancel is where the form leads without being sent.
func connectCancel(rq *request, f connectForm) string {
	if f.account.Adapter == "" {
		return rq.url("/accounts/connect")
	}
	return rq.url("/accounts/" + f.account.ID.String())
}

// settingInput returns the input of a setting. Changed accounts need no value.
func settingInput(f connectForm, s AccountSetting, fresh bool) input {
	in := input{name: "setting-" + s.Name, label: s.Label, value: f.values[s.Name], help: s.Help}
	if s.Secret {
		in.kind, in.autocomplete = "password", "new-password"
	}
	if !fresh {
		return in
	}
	if in.required = s.Required; !s.Required && !s.Secret && s.Default == "" {
		in.label += " (optional)"
	}
	if f.values == nil {
		in.value = s.Default
	}
	return in
}
