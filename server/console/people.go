package console

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) peopleRoutes() []route {
	const user = "/people/users/{user}"
	return []route{
		page("/people", h.listIdentities),
		page("/people/users", h.listUsers),
		page("/people/groups", h.listGroups),
		page("/people/groups/{group}", h.showGroup),
		page("/people/{identity}", h.showIdentity),
		page(user, h.showUser),
		action(domain.RoleOperator, user+"/suspend", "/acs/users/suspend", h.suspendUser(true)),
		action(domain.RoleOperator, user+"/unsuspend", "/acs/users/unsuspend", h.suspendUser(false)),
		action(domain.RoleOperator, user+"/remove", "/acs/users/delete", h.removeUser),
		action(domain.RoleOperator, "/people/{identity}/remove", "/user_identities/delete", h.removeIdentity),
	}
}

var peopleNotices = map[string]string{
	"suspended":        "The user is suspended. The page shows when the access system has taken the change.",
	"unsuspended":      "The user is no longer suspended. The page shows when the access system has taken the change.",
	"user-removed":     "The user is being removed from the access system.",
	"identity-removed": "The person was removed. The users of the person are being removed from their access systems.",
}

// userStates are the options of the filter by state.
var userStates = []option{
	{"", "All"},
	{overview.StatePending, "Waiting for the system"},
	{overview.StateFailing, "Problem"},
	{overview.StateSuspended, "Suspended"},
	{overview.StateUnmanaged, "Created at the system"},
}

// systemOptions are the options of the filter by access system.
func systemOptions(systems []overview.System) []option {
	out := []option{{"", "All"}}
	for _, s := range systems {
		out = append(out, option{s.ID.String(), s.Name})
	}
	return out
}

// peopleList is what the lists of people share.
type peopleList struct {
	systems []overview.System
	next    string
}

func (l peopleList) systemName(id uuid.UUID) string {
	for _, s := range l.systems {
		if s.ID == id {
			return s.Name
		}
	}
	return short(id.String())
}

func (h *handler) listIdentities(rq *request) (err error) {
	ctx, l := rq.r.Context(), peopleList{}
	if l.systems, err = h.Access.Overview.Systems(ctx, rq.workspace.ID); err != nil {
		return err
	}
	f := overview.IdentityFilter{Search: rq.query("q")}
	f.System, _ = uuid.Parse(rq.query("system"))
	rows, next, err := h.Access.Overview.Identities(
		ctx, rq.workspace.ID, f, overview.ParsePosition(rq.query(afterParam)), pageRows,
	)
	if err != nil {
		return err
	}
	l.next = next.String()
	return rq.show(identitiesPage(rq, l, rows))
}

func (h *handler) listUsers(rq *request) (err error) {
	ctx, l := rq.r.Context(), peopleList{}
	if l.systems, err = h.Access.Overview.Systems(ctx, rq.workspace.ID); err != nil {
		return err
	}
	f := overview.UserFilter{Search: rq.query("q"), State: rq.query("state")}
	f.System, _ = uuid.Parse(rq.query("system"))
	users, next, err := h.Access.Overview.Users(
		ctx, rq.workspace.ID, f, overview.ParsePosition(rq.query(afterParam)), pageRows,
	)
	if err != nil {
		return err
	}
	l.next = next.String()
	return rq.show(usersPage(rq, l, users))
}

func (h *handler) listGroups(rq *request) (err error) {
	ctx, l := rq.r.Context(), peopleList{}
	if l.systems, err = h.Access.Overview.Systems(ctx, rq.workspace.ID); err != nil {
		return err
	}
	after := overview.ParsePosition(rq.query(afterParam))
	groups, err := h.ACS.ListGroups(
		ctx,
		rq.reader(),
		acs.GroupFilter{
			SystemID: rq.query("system"),
			Search:   rq.query("q"),
			AfterAt:  after.At,
			AfterID:  after.ID,
			Limit:    pageRows + 1,
		},
	)
	if err != nil {
		return err
	}
	if len(groups) > pageRows {
		groups = groups[:pageRows]
		last := groups[pageRows-1]
		l.next = overview.Position{At: last.CreatedAt, ID: last.ID}.String()
	}
	return rq.show(groupsPage(rq, l, groups))
}

// groupView is what the page of an access group shows.
type groupView struct {
	acs.Group
	system    acs.System
	entrances []acs.Entrance
	users     []acs.User
}

func (h *handler) showGroup(rq *request) (err error) {
	ctx, v, id := rq.r.Context(), groupView{}, rq.param("group")
	if v.Group, err = h.ACS.GetGroup(ctx, rq.reader(), id); err != nil {
		return err
	}
	if v.system, err = h.ACS.GetSystem(ctx, rq.reader(), v.SystemID.String()); err != nil {
		return err
	}
	if v.entrances, err = h.ACS.EntrancesOfGroup(ctx, rq.reader(), id); err != nil {
		return err
	}
	if v.users, err = h.ACS.UsersOfGroup(ctx, rq.reader(), id); err != nil {
		return err
	}
	return rq.show(groupPage(rq, v))
}

