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
	CreatedAt                            time.Time // when it was first seen
}

// Entrance is a door, gate, or elevator of a system.
type Entrance struct {
	ID, WorkspaceID, SystemID, AccountID uuid.UUID
	Name                                 string
	CreatedAt                            time.Time // when it was first seen
}

func toGroup(r dbsqlc.AcsAccessGroup, account uuid.UUID) Group {
	return Group{
		ID:          r.AcsAccessGroupID,
		WorkspaceID: r.WorkspaceID,
		SystemID:    r.AcsSystemID,
		AccountID:   account,
		Name:        r.Name,
		CreatedAt:   r.CreatedAt,
	}
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
	r, account, err := getGroup(ctx, s.db.Queries, p.WorkspaceID, id)
	return toGroup(r, account), err
}

func getGroup(
	ctx context.Context,
	q *dbsqlc.Queries,
	workspace uuid.UUID,
	id string,
) (dbsqlc.AcsAccessGroup, uuid.UUID, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return dbsqlc.AcsAccessGroup{}, uuid.Nil, groupNotFound(id)
	}
	r, err := q.GetAcsAccessGroup(ctx, dbsqlc.GetAcsAccessGroupParams{WorkspaceID: workspace, AcsAccessGroupID: parsed})
	switch {
	case store.IsNoRows(err):
		return r.AcsAccessGroup, uuid.Nil, groupNotFound(id)
	case err != nil:
		return r.AcsAccessGroup, uuid.Nil, fmt.Errorf("read the access group %s: %w", id, err)
	}
	return r.AcsAccessGroup, r.ConnectedAccountID, nil
}

// GroupFilter is a set of conditions that must all hold. Zero values match everything.
type GroupFilter struct {
	SystemID, UserID, IdentityID string
	Search                       string // in the name and the identifier
}

// ListGroups lists access groups, oldest first.
func (s *Service) ListGroups(ctx context.Context, p domain.Principal, f GroupFilter) ([]Group, error) {
	arg := dbsqlc.ListAcsAccessGroupsParams{WorkspaceID: p.WorkspaceID, Pattern: store.SearchPattern(f.Search)}
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
		out[i] = Group{
			ID:          r.AcsAccessGroupID,
			WorkspaceID: r.WorkspaceID,
			SystemID:    r.AcsSystemID,
			AccountID:   r.ConnectedAccountID,
			Name:        r.Name,
			CreatedAt:   r.CreatedAt,
		}
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
	rows, err := s.db.ListAcsEntrancesOfUser(ctx, dbsqlc.ListAcsEntrancesOfUserParams{
		WorkspaceID:  p.WorkspaceID,
		AcsSystemID:  r.AcsUser.AcsSystemID,
		EntranceRefs: r.AcsUser.EntranceRefs,
		GroupRefs:    r.AcsUser.GroupRefs,
	})
	if err != nil {
		return nil, fmt.Errorf("list the entrances of user %s: %w", r.AcsUser.AcsUserID, err)
	}
	out := make([]Entrance, len(rows))
	for i, e := range rows {
		out[i] = toEntrance(e.AcsEntrance, e.ConnectedAccountID)
	}
	return out, nil
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
