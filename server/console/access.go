package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

const accessPath = Path + "/access"

func (h *handler) accessRoutes() []route {
	show := func(pattern string, handle func(*request) error) route {
		return route{method: http.MethodGet, pattern: "/access" + pattern, role: domain.RoleAdmin, handle: handle}
	}
	change := func(pattern, operation string, handle func(*request) error) route {
		return route{
			method:    http.MethodPost,
			pattern:   "/access" + pattern,
			role:      domain.RoleAdmin,
			operation: "/console/access/" + operation,
			handle:    handle,
		}
	}
	return append([]route{
		show("", showAccess),
		show("/operators/{id}", showOperator),
		change("/operators", "invite", recently(accessPath, invite)),
		change("/operators/{id}/roles", "roles", recently(accessPath, setRoles)),
		change("/operators/{id}/reset", "reset", recently(accessPath, resetOperator)),
		change("/operators/{id}/disable", "disable", disableOperator),
		change("/operators/{id}/enable", "enable", recently(accessPath, enableOperator)),
		change("/operators/{id}/end-sessions", "end_sessions", endSessions),
		change("/operators/{id}/delete", "delete", deleteOperator),
		change("/keys", "create_key", recently(accessPath, createKey)),
		change("/keys/{id}/revoke", "revoke_key", revokeKey),
	}, h.profileRoutes()...)
}

var accessNotices = func() map[string]string {
	all := map[string]string{
		"roles-set":         "The roles are changed.",
		"operator-disabled": "The operator is disabled, and its sessions have ended.",
		"operator-enabled":  "The operator is enabled.",
		"sessions-over":     "The operator's sessions have ended.",
		"operator-deleted":  "The operator is deleted.",
		"key-revoked":       "The key is revoked.",
	}
	maps.Copy(all, profileNotices)
	return all
}()

// accessList is what the page of operators and keys shows.
type accessList struct {
	operators     []operator.Operator
	nextOperators string
	keys          []auth.Credential
	nextKeys      string
	names         map[uuid.UUID]string // of the workspaces of both
}

// Parameters of the URL with the pages of operators and keys.
const (
	operatorsParam = "operators"
	keysParam      = "keys"
)

// keyStates are the options of the filter of keys.
var keyStates = []option{{"", "Active"}, {"1", "All"}}

func showAccess(rq *request) (err error) {
	var list accessList
	if err := list.readOperators(rq); err != nil {
		return err
	}
	if err := list.readKeys(rq); err != nil {
		return err
	}
	var of []uuid.UUID
	for _, o := range list.operators {
		of = slices.AppendSeq(of, maps.Keys(o.Roles))
	}
	for _, k := range list.keys {
		of = append(of, k.WorkspaceIDs...)
	}
	if list.names, err = rq.workspaceNames(of); err != nil {
		return err
	}
	if err := rq.searchWorkspaces(); err != nil {
		return err
	}
	return rq.show(accessPage(rq, list))
}

func (l *accessList) readOperators(rq *request) error {
	after := overview.ParsePosition(rq.query(operatorsParam))
	list, err := rq.h.Access.Operators.ListOperatorsPage(rq.r.Context(), operator.Page{
		Search:  rq.query("q"),
		AfterAt: after.At,
		AfterID: after.ID,
		Limit:   pageRows + 1,
	})
	if l.operators = list; len(list) > pageRows {
		l.operators = list[:pageRows]
		l.nextOperators = overview.Position{At: list[pageRows-1].CreatedAt, ID: list[pageRows-1].ID}.String()
	}
	return err
}

func (l *accessList) readKeys(rq *request) error {
	before := overview.ParsePosition(rq.query(keysParam))
	if before.ID == uuid.Nil {
		before = overview.Position{At: domain.Never, ID: uuid.Max}
	}
	list, err := rq.h.Access.Auth.ListCredentialsPage(rq.r.Context(), auth.CredentialPage{
		Search:   rq.query("q"),
		Ended:    rq.query("all") != "",
		Now:      rq.now,
		BeforeAt: before.At,
		BeforeID: before.ID,
		Limit:    pageRows + 1,
	})
	if l.keys = list; len(list) > pageRows {
		l.keys = list[:pageRows]
		l.nextKeys = overview.Position{At: list[pageRows-1].CreatedAt, ID: list[pageRows-1].ID}.String()
	}
	return err
}

// searchWorkspaces replaces the workspaces that forms offer by those of a search.
func (rq *request) searchWorkspaces() (err error) {
	if text := rq.query("workspace"); text != "" {
		rq.workspaces, _, err = rq.ownWorkspaces(text, overview.Position{})
	}
	return err
}

func isActive(k auth.Credential, now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(now))
}

// workspaceNames returns the names of workspaces. Deleted ones are absent.
func (rq *request) workspaceNames(of []uuid.UUID) (map[uuid.UUID]string, error) {
	list, err := rq.h.Access.Accounts.ListWorkspacesPage(
		rq.r.Context(),
		account.WorkspacePage{IDs: of, Limit: len(of)},
	)
	names := map[uuid.UUID]string{}
	for _, w := range list {
		names[w.ID] = w.Name
	}
	return names, err
}