// identityView is what the page of a person shows.
type identityView struct {
	acs.Identity
	users     []acs.User
	systems   map[uuid.UUID]string
	entrances []acs.Entrance
	devices   []device.Device
}

func (h *handler) showIdentity(rq *request) (err error) {
	ctx, v, id := rq.r.Context(), identityView{systems: map[uuid.UUID]string{}}, rq.param("identity")
	if v.Identity, err = h.ACS.GetIdentity(ctx, rq.reader(), id, ""); err != nil {
		return err
	}
	if v.users, err = h.ACS.UsersOf(ctx, rq.reader(), id); err != nil {
		return err
	}
	systems, err := h.ACS.SystemsOf(ctx, rq.reader(), id)
	if err != nil {
		return err
	}
	for _, s := range systems {
		v.systems[s.ID] = s.Name
	}
	if v.entrances, err = h.ACS.EntrancesOf(ctx, rq.reader(), id); err != nil {
		return err
	}
	if v.devices, err = h.ACS.DevicesOf(ctx, rq.reader(), id); err != nil {
		return err
	}
	return rq.show(identityPage(rq, v))
}

// userView is what the page of a user of an access system shows.
type userView struct {
	acs.User
	system    acs.System
	groups    []acs.Group
	entrances []acs.Entrance
}

func (v userView) zone() string { return domain.Value(v.system.TimeZone) }

func (h *handler) showUser(rq *request) (err error) {
	ctx, v := rq.r.Context(), userView{}
	if v.User, err = h.findUser(rq); err != nil {
		return err
	}
	if v.system, err = h.ACS.GetSystem(ctx, rq.reader(), v.SystemID.String()); err != nil {
		return err
	}
	if v.Managed {
		name := acs.UserName{UserID: v.ID.String()}
		if v.groups, err = h.ACS.ListGroups(ctx, rq.reader(), acs.GroupFilter{UserID: name.UserID}); err != nil {
			return err
		}
		if v.entrances, err = h.ACS.EntrancesOfUser(ctx, rq.reader(), name); err != nil {
			return err
		}
	}
	return rq.show(userPage(rq, v))
}

// findUser returns the user in the path, whether managed or not.
func (h *handler) findUser(rq *request) (acs.User, error) {
	ctx, id := rq.r.Context(), rq.param("user")
	u, err := h.ACS.GetUser(ctx, rq.reader(), acs.UserName{UserID: id})
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		return h.ACS.GetUnmanagedUser(ctx, rq.reader(), id)
	}
	return u, err
}

// userState is the state of a user in words.
func userState(u acs.User) (tone, string) {
	switch {
	case len(u.Errors) > 0:
		return bad, "Problem"
	case len(u.Warnings) > 0:
		return news, "Being removed"
	case !u.Managed && u.Suspended:
		return idle, "Suspended at the system"
	case !u.Managed:
		return idle, "Created at the system"
	case len(u.Pending) > 0:
		return news, "Waiting for the system"
	case u.Suspended:
		return idle, "Suspended"
	}
	return good, "Active"
}

// listedUserState is userState for a row of the list.
func listedUserState(u overview.User) (tone, string) {
	switch {
	case u.Problem != "":
		return bad, "Problem"
	case u.Deleting:
		return news, "Being removed"
	case !u.Managed && u.Suspended:
		return idle, "Suspended at the system"
	case !u.Managed:
		return idle, "Created at the system"
	case u.Waiting:
		return news, "Waiting for the system"
	case u.Suspended:
		return idle, "Suspended"
	}
	return good, "Active"
}

// userURL is the URL of the page of a user.
func (rq *request) userURL(id uuid.UUID) string { return rq.url("/people/users/" + id.String()) }

func (h *handler) suspendUser(suspended bool) func(*request) error {
	return func(rq *request) error {
		name := acs.UserName{UserID: rq.param("user")}
		if err := h.ACS.SetSuspended(rq.r.Context(), rq.principal, name, suspended); err != nil {
			return err
		}
		if suspended {
			return rq.done(rq.url("/people/users/"+name.UserID), "suspended")
		}
		return rq.done(rq.url("/people/users/"+name.UserID), "unsuspended")
	}
}

func (h *handler) removeUser(rq *request) error {
	if err := h.ACS.DeleteUser(rq.r.Context(), rq.principal, acs.UserName{UserID: rq.param("user")}); err != nil {
		return err
	}
	return rq.done(rq.url("/people/users"), "user-removed")
}

func (h *handler) removeIdentity(rq *request) error {
	if err := h.ACS.DeleteIdentity(rq.r.Context(), rq.principal, rq.param("identity")); err != nil {
		return err
	}
	return rq.done(rq.url("/people"), "identity-removed")
}
