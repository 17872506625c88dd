package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) AddUserToAcsAccessGroup(
	ctx context.Context, r openapi.AddUserToAcsAccessGroupRequestObject,
) (openapi.AddUserToAcsAccessGroupResponseObject, error) {
	name := acs.UserName{UserID: r.Body.AcsUserID, IdentityID: r.Body.UserIdentityID}
	if err := h.acs.AddUserToGroup(ctx, principal(ctx), name, r.Body.AcsAccessGroupID); err != nil {
		return nil, err
	}
	return openapi.AddUserToAcsAccessGroup200JSONResponse{Ok: true}, nil
}

func (h *handlers) RemoveUserFromAcsAccessGroup(
	ctx context.Context, r openapi.RemoveUserFromAcsAccessGroupRequestObject,
) (openapi.RemoveUserFromAcsAccessGroupResponseObject, error) {
	name := acs.UserName{UserID: r.Body.AcsUserID, IdentityID: r.Body.UserIdentityID}
	if err := h.acs.RemoveFromGroup(ctx, principal(ctx), name, r.Body.AcsAccessGroupID); err != nil {
		return nil, err
	}
	return openapi.RemoveUserFromAcsAccessGroup200JSONResponse{Ok: true}, nil
}

func (h *handlers) ListUsersOfAcsAccessGroup(
	ctx context.Context, r openapi.ListUsersOfAcsAccessGroupRequestObject,
) (openapi.ListUsersOfAcsAccessGroupResponseObject, error) {
	list, err := h.acs.UsersOfGroup(ctx, principal(ctx), r.Body.AcsAccessGroupID)
	if err != nil {
		return nil, err
	}
	return openapi.ListUsersOfAcsAccessGroup200JSONResponse{Ok: true, AcsUsers: each(list, toAcsUser)}, nil
}

func (h *handlers) ListEntrancesOfAcsAccessGroup(
	ctx context.Context, r openapi.ListEntrancesOfAcsAccessGroupRequestObject,
) (openapi.ListEntrancesOfAcsAccessGroupResponseObject, error) {
	list, err := h.acs.EntrancesOfGroup(ctx, principal(ctx), r.Body.AcsAccessGroupID)
	if err != nil {
		return nil, err
	}
	return openapi.ListEntrancesOfAcsAccessGroup200JSONResponse{
		Ok:           true,
		AcsEntrances: each(list, toAcsEntrance),
	}, nil
}

func (h *handlers) DeleteAcsAccessGroup(
	ctx context.Context, r openapi.DeleteAcsAccessGroupRequestObject,
) (openapi.DeleteAcsAccessGroupResponseObject, error) {
	if err := h.acs.DeleteGroup(ctx, principal(ctx), r.Body.AcsAccessGroupID); err != nil {
		return nil, err
	}
	return openapi.DeleteAcsAccessGroup200JSONResponse{Ok: true}, nil
}

func (h *handlers) UnlockAcsEntrance(
	ctx context.Context, r openapi.UnlockAcsEntranceRequestObject,
) (openapi.UnlockAcsEntranceResponseObject, error) {
	attempt, err := h.acs.UnlockEntrance(ctx, principal(ctx), r.Body.AcsEntranceID, r.Body.AcsCredentialID)
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	if err != nil {
		return nil, err
	}
	return openapi.UnlockAcsEntrance200JSONResponse(answer), nil
}
