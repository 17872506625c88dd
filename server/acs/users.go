package acs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// User is a person's account on a system.
type User struct {
	ID, WorkspaceID, SystemID, AccountID uuid.UUID
	Managed                              bool
	FullName                             string
	Email, Phone                         *string
	Schedule                             *Schedule // nil: no time limit
	Suspended                            bool
	IdentityID                           *uuid.UUID
	Identity                             Person // data of the identity; zero if there is none
	Errors, Warnings                     []Problem
	Pending                              []PendingChange
	SyncedAt                             *time.Time // when the system last had the desired state
	CreatedAt                            time.Time
}

// Person is the data of an identity.
type Person struct{ FullName, Email, Phone *string }

// Schedule is the period in which a user may pass.
type Schedule struct {
	StartsAt time.Time
	EndsAt   *time.Time // nil: never
}

// PendingChange is a change that the system has not applied yet.
type PendingChange struct {
	Code     string // mutation_code of the API
	Message  string
	At       time.Time
	From, To map[string]any // nil if the change has none
}

// Profile is the data of a user on a system. Its JSON form stores the last observed state.
type Profile struct {
	FullName  string     `json:"full_name"`
	Email     string     `json:"email,omitempty"`
	Phone     string     `json:"phone,omitempty"`
	StartsAt  *time.Time `json:"starts_at,omitempty"`
	EndsAt    *time.Time `json:"ends_at,omitempty"`
	Suspended bool       `json:"suspended,omitempty"`
	Groups    []string   `json:"groups,omitempty"` // vendor references, sorted
	// Entrances are the entrances granted to the user in addition to those of the groups: vendor references, sorted.
	Entrances []string `json:"entrances,omitempty"`
}

func (p Profile) equal(o Profile) bool {
	return p.sameInformation(o) && p.sameSchedule(o) && p.Suspended == o.Suspended &&
		slices.Equal(p.Groups, o.Groups) && slices.Equal(p.Entrances, o.Entrances)
}

func (p Profile) sameInformation(o Profile) bool {
	return p.FullName == o.FullName && p.Email == o.Email && p.Phone == o.Phone
}

func (p Profile) sameSchedule(o Profile) bool {
	return sameTime(p.StartsAt, o.StartsAt) && sameTime(p.EndsAt, o.EndsAt)
}

// less reports whether p grants less than the profile than: it lacks a group or an entrance, or
// covers a shorter time.
func (p Profile) less(than Profile) bool {
	return slices.ContainsFunc(than.Groups, func(g string) bool { return !slices.Contains(p.Groups, g) }) ||
		slices.ContainsFunc(than.Entrances, func(e string) bool { return !slices.Contains(p.Entrances, e) }) ||
		p.EndsAt != nil && !sameTime(p.EndsAt, than.EndsAt) && (than.EndsAt == nil || p.EndsAt.Before(*than.EndsAt)) ||
		p.StartsAt != nil && !sameTime(p.StartsAt, than.StartsAt) &&
			(than.StartsAt == nil || p.StartsAt.After(*than.StartsAt))
}

// sameTime reports whether a system cannot tell two times apart. Many systems store whole seconds,
// some round.
func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Sub(*b).Abs() < time.Second
}