// grantedRole is a role of an operator, for people.
type grantedRole struct {
	role      domain.Role
	workspace string // the name; empty: every workspace
}

// grantedRoles returns the roles of an operator, those for every workspace first.
func grantedRoles(o operator.Operator, names map[uuid.UUID]string) (out []grantedRole) {
	for id, role := range o.Roles {
		r := grantedRole{role: role}
		if id != uuid.Nil {
			r.workspace = cmp.Or(names[id], short(id.String()))
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b grantedRole) int { return strings.Compare(a.workspace, b.workspace) })
	return out
}

// operatorState returns the state of an operator in words.
func operatorState(o operator.Operator) (tone, string) {
	switch {
	case o.DisabledAt != nil:
		return idle, "disabled"
	case !o.CanSignIn():
		return warning, "invited"
	}
	return good, "active"
}

// methodText says how an operator has signed in.
func methodText(method string) string {
	switch method {
	case operator.ByOIDC:
		return "organization"
	case operator.ByLink:
		return "one-time link"
	}
	return method
}

// signInText says how an operator can sign in.
func signInText(o operator.Operator) string {
	var ways []string
	switch {
	case o.HasPassword && o.HasTOTP:
		ways = append(ways, "password and code")
	case o.HasPassword:
		ways = append(ways, "password")
	}
	if o.Passkeys > 0 {
		ways = append(ways, "passkey")
	}
	if o.Issuer != "" {
		ways = append(ways, "organization")
	}
	return strings.Join(ways, ", ")
}

func keyState(k auth.Credential, now time.Time) (tone, string) {
	switch {
	case k.RevokedAt != nil:
		return idle, "revoked"
	case !isActive(k, now):
		return idle, "expired"
	}
	return good, "active"
}

// workspaceOptions are the choices of a workspace.
func (rq *request) workspaceOptions(everywhere string) []option {
	var options []option
	if everywhere != "" {
		options = append(options, option{"", everywhere})
	}
	for _, w := range rq.workspaces {
		options = append(options, option{w.ID.String(), w.Name})
	}
	return options
}

var roleOptions = []option{
	{string(domain.RoleViewer), "viewer: reads"},
	{string(domain.RoleOperator), "operator: codes, doors, people"},
	{string(domain.RoleAdmin), "admin: everything"},
}

// chosenWorkspace returns the workspace of a form. For an empty field, its identifier is zero.
func (rq *request) chosenWorkspace() (w account.Workspace, err error) {
	text := rq.form("workspace")
	if text == "" {
		return w, nil
	}
	if id, err := uuid.Parse(text); err == nil {
		w, err = rq.h.Access.Accounts.GetWorkspace(rq.r.Context(), id)
		if e, known := domain.AsError(err); !known || e.Kind != domain.NotFound {
			return w, err
		}
	}
	return w, domain.Invalidf("workspace", "There is no such workspace. Choose another one.")
}

func invite(rq *request) error {
	workspace, err := rq.chosenWorkspace()
	if err != nil {
		return err
	}
	o, link, err := rq.h.Access.Operators.CreateOperator(rq.r.Context(), operator.NewOperator{
		Email: rq.form("email"),
		Name:  rq.form("name"),
		Roles: map[uuid.UUID]domain.Role{workspace.ID: domain.Role(rq.form("role"))},
	})
	if err != nil {
		return err
	}
	return rq.showInvitation(o, link)
}

func (rq *request) showInvitation(o operator.Operator, link string) error {
	return rq.show(secretPage(rq, secret{
		title: "Link for " + o.Email,
		lead: "Send this link to the person. It works once, within 72 hours, and lets the person set a password. " +
			"It is shown only now.",
		label: "Link",
		text:  rq.origin() + Path + "/invite/" + link,
	}))
}

// secret is a text that a page shows once.
type secret struct{ title, lead, label, text string }

// chosenOperator returns the operator in the path. It fails with NotFound.
func (rq *request) chosenOperator() (o operator.Operator, err error) {
	o, err = rq.h.Access.Operators.GetListedOperator(rq.r.Context(), rq.idParam())
	if e, known := domain.AsError(err); known && e.Kind == domain.NotFound {
		return o, errNoPage
	}
	return o, err
}

func showOperator(rq *request) error {
	o, err := rq.chosenOperator()
	if err != nil {
		return err
	}
	sessions, err := rq.h.Access.Operators.ListSessions(rq.r.Context(), o.ID)
	if err != nil {
		return err
	}
	if err := rq.searchWorkspaces(); err != nil {
		return err
	}
	names, err := rq.workspaceNames(slices.Collect(maps.Keys(o.Roles)))
	if err != nil {
		return err
	}
	return rq.show(operatorPage(rq, o, sessions, names))
}

