package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) CreateUserIdentity(
	ctx context.Context, r openapi.CreateUserIdentityRequestObject,
) (openapi.CreateUserIdentityResponseObject, error) {
	i, err := h.acs.CreateIdentity(ctx, principal(ctx), acs.NewIdentity{
		Key:       r.Body.UserIdentityKey,
		Email:     r.Body.EmailAddress,
		Phone:     r.Body.PhoneNumber,
		FullName:  r.Body.FullName,
		SystemIDs: r.Body.AcsSystemIds,
	})
	if err != nil {
		return nil, err
	}
	return openapi.CreateUserIdentity200JSONResponse{Ok: true, UserIdentity: toUserIdentity(i)}, nil
}

func (h *handlers) GetUserIdentity(
	ctx context.Context, r openapi.GetUserIdentityRequestObject,
) (openapi.GetUserIdentityResponseObject, error) {
	i, err := h.acs.GetIdentity(ctx, principal(ctx), r.Body.UserIdentityID, r.Body.UserIdentityKey)
	if err != nil {
		return nil, err
	}
	return openapi.GetUserIdentity200JSONResponse{Ok: true, UserIdentity: toUserIdentity(i)}, nil
}

func (h *handlers) ListUserIdentities(
	ctx context.Context, r openapi.ListUserIdentitiesRequestObject,
) (openapi.ListUserIdentitiesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.acs.ListIdentities(ctx, principal(ctx), acs.IdentityFilter{
		CreatedBefore: r.Body.CreatedBefore,
		IDs:           r.Body.UserIdentityIds,
		Search:        r.Body.Search,
		// The server has no credential managers.
		Nothing: r.Body.CredentialManagerAcsSystemID != "",
	}, page.Page)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(i acs.Identity) (time.Time, uuid.UUID) { return i.CreatedAt, i.ID })
	return openapi.ListUserIdentities200JSONResponse{
		Ok:             true,
		UserIdentities: each(list, toUserIdentity),
		Pagination:     page.pagination(more, last),
	}, nil
}

func (h *handlers) UpdateUserIdentity(
	ctx context.Context, r openapi.UpdateUserIdentityRequestObject,
) (openapi.UpdateUserIdentityResponseObject, error) {
	err := h.acs.UpdateIdentity(ctx, principal(ctx), r.Body.UserIdentityID, acs.IdentityChange{
		Key:      acs.Change(r.Body.UserIdentityKey),
		Email:    acs.Change(r.Body.EmailAddress),
		Phone:    acs.Change(r.Body.PhoneNumber),
		FullName: acs.Change(r.Body.FullName),
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateUserIdentity200JSONResponse{Ok: true}, nil
}

func (h *handlers) DeleteUserIdentity(
	ctx context.Context, r openapi.DeleteUserIdentityRequestObject,
) (openapi.DeleteUserIdentityResponseObject, error) {
	if err := h.acs.DeleteIdentity(ctx, principal(ctx), r.Body.UserIdentityID); err != nil {
		return nil, err
	}
	return openapi.DeleteUserIdentity200JSONResponse{Ok: true}, nil
}

func toUserIdentity(i acs.Identity) api.UserIdentity {
	return api.UserIdentity{
		UserIdentityID:         i.ID.String(),
		WorkspaceID:            i.WorkspaceID.String(),
		UserIdentityKey:        i.Key,
		DisplayName:            i.DisplayName(),
		FullName:               i.FullName,
		EmailAddress:           i.Email,
		PhoneNumber:            i.Phone,
		CreatedAt:              i.CreatedAt,
		AcsUserIds:             each(i.UserIDs, uuid.UUID.String),
		MergedUserIdentityIds:  each(i.MergedIDs, uuid.UUID.String),
		MergedUserIdentityKeys: append([]string{}, i.MergedKeys...),
		Errors:                 toACSErrors(i.Errors),
		Warnings:               toACSWarnings(i.Warnings),
	}
}

func toACSErrors(problems []acs.Problem) []api.Problem {
	return each(problems, func(p acs.Problem) api.Problem {
		out := toACSProblem(p)
		out.ErrorCode = p.Code
		return out
	})
}

func toACSWarnings(problems []acs.Problem) []api.Problem {
	return each(problems, func(p acs.Problem) api.Problem {
		out := toACSProblem(p)
		out.WarningCode = p.Code
		return out
	})
}

func toACSProblem(p acs.Problem) api.Problem {
	out := api.Problem{Message: p.Message, CreatedAt: p.At}
	if p.UserID != uuid.Nil {
		out.AcsSystemID, out.AcsUserID = p.SystemID.String(), p.UserID.String()
	}
	return out
}
