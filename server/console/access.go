package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
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
	operators  []operator.Operator
	keys       []auth.Credential
	hiddenKeys int // revoked or expired, or beyond maxKeys
	names      map[uuid.UUID]string
}

// maxKeys is the maximum number of keys on the page, newest first.
const maxKeys = 200

func showAccess(rq *request) (err error) {
	list := accessList{names: rq.workspaceNames()}
	if list.operators, err = rq.h.Access.Operators.ListOperators(rq.r.Context()); err != nil {
		return err
	}
	all, err := rq.h.Access.Auth.ListCredentials(rq.r.Context())
	if err != nil {
		return err
	}
	for _, k := range slices.Backward(all) {
		if (isActive(k, rq.now) || rq.query("all") != "") && len(list.keys) < maxKeys {
			list.keys = append(list.keys, k)
		} else {
			list.hiddenKeys++
		}
	}
	return rq.show(accessPage(rq, list))
}

func isActive(k auth.Credential, now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(now))
}

func (rq *request) workspaceNames() map[uuid.UUID]string {
	names := map[uuid.UUID]string{}
	for _, w := range rq.workspaces {
		names[w.ID] = w.Name
	}
	return names
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

// chosenWorkspace returns the workspace of a form, or uuid.Nil for an empty field.
func (rq *request) chosenWorkspace() (uuid.UUID, error) {
	text := rq.form("workspace")
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if _, known := rq.workspaceNames()[id]; err != nil || !known {
		return uuid.Nil, domain.Invalidf("workspace", "There is no such workspace. Choose another one.")
	}
	return id, nil
}

func invite(rq *request) error {
	workspace, err := rq.chosenWorkspace()
	if err != nil {
		return err
	}
	o, link, err := rq.h.Access.Operators.CreateOperator(rq.r.Context(), operator.NewOperator{
		Email: rq.form("email"),
		Name:  rq.form("name"),
		Roles: map[uuid.UUID]domain.Role{workspace: domain.Role(rq.form("role"))},
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
	all, err := rq.h.Access.Operators.ListOperators(rq.r.Context())
	if err != nil {
		return o, err
	}
	id := rq.idParam()
	at := slices.IndexFunc(all, func(o operator.Operator) bool { return o.ID == id })
	if at < 0 {
		return o, errNoPage
	}
	return all[at], nil
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
	return rq.show(operatorPage(rq, o, sessions))
}

func operatorURL(id uuid.UUID, action string) string {
	return accessPath + "/operators/" + id.String() + action
}

// roleField is the name of the field with the role in a workspace.
func roleField(workspace uuid.UUID) string { return "role-" + workspace.String() }

func setRoles(rq *request) error {
	o, err := rq.chosenOperator()
	if err != nil {
		return err
	}
	roles := maps.Clone(o.Roles) // those in workspaces that the form does not show stay
	for _, workspace := range append([]uuid.UUID{uuid.Nil}, slices.Collect(maps.Keys(rq.workspaceNames()))...) {
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
		WorkspaceIDs: []uuid.UUID{workspace},
	}
	if text := rq.form("lifetime"); text != "" {
		if n.Lifetime, err = time.ParseDuration(text); err != nil || n.Lifetime <= 0 {
			return domain.Invalidf("lifetime", "Choose how long the key is valid.")
		}
	}
	for _, w := range rq.workspaces {
		n.Sandbox = n.Sandbox || w.ID == workspace && w.IsSandbox
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