func sameInstant(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// desired returns the desired profile of a user on its system.
func desired(r dbsqlc.AcsUser) Profile {
	return Profile{
		FullName:  r.FullName,
		Email:     text(r.EmailAddress),
		Phone:     text(r.PhoneNumber),
		StartsAt:  utc(r.StartsAt),
		EndsAt:    utc(r.EndsAt),
		Suspended: r.IsSuspended,
		Groups:    slices.Compact(slices.Sorted(slices.Values(r.GroupRefs))),
		Entrances: slices.Compact(slices.Sorted(slices.Values(r.EntranceRefs))),
	}
}

// utc converts a time to UTC. Other zones cannot represent times close to the end of the calendar.
func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// applied returns the profile that the system last had; nil means that the user is not on the
// system.
func applied(r dbsqlc.AcsUser) *Profile {
	if r.Applied == nil {
		return nil
	}
	var p Profile
	_ = json.Unmarshal(r.Applied, &p) // this package wrote it
	return &p
}

// userRow is a user with the data of its account and identity.
type userRow struct {
	AcsUser              dbsqlc.AcsUser
	ConnectedAccountID   uuid.UUID
	IdentityFullName     *string
	IdentityEmailAddress *string
	IdentityPhoneNumber  *string
}

func userNotFound(field string, id any) *domain.Error { return notFound("acs_user", field, id) }

// UserName names a managed user by its identifier, or by its system and identity.
type UserName struct {
	UserID, SystemID, IdentityID string
}

// findUser finds a managed user. An identity alone names a user only if it has users on one system.
// It fails with Invalid unless the name is unambiguous, and with NotFound.
func findUser(ctx context.Context, q *dbsqlc.Queries, p domain.Principal, n UserName) (userRow, error) {
	switch {
	case n.UserID == "" && n.IdentityID == "":
		return userRow{}, domain.Invalidf("",
			"Must specify either acs_user_id or both acs_system_id and user_identity_id")
	case n.UserID != "" && n.IdentityID != "":
		return userRow{}, domain.Invalidf("", "Must specify only one of acs_user_id and user_identity_id")
	case n.UserID != "":
		return getUser(ctx, q, p, n.UserID, n.SystemID, true)
	}
	arg := dbsqlc.ListAcsUsersOfIdentityParams{WorkspaceID: p.WorkspaceID}
	identity, err := uuid.Parse(n.IdentityID)
	if err != nil {
		return userRow{}, userNotFound("user_identity_id", n.IdentityID)
	}
	if arg.UserIdentityID = identity; !(conditions{{n.SystemID, &arg.AcsSystemID}}).read() {
		return userRow{}, systemNotFound(n.SystemID)
	}
	rows, err := q.ListAcsUsersOfIdentity(ctx, arg)
	if err != nil {
		return userRow{}, fmt.Errorf("read the users of identity %s: %w", n.IdentityID, err)
	}
	rows = slices.DeleteFunc(rows, func(r dbsqlc.ListAcsUsersOfIdentityRow) bool {
		return !p.CanSee(r.ConnectedAccountID)
	})
	switch {
	case len(rows) == 0:
		return userRow{}, userNotFound("user_identity_id", n.IdentityID)
	case n.SystemID == "" && slices.ContainsFunc(rows, func(r dbsqlc.ListAcsUsersOfIdentityRow) bool {
		return r.AcsUser.AcsSystemID != rows[0].AcsUser.AcsSystemID
	}):
		return userRow{}, domain.Invalidf("acs_system_id",
			"The person has users on several access systems. Specify acs_system_id.")
	}
	return userRow(rows[0]), nil
}

// getUser returns a user by its identifier. If system is set, the user must be on it.
func getUser(
	ctx context.Context,
	q *dbsqlc.Queries,
	p domain.Principal,
	id, system string,
	managed bool,
) (userRow, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return userRow{}, userNotFound("acs_user_id", id)
	}
	r, err := q.GetAcsUser(ctx, dbsqlc.GetAcsUserParams{
		WorkspaceID: p.WorkspaceID,
		AcsUserID:   parsed,
		IsManaged:   managed,
	})
	switch {
	case store.IsNoRows(err) || err == nil && !p.CanSee(r.ConnectedAccountID):
		return userRow{}, userNotFound("acs_user_id", id)
	case err != nil:
		return userRow{}, fmt.Errorf("read the user %s: %w", id, err)
	}
	if other, err := uuid.Parse(system); system != "" && (err != nil || other != r.AcsUser.AcsSystemID) {
		return userRow{}, userNotFound("acs_user_id", id)
	}
	return userRow(r), nil
}

// GetUser returns a managed user. It fails with Invalid unless the name is unambiguous, and with
// NotFound.
func (s *Service) GetUser(ctx context.Context, p domain.Principal, n UserName) (User, error) {
	r, err := findUser(ctx, s.db.Queries, p, n)
	if err != nil {
		return User{}, err
	}
	return s.toUser(ctx, r)
}

// GetUnmanagedUser returns a user that was created at the system. It fails with NotFound.
func (s *Service) GetUnmanagedUser(ctx context.Context, p domain.Principal, id string) (User, error) {
	r, err := getUser(ctx, s.db.Queries, p, id, "", false)
	if err != nil {
		return User{}, err
	}
	return s.toUser(ctx, r)
}

// UserFilter is a set of conditions that must all hold. Zero values match everything.
type UserFilter struct {
	SystemID, IdentityID         string
	IdentityEmail, IdentityPhone string
	Search                       string // in the data of the user and its identity
	CreatedBefore                string
	Unmanaged                    bool // true lists unmanaged users in place of managed ones
	groupRef                     string
}

