package overview

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// User is a user of an access system in a list.
type User struct {
	ID                 uuid.UUID
	FullName           string
	Email, Phone       string // as for Problem
	Suspended, Managed bool
	Identity           *uuid.UUID
	Deleting           bool
	Waiting            bool // the system has not confirmed the last change
	ChangedAt          time.Time
	Problem            string // empty: none
	StartsAt, EndsAt   *time.Time
	System             uuid.UUID
	SystemName         string
	createdAt          time.Time
}

// The states of UserFilter.
const (
	StateSuspended = "suspended"
	StatePending   = "pending"
	StateFailing   = "failing"
	StateUnmanaged = "unmanaged" // created at the system itself
)

// UserFilter are conditions that must all hold. Zero fields are no condition.
type UserFilter struct {
	System uuid.UUID
	// State is one of the states of users. Only StateUnmanaged lists unmanaged users.
	State string
	// Search is a part of the name, the email address, or the phone number.
	Search string
}

// Users lists the users of the access systems of a workspace, newest first, and returns where the next page starts.
func (s *Service) Users(
	ctx context.Context,
	workspace uuid.UUID,
	f UserFilter,
	from Position,
	limit int,
) (out []User, next Position, err error) {
	rows, err := s.findUsers(ctx, workspace, f, from, int32(limit)+1)
	if err != nil {
		return nil, Position{}, fmt.Errorf("list the users of access systems: %w", err)
	}
	for i, r := range rows {
		if i == limit {
			return out, Position{out[i-1].createdAt, out[i-1].ID}, nil
		}
		out = append(out, toUser(r))
	}
	return out, Position{}, nil
}

func (s *Service) findUsers(
	ctx context.Context,
	workspace uuid.UUID,
	f UserFilter,
	from Position,
	limit int32,
) (rows []dbsqlc.OverviewUsersRow, err error) {
	at, id := from.before()
	if f.State != StatePending {
		return s.db.UnpreparedQueries.OverviewUsers(ctx, dbsqlc.OverviewUsersParams{
			WorkspaceID:   workspace,
			IsManaged:     f.State != StateUnmanaged,
			BeforeAt:      at,
			BeforeID:      id,
			AcsSystemID:   nonZero(f.System),
			Pattern:       store.SearchPattern(f.Search),
			OnlySuspended: f.State == StateSuspended,
			OnlyFailing:   f.State == StateFailing,
			MaxRows:       limit,
		})
	}
	pending, err := s.db.UnpreparedQueries.OverviewUsersPending(ctx, dbsqlc.OverviewUsersPendingParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		AcsSystemID: nonZero(f.System),
		Pattern:     store.SearchPattern(f.Search),
		MaxRows:     limit,
	})
	for _, r := range pending {
		rows = append(rows, dbsqlc.OverviewUsersRow(r))
	}
	return rows, err
}

func toUser(r dbsqlc.OverviewUsersRow) User {
	return User{
		ID:         r.AcsUserID,
		FullName:   r.FullName,
		Email:      domain.Value(r.EmailAddress),
		Phone:      domain.Value(r.PhoneNumber),
		Suspended:  r.IsSuspended,
		Managed:    r.IsManaged,
		Identity:   r.UserIdentityID,
		Deleting:   r.DeletingAt != nil,
		Waiting:    r.Waiting && r.IsManaged,
		ChangedAt:  r.ChangedAt,
		Problem:    domain.Value(r.ErrorMessage),
		StartsAt:   r.StartsAt,
		EndsAt:     r.EndsAt,
		System:     r.AcsSystemID,
		SystemName: r.SystemName,
		createdAt:  r.CreatedAt,
	}
}

// IdentityFilter are conditions that must all hold. Zero fields are no condition.
type IdentityFilter struct {
	// System is an access system on which the person has a user.
	System uuid.UUID
	// Search is a part of the name, the email address, the phone number, or the key.
	Search string
}

// Identity is a user identity in a list.
type Identity struct {
	ID                          uuid.UUID
	Key, FullName, Email, Phone string // empty: none
	CreatedAt                   time.Time
	// Users are the users on access systems, of which Failing have an error.
	Users, Failing int
}

// Name is the most readable name of the identity.
func (i Identity) Name() string {
	return cmp.Or(i.FullName, i.Email, i.Phone, i.Key, "Person without a name")
}

// Identities lists the user identities of a workspace, newest first, and returns where the next page starts.
func (s *Service) Identities(
	ctx context.Context,
	workspace uuid.UUID,
	f IdentityFilter,
	from Position,
	limit int,
) (out []Identity, next Position, err error) {
	at, id := from.before()
	rows, err := s.db.UnpreparedQueries.OverviewIdentities(ctx, dbsqlc.OverviewIdentitiesParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		AcsSystemID: nonZero(f.System),
		Pattern:     store.SearchPattern(f.Search),
		MaxRows:     int32(limit) + 1,
	})
	if err != nil {
		return nil, Position{}, fmt.Errorf("list the identities: %w", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = Position{rows[limit-1].CreatedAt, rows[limit-1].UserIdentityID}
	}
	index := map[uuid.UUID]int{}
	ids := make([]uuid.UUID, len(rows))
	out = make([]Identity, len(rows))
	for i, r := range rows {
		ids[i], index[r.UserIdentityID] = r.UserIdentityID, i
		out[i] = Identity{
			ID:        r.UserIdentityID,
			Key:       domain.Value(r.UserIdentityKey),
			FullName:  domain.Value(r.FullName),
			Email:     domain.Value(r.EmailAddress),
			Phone:     domain.Value(r.PhoneNumber),
			CreatedAt: r.CreatedAt,
		}
	}
	counts, err := s.db.CountUsersOfIdentities(ctx, ids)
	if err != nil {
		return nil, Position{}, fmt.Errorf("count the users of identities: %w", err)
	}
	for _, c := range counts {
		i := index[c.UserIdentityID]
		out[i].Users, out[i].Failing = int(c.Users), int(c.Failing)
	}
	return out, next, nil
}

// System is the name of an access system.
type System struct {
	ID   uuid.UUID
	Name string
}

// MaxSystems is the maximum number of systems that Systems returns.
const MaxSystems = 200

// Systems returns the access systems of a workspace, oldest first.
func (s *Service) Systems(ctx context.Context, workspace uuid.UUID) (out []System, err error) {
	rows, err := s.db.NameSystems(ctx, dbsqlc.NameSystemsParams{WorkspaceID: workspace, MaxRows: MaxSystems})
	if err != nil {
		return nil, fmt.Errorf("list the access systems: %w", err)
	}
	for _, r := range rows {
		out = append(out, System{r.AcsSystemID, r.Name})
	}
	return out, nil
}
