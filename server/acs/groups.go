package acs

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Group is an access group. Its users may pass its entrances. Groups are created at the system
// itself.
type Group struct {
	ID, WorkspaceID, SystemID, AccountID uuid.UUID
	Name                                 string
	Warnings                             []Problem
	Pending                              []PendingChange
	CreatedAt                            time.Time // when it was first seen
}

// Entrance is a door, gate, or elevator of a system.
type Entrance struct {
	ID, WorkspaceID, SystemID, AccountID uuid.UUID
	Name                                 string
	CreatedAt                            time.Time // when it was first seen
}

func toGroup(r dbsqlc.ListAcsAccessGroupsRow) Group {
	g := Group{
		ID:          r.AcsAccessGroupID,
		WorkspaceID: r.WorkspaceID,
		SystemID:    r.AcsSystemID,
		AccountID:   r.ConnectedAccountID,
		Name:        r.Name,
		CreatedAt:   r.CreatedAt,
	}
	switch {
	case r.DeletionRequestedAt == nil:
	case domain.Value(r.DeletionRefused):
		g.Warnings = []Problem{{
			Code:    "unknown_issue_with_acs_access_group",
			Message: "The access system refuses to delete the group: " + text(r.DeletionError),
			At:      *r.DeletionRequestedAt,
		}}
	default:
		message := "The access group is being deleted from the access system."
		g.Warnings = []Problem{{Code: "being_deleted", Message: message, At: *r.DeletionRequestedAt}}
		g.Pending = []PendingChange{{Code: "deleting", Message: message, At: *r.DeletionRequestedAt}}
	}
	return g
}

func toEntrance(r dbsqlc.AcsEntrance, account uuid.UUID) Entrance {
	return Entrance{
		ID:          r.AcsEntranceID,
		WorkspaceID: r.WorkspaceID,
		SystemID:    r.AcsSystemID,
		AccountID:   account,
		Name:        r.Name,
		CreatedAt:   r.CreatedAt,
	}
}

func groupNotFound(id any) *domain.Error {
	return notFound("acs_access_group", "acs_access_group_id", id)
}

// GetGroup returns an access group. It fails with NotFound.
func (s *Service) GetGroup(ctx context.Context, p domain.Principal, id string) (Group, error) {
	r, err := getGroup(ctx, s.db.Queries, p, id)
	if err != nil {
		return Group{}, err
	}
	return toGroup(dbsqlc.ListAcsAccessGroupsRow{
		AcsAccessGroupID:    r.AcsAccessGroup.AcsAccessGroupID,
		WorkspaceID:         r.AcsAccessGroup.WorkspaceID,
		AcsSystemID:         r.AcsAccessGroup.AcsSystemID,
		Name:                r.AcsAccessGroup.Name,
		CreatedAt:           r.AcsAccessGroup.CreatedAt,
		ConnectedAccountID:  r.ConnectedAccountID,
		DeletionRequestedAt: r.DeletionRequestedAt,
		DeletionRefused:     r.DeletionRefused,
		DeletionError:       r.DeletionError,
	}), nil
}

func getGroup(
	ctx context.Context,
	q *dbsqlc.Queries,
	p domain.Principal,
	id string,
) (r dbsqlc.GetAcsAccessGroupRow, err error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return r, groupNotFound(id)
	}
	r, err = q.GetAcsAccessGroup(ctx,
		dbsqlc.GetAcsAccessGroupParams{WorkspaceID: p.WorkspaceID, AcsAccessGroupID: parsed})
	switch {
	case store.IsNoRows(err), err == nil && !p.CanSee(r.ConnectedAccountID):
		return r, groupNotFound(id)
	case err != nil:
		return r, fmt.Errorf("read the access group %s: %w", id, err)
	}
	return r, nil
}

// GroupFilter is a set of conditions that must all hold. Zero values match everything.
type GroupFilter struct {
	SystemID, UserID, IdentityID string
	Search                       string // in the name and the identifier

	// AfterAt and AfterID are the creation time and the identifier of the group before the first one; zero: none.
	AfterAt time.Time
	AfterID uuid.UUID
	Limit   int // 0: none
}

// ListGroups lists access groups, oldest first.
func (s *Service) ListGroups(ctx context.Context, p domain.Principal, f GroupFilter) ([]Group, error) {
	arg := dbsqlc.ListAcsAccessGroupsParams{
		WorkspaceID: p.WorkspaceID,
		Pattern:     store.SearchPattern(f.Search),
		AfterAt:     f.AfterAt,
		AfterID:     f.AfterID,
	}
	if f.Limit > 0 {
		arg.MaxRows = new(int32(f.Limit))
	}
	if !(conditions{
		{f.SystemID, &arg.AcsSystemID},
		{f.UserID, &arg.AcsUserID},
		{f.IdentityID, &arg.UserIdentityID},
	}).read() {
		return nil, nil
	}
	rows, err := s.db.UnpreparedQueries.ListAcsAccessGroups(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("list the access groups: %w", err)
	}
	out := make([]Group, len(rows))
	for i, r := range rows {
		out[i] = toGroup(r)
	}
	return out, nil
}