// ListUsers lists users, oldest first, and reports whether more follow the page. It fails with
// Invalid.
func (s *Service) ListUsers(
	ctx context.Context,
	p domain.Principal,
	f UserFilter,
	page domain.Page,
) ([]User, bool, error) {
	arg := dbsqlc.FindAcsUsersParams{
		WorkspaceID:   p.WorkspaceID,
		IsManaged:     !f.Unmanaged,
		AfterAt:       page.After.At,
		AfterID:       page.After.ID,
		MaxRows:       page.Rows(),
		IdentityEmail: nonEmpty(f.IdentityEmail),
		IdentityPhone: nonEmpty(f.IdentityPhone),
		Pattern:       store.SearchPattern(f.Search),
		GroupRef:      nonEmpty(f.groupRef),
		Scope:         p.Scope,
	}
	if !(conditions{{f.SystemID, &arg.AcsSystemID}, {f.IdentityID, &arg.UserIdentityID}}).read() {
		return nil, false, nil
	}
	var err error
	if arg.CreatedBefore, err = parseCreatedBefore(f.CreatedBefore); err != nil {
		return nil, false, err
	}
	found, err := s.db.UnpreparedQueries.FindAcsUsers(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the users: %w", err)
	}
	found, more := domain.Cut(page, found)
	rows := make([]userRow, len(found))
	for i, r := range found {
		rows[i] = userRow(r)
	}
	out, err := s.toUsers(ctx, rows)
	return out, more, err
}

func (s *Service) toUser(ctx context.Context, r userRow) (User, error) {
	out, err := s.toUsers(ctx, []userRow{r})
	if err != nil {
		return User{}, err
	}
	return out[0], nil
}

func (s *Service) toUsers(ctx context.Context, rows []userRow) ([]User, error) {
	groups, err := s.groupsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]User, len(rows))
	for i, row := range rows {
		r := row.AcsUser
		u := User{
			ID:          r.AcsUserID,
			WorkspaceID: r.WorkspaceID,
			SystemID:    r.AcsSystemID,
			AccountID:   row.ConnectedAccountID,
			Managed:     r.IsManaged,
			FullName:    r.FullName,
			Email:       r.EmailAddress,
			Phone:       r.PhoneNumber,
			Suspended:   r.IsSuspended,
			IdentityID:  r.UserIdentityID,
			Identity:    Person{row.IdentityFullName, row.IdentityEmailAddress, row.IdentityPhoneNumber},
			SyncedAt:    r.SyncedAt,
			CreatedAt:   r.CreatedAt,
		}
		if r.StartsAt != nil {
			u.Schedule = &Schedule{*r.StartsAt, r.EndsAt}
		} else if r.EndsAt != nil { // set at the system
			u.Schedule = &Schedule{r.CreatedAt, r.EndsAt}
		}
		if r.ErrorCode != nil {
			u.Errors = append(u.Errors, Problem{Code: *r.ErrorCode, Message: text(r.ErrorMessage), At: *r.ErrorAt})
		}
		if r.DeletingAt != nil {
			u.Warnings = append(
				u.Warnings,
				Problem{
					Code:    "being_deleted",
					Message: "The user is being deleted from the access system.",
					At:      *r.DeletingAt,
				},
			)
		}
		if r.IsManaged {
			u.Pending = pending(r, groups[r.AcsSystemID])
		}
		out[i] = u
	}
	return out, nil
}

// groupsOf returns the groups of the systems whose users have pending group changes, by vendor
// reference.
func (s *Service) groupsOf(ctx context.Context, rows []userRow) (map[uuid.UUID]map[string]uuid.UUID, error) {
	var systems []uuid.UUID
	for _, r := range rows {
		if has := applied(r.AcsUser); r.AcsUser.IsManaged && has != nil &&
			!slices.Equal(has.Groups, desired(r.AcsUser).Groups) {
			systems = append(systems, r.AcsUser.AcsSystemID)
		}
	}
	out := map[uuid.UUID]map[string]uuid.UUID{}
	if systems == nil {
		return out, nil
	}
	groups, err := s.db.ListAcsGroupsOfSystems(ctx, systems)
	if err != nil {
		return nil, fmt.Errorf("list the access groups: %w", err)
	}
	for _, g := range groups {
		if out[g.AcsSystemID] == nil {
			out[g.AcsSystemID] = map[string]uuid.UUID{}
		}
		out[g.AcsSystemID][g.VendorRef] = g.AcsAccessGroupID
	}
	return out, nil
}