// roleWorkspaces returns the workspaces whose roles the page of an operator offers: those with a role, and others.
func (rq *request) roleWorkspaces(names map[uuid.UUID]string) (out []option) {
	for _, id := range slices.SortedFunc(maps.Keys(names), func(a, b uuid.UUID) int {
		return cmp.Or(strings.Compare(names[a], names[b]), strings.Compare(a.String(), b.String()))
	}) {
		out = append(out, option{id.String(), names[id]})
	}
	for _, w := range rq.workspaces {
		if _, listed := names[w.ID]; !listed {
			out = append(out, option{w.ID.String(), w.Name})
		}
	}
	return out
}

func operatorURL(id uuid.UUID, action string) string {
	return accessPath + "/operators/" + id.String() + action
}

// rolePrefix is the start of the names of fields with roles.
const rolePrefix = "role-"

// roleField is the name of the field with the role in a workspace.
func roleField(workspace uuid.UUID) string { return rolePrefix + workspace.String() }

func setRoles(rq *request) error {
	o, err := rq.chosenOperator()
	if err != nil {
		return err
	}
	roles := maps.Clone(o.Roles) // those in workspaces that the form does not show stay
	var entered []uuid.UUID
	for name := range rq.r.PostForm {
		if workspace, err := uuid.Parse(
			strings.TrimPrefix(name, rolePrefix),
		); err == nil &&
			name == roleField(workspace) {
			entered = append(entered, workspace)
		}
	}
	names, err := rq.workspaceNames(entered)
	if err != nil {
		return err
	}
	for _, workspace := range entered {
		if _, known := names[workspace]; !known && workspace != uuid.Nil {
			continue
		}
		delete(roles, workspace)
		if role := rq.form(roleField(workspace)); role != "" {
			roles[workspace] = domain.Role(role)
		}
	}
	if _, err := rq.h.Access.Operators.SetRoles(rq.r.Context(), o.ID, roles); err != nil {
		return err
	}
	return rq.done(operatorURL(o.ID, ""), "roles-set")
}

func resetOperator(rq *request) error {
	o, err := rq.chosenOperator()
	if err != nil {
		return err
	}
	link, err := rq.h.Access.Operators.ResetUnlessLast(rq.r.Context(), o.ID)
	if err != nil {
		return err
	}
	return rq.showInvitation(o, link)
}

func disableOperator(rq *request) error {
	o, err := rq.h.Access.Operators.SetDisabled(rq.r.Context(), rq.idParam(), true)
	if err != nil {
		return err
	}
	return rq.done(operatorURL(o.ID, ""), "operator-disabled")
}

func enableOperator(rq *request) error {
	o, err := rq.h.Access.Operators.SetDisabled(rq.r.Context(), rq.idParam(), false)
	if err != nil {
		return err
	}
	return rq.done(operatorURL(o.ID, ""), "operator-enabled")
}

func endSessions(rq *request) error {
	o, err := rq.chosenOperator()
	if err != nil {
		return err
	}
	if err := rq.h.Access.Operators.EndSessionsOf(rq.r.Context(), o.ID); err != nil {
		return err
	}
	return rq.done(operatorURL(o.ID, ""), "sessions-over")
}

func deleteOperator(rq *request) error {
	if err := rq.h.Access.Operators.DeleteOperator(rq.r.Context(), rq.idParam()); err != nil {
		return err
	}
	return rq.done(accessPath, "operator-deleted")
}

// lifetimes are the choices of a new key.
var lifetimes = []option{
	{"720h", "30 days"},
	{"2160h", "90 days"},
	{"8760h", "1 year"},
	{"", "until it is revoked"},
}

func createKey(rq *request) error {
	workspace, err := rq.chosenWorkspace()
	if err != nil {
		return err
	}
	n := auth.NewCredential{
		Kind:         domain.APIKey,
		Role:         domain.Role(rq.form("role")),
		Name:         rq.form("name"),
		Owner:        rq.form("owner"),
		WorkspaceIDs: []uuid.UUID{workspace.ID},
		Sandbox:      workspace.IsSandbox,
	}
	if text := rq.form("lifetime"); text != "" {
		if n.Lifetime, err = time.ParseDuration(text); err != nil || n.Lifetime <= 0 {
			return domain.Invalidf("lifetime", "Choose how long the key is valid.")
		}
	}
	token, _, err := rq.h.Access.Auth.IssueCredential(rq.r.Context(), n)
	if err != nil {
		return err
	}
	return rq.show(secretPage(rq, secret{
		title: "New API key",
		lead:  "Copy the key to the program that uses it. It is shown only now.",
		label: "API key",
		text:  token,
	}))
}

func revokeKey(rq *request) error {
	if err := rq.h.Access.Auth.RevokeCredential(rq.r.Context(), rq.idParam()); err != nil {
		return err
	}
	return rq.done(accessPath, "key-revoked")
}

// withNone adds a choice of no role.
func withNone(options []option) []option { return append([]option{{"", "no role"}}, options...) }
