package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetAcsSystem(
	ctx context.Context, r openapi.GetAcsSystemRequestObject,
) (openapi.GetAcsSystemResponseObject, error) {
	s, err := h.acs.GetSystem(ctx, principal(ctx), r.Body.AcsSystemID)
	if err != nil {
		return nil, err
	}
	return openapi.GetAcsSystem200JSONResponse{Ok: true, AcsSystem: toAcsSystem(s)}, nil
}

func (h *handlers) ListAcsSystems(
	ctx context.Context, r openapi.ListAcsSystemsRequestObject,
) (openapi.ListAcsSystemsResponseObject, error) {
	list, err := h.acs.ListSystems(ctx, principal(ctx), acs.SystemFilter{
		AccountID:   r.Body.ConnectedAccountID,
		CustomerKey: r.Body.CustomerKey,
		Search:      r.Body.Search,
	})
	if err != nil {
		return nil, err
	}
	return openapi.ListAcsSystems200JSONResponse{Ok: true, AcsSystems: each(list, toAcsSystem)}, nil
}

func (h *handlers) GetAcsAccessGroup(
	ctx context.Context, r openapi.GetAcsAccessGroupRequestObject,
) (openapi.GetAcsAccessGroupResponseObject, error) {
	g, err := h.acs.GetGroup(ctx, principal(ctx), r.Body.AcsAccessGroupID)
	if err != nil {
		return nil, err
	}
	return openapi.GetAcsAccessGroup200JSONResponse{Ok: true, AcsAccessGroup: toAcsAccessGroup(g)}, nil
}

func (h *handlers) ListAcsAccessGroups(
	ctx context.Context, r openapi.ListAcsAccessGroupsRequestObject,
) (openapi.ListAcsAccessGroupsResponseObject, error) {
	list, err := h.acs.ListGroups(ctx, principal(ctx), acs.GroupFilter{
		SystemID:   r.Body.AcsSystemID,
		UserID:     r.Body.AcsUserID,
		IdentityID: r.Body.UserIdentityID,
		Search:     r.Body.Search,
	})
	if err != nil {
		return nil, err
	}
	return openapi.ListAcsAccessGroups200JSONResponse{Ok: true, AcsAccessGroups: each(list, toAcsAccessGroup)}, nil
}

func (h *handlers) GetAcsEntrance(
	ctx context.Context, r openapi.GetAcsEntranceRequestObject,
) (openapi.GetAcsEntranceResponseObject, error) {
	e, err := h.acs.GetEntrance(ctx, principal(ctx), r.Body.AcsEntranceID)
	if err != nil {
		return nil, err
	}
	return openapi.GetAcsEntrance200JSONResponse{Ok: true, AcsEntrance: toAcsEntrance(e)}, nil
}

func (h *handlers) ListAcsEntrances(
	ctx context.Context, r openapi.ListAcsEntrancesRequestObject,
) (openapi.ListAcsEntrancesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.acs.ListEntrances(ctx, principal(ctx), acs.EntranceFilter{
		SystemID:    r.Body.AcsSystemID,
		AccountID:   r.Body.ConnectedAccountID,
		CustomerKey: r.Body.CustomerKey,
		Search:      r.Body.Search,
		IDs:         r.Body.AcsEntranceIds,
		// The server has none of these, so no entrance matches.
		Nothing: r.Body.AcsCredentialID+r.Body.AccessMethodID+r.Body.SpaceID+r.Body.LocationID != "",
	}, page.Page)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(e acs.Entrance) (time.Time, uuid.UUID) { return e.CreatedAt, e.ID })
	return openapi.ListAcsEntrances200JSONResponse{
		Ok:           true,
		AcsEntrances: each(list, toAcsEntrance),
		Pagination:   page.pagination(more, last),
	}, nil
}

func (h *handlers) GrantAcsEntranceAccess(
	ctx context.Context, r openapi.GrantAcsEntranceAccessRequestObject,
) (openapi.GrantAcsEntranceAccessResponseObject, error) {
	name := acs.UserName{UserID: r.Body.AcsUserID, IdentityID: r.Body.UserIdentityID}
	if err := h.acs.GrantAccess(ctx, principal(ctx), name, r.Body.AcsEntranceID); err != nil {
		return nil, err
	}
	return openapi.GrantAcsEntranceAccess200JSONResponse{Ok: true}, nil
}

// systemPicture is the picture of all access systems. Pictures of manufacturers are not available.
const systemPicture = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Cpath d='M6 2h12v20H6zM14 12h1.5' fill='none' stroke='%23444'/%3E%3C/svg%3E"

func toAcsSystem(s acs.System) api.AcsSystem {
	return api.AcsSystem{
		AcsSystemID:         s.ID.String(),
		WorkspaceID:         s.WorkspaceID.String(),
		ConnectedAccountID:  s.AccountID.String(),
		ConnectedAccountIds: []string{s.AccountID.String()},
		Name:                s.Name,
		CreatedAt:           s.CreatedAt,
		Location:            api.AcsSystemLocation{TimeZone: s.TimeZone},
		AcsUserCount:        s.Users,
		AcsAccessGroupCount: s.Groups,
		ImageURL:            systemPicture,
		ImageAltText:        "A door",
		Errors:              toACSErrors(s.Errors),
		Warnings:            []api.Problem{},
	}
}

// groupType is the type of the access groups of all supported vendors.
const groupType, groupTypeName = "access_group", "Access group"

func toAcsAccessGroup(g acs.Group) api.AcsAccessGroup {
	return api.AcsAccessGroup{
		AcsAccessGroupID:           g.ID.String(),
		AcsSystemID:                g.SystemID.String(),
		ConnectedAccountID:         g.AccountID.String(),
		WorkspaceID:                g.WorkspaceID.String(),
		Name:                       g.Name,
		DisplayName:                g.Name,
		AccessGroupType:            groupType,
		AccessGroupTypeDisplayName: groupTypeName,
		ExternalType:               groupType,
		ExternalTypeDisplayName:    groupTypeName,
		CreatedAt:                  g.CreatedAt,
		IsManaged:                  true,
		Errors:                     []api.Problem{},
		Warnings:                   toACSWarnings(g.Warnings),
		PendingMutations:           each(g.Pending, toACSMutation),
	}
}

func toAcsEntrance(e acs.Entrance) api.AcsEntrance {
	return api.AcsEntrance{
		AcsEntranceID:      e.ID.String(),
		AcsSystemID:        e.SystemID.String(),
		ConnectedAccountID: e.AccountID.String(),
		WorkspaceID:        e.WorkspaceID.String(),
		DisplayName:        e.Name,
		CreatedAt:          e.CreatedAt,
		SpaceIds:           []string{},
		Errors:             []api.Problem{},
		Warnings:           []api.Problem{},
	}
}