// GetEntrance returns an entrance. It fails with NotFound.
func (s *Service) GetEntrance(ctx context.Context, p domain.Principal, id string) (Entrance, error) {
	r, err := getEntrance(ctx, s.db.Queries, p.WorkspaceID, id)
	if err != nil {
		return Entrance{}, err
	}
	if !p.CanSee(r.ConnectedAccountID) {
		return Entrance{}, notFound("acs_entrance", "acs_entrance_id", id)
	}
	return toEntrance(r.AcsEntrance, r.ConnectedAccountID), nil
}

func getEntrance(
	ctx context.Context,
	q *dbsqlc.Queries,
	workspace uuid.UUID,
	id string,
) (dbsqlc.GetAcsEntranceRow, error) {
	missing := notFound("acs_entrance", "acs_entrance_id", id)
	parsed, err := uuid.Parse(id)
	if err != nil {
		return dbsqlc.GetAcsEntranceRow{}, missing
	}
	r, err := q.GetAcsEntrance(ctx, dbsqlc.GetAcsEntranceParams{WorkspaceID: workspace, AcsEntranceID: parsed})
	switch {
	case store.IsNoRows(err):
		return r, missing
	case err != nil:
		return r, fmt.Errorf("read the entrance %s: %w", id, err)
	}
	return r, nil
}

// EntranceFilter is a set of conditions that must all hold. Zero values match everything.
type EntranceFilter struct {
	SystemID, AccountID, CustomerKey, Search string
	IDs                                      *[]string // nil matches any
	Nothing                                  bool      // true matches no entrance
}

// ListEntrances lists entrances, oldest first, and reports whether more follow the page.
func (s *Service) ListEntrances(
	ctx context.Context,
	p domain.Principal,
	f EntranceFilter,
	page domain.Page,
) ([]Entrance, bool, error) {
	arg := dbsqlc.FindAcsEntrancesParams{
		WorkspaceID: p.WorkspaceID,
		AfterAt:     page.After.At,
		AfterID:     page.After.ID,
		MaxRows:     page.Rows(),
		CustomerKey: nonEmpty(f.CustomerKey),
		Pattern:     store.SearchPattern(f.Search),
		Ids:         identifiers(f.IDs),
		Scope:       p.Scope,
	}
	if f.Nothing || !(conditions{{f.SystemID, &arg.AcsSystemID}, {f.AccountID, &arg.ConnectedAccountID}}).read() {
		return nil, false, nil
	}
	rows, err := s.db.UnpreparedQueries.FindAcsEntrances(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the entrances: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out := make([]Entrance, len(rows))
	for i, r := range rows {
		out[i] = toEntrance(r.AcsEntrance, r.ConnectedAccountID)
	}
	return out, more, nil
}

// EntrancesOfUser lists the entrances of the user's groups and those granted to the user, oldest
// first. The schedule and the
// suspension of the user further restrict the access. It fails like GetUser.
func (s *Service) EntrancesOfUser(ctx context.Context, p domain.Principal, name UserName) ([]Entrance, error) {
	r, err := findUser(ctx, s.db.Queries, p, name)
	if err != nil {
		return nil, err
	}
	return s.entrancesBy(ctx, p, r.AcsUser.AcsSystemID, r.AcsUser.GroupRefs, r.AcsUser.EntranceRefs)
}

// EntrancesOfGroup lists the entrances of an access group, oldest first. It fails with NotFound.
func (s *Service) EntrancesOfGroup(ctx context.Context, p domain.Principal, group string) ([]Entrance, error) {
	g, err := getGroup(ctx, s.db.Queries, p, group)
	if err != nil {
		return nil, err
	}
	return s.entrancesBy(ctx, p, g.AcsAccessGroup.AcsSystemID, []string{g.AcsAccessGroup.VendorRef}, []string{})
}

// entrancesBy lists the entrances of a system that some groups open, and some more, oldest first.
func (s *Service) entrancesBy(
	ctx context.Context,
	p domain.Principal,
	system uuid.UUID,
	groups, entrances []string,
) ([]Entrance, error) {
	rows, err := s.db.ListAcsEntrancesOfUser(ctx, dbsqlc.ListAcsEntrancesOfUserParams{
		WorkspaceID:  p.WorkspaceID,
		AcsSystemID:  system,
		EntranceRefs: entrances,
		GroupRefs:    groups,
	})
	if err != nil {
		return nil, fmt.Errorf("list the entrances of access system %s: %w", system, err)
	}
	out := make([]Entrance, len(rows))
	for i, e := range rows {
		out[i] = toEntrance(e.AcsEntrance, e.ConnectedAccountID)
	}
	return out, nil
}

// UsersOfGroup lists the managed users of an access group, oldest first. It fails with NotFound.
func (s *Service) UsersOfGroup(ctx context.Context, p domain.Principal, group string) ([]User, error) {
	g, err := getGroup(ctx, s.db.Queries, p, group)
	if err != nil {
		return nil, err
	}
	out, _, err := s.ListUsers(ctx, p, UserFilter{
		SystemID: g.AcsAccessGroup.AcsSystemID.String(),
		groupRef: g.AcsAccessGroup.VendorRef,
	}, everything)
	return out, err
}

// identifiers parses an optional list of identifiers. nil means no condition; invalid identifiers
// match nothing.
func identifiers(texts *[]string) []uuid.UUID {
	if texts == nil {
		return nil
	}
	ids := []uuid.UUID{}
	for _, t := range *texts {
		if id, err := uuid.Parse(t); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
