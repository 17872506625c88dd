package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) CreateAcsUser(
	ctx context.Context, r openapi.CreateAcsUserRequestObject,
) (openapi.CreateAcsUserResponseObject, error) {
	email, err := emailOf(r.Body.EmailAddress, r.Body.Email)
	if err != nil {
		return nil, err
	}
	u, err := h.acs.CreateUser(ctx, principal(ctx), acs.NewUser{
		SystemID:   r.Body.AcsSystemID,
		FullName:   r.Body.FullName,
		Email:      email,
		Phone:      r.Body.PhoneNumber,
		Schedule:   toNewSchedule(r.Body.AccessSchedule),
		GroupIDs:   r.Body.AcsAccessGroupIds,
		IdentityID: r.Body.UserIdentityID,
	})
	if err != nil {
		return nil, err
	}
	return openapi.CreateAcsUser200JSONResponse{Ok: true, AcsUser: toAcsUser(u)}, nil
}

// emailOf returns the email address from its current or its former parameter.
func emailOf(address, older string) (string, error) {
	if address != "" && older != "" && address != older {
		return "", domain.Invalidf("email", "Is an older name of email_address, and differs from that; leave it out")
	}
	if address == "" {
		return older, nil
	}
	return address, nil
}

func toNewSchedule(s *api.AcsAccessScheduleRequest) *acs.NewSchedule {
	if s == nil {
		return nil
	}
	return &acs.NewSchedule{StartsAt: s.StartsAt, EndsAt: s.EndsAt}
}

func userName(r *api.AcsUserRequest) acs.UserName {
	return acs.UserName{UserID: r.AcsUserID, SystemID: r.AcsSystemID, IdentityID: r.UserIdentityID}
}

func (h *handlers) GetAcsUser(
	ctx context.Context, r openapi.GetAcsUserRequestObject,
) (openapi.GetAcsUserResponseObject, error) {
	u, err := h.acs.GetUser(ctx, principal(ctx), userName(r.Body))
	if err != nil {
		return nil, err
	}
	return openapi.GetAcsUser200JSONResponse{Ok: true, AcsUser: toAcsUser(u)}, nil
}

func (h *handlers) ListAcsUsers(
	ctx context.Context, r openapi.ListAcsUsersRequestObject,
) (openapi.ListAcsUsersResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.acs.ListUsers(ctx, principal(ctx), acs.UserFilter{
		SystemID:      r.Body.AcsSystemID,
		IdentityID:    r.Body.UserIdentityID,
		IdentityEmail: r.Body.UserIdentityEmailAddress,
		IdentityPhone: r.Body.UserIdentityPhoneNumber,
		Search:        r.Body.Search,
		CreatedBefore: r.Body.CreatedBefore,
	}, page.Page)
	if err != nil {
		return nil, err
	}
	return openapi.ListAcsUsers200JSONResponse{
		Ok:         true,
		AcsUsers:   each(list, toAcsUser),
		Pagination: page.pagination(more, lastUser(list)),
	}, nil
}

func lastUser(list []acs.User) domain.Position {
	return lastPosition(list, func(u acs.User) (time.Time, uuid.UUID) { return u.CreatedAt, u.ID })
}

func (h *handlers) UpdateAcsUser(
	ctx context.Context, r openapi.UpdateAcsUserRequestObject,
) (openapi.UpdateAcsUserResponseObject, error) {
	email, err := emailOf(r.Body.EmailAddress, r.Body.Email)
	if err != nil {
		return nil, err
	}
	name := acs.UserName{UserID: r.Body.AcsUserID, SystemID: r.Body.AcsSystemID, IdentityID: r.Body.UserIdentityID}
	err = h.acs.UpdateUser(ctx, principal(ctx), name, acs.UserChange{
		FullName:      r.Body.FullName,
		Email:         email,
		Phone:         r.Body.PhoneNumber,
		ScheduleGiven: r.Body.AccessSchedule.Given,
		Schedule:      toNewSchedule(r.Body.AccessSchedule.To),
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateAcsUser200JSONResponse{Ok: true}, nil
}

func (h *handlers) DeleteAcsUser(
	ctx context.Context, r openapi.DeleteAcsUserRequestObject,
) (openapi.DeleteAcsUserResponseObject, error) {
	if err := h.acs.DeleteUser(ctx, principal(ctx), userName(r.Body)); err != nil {
		return nil, err
	}
	return openapi.DeleteAcsUser200JSONResponse{Ok: true}, nil
}

func (h *handlers) SuspendAcsUser(
	ctx context.Context, r openapi.SuspendAcsUserRequestObject,
) (openapi.SuspendAcsUserResponseObject, error) {
	if err := h.acs.SetSuspended(ctx, principal(ctx), userName(r.Body), true); err != nil {
		return nil, err
	}
	return openapi.SuspendAcsUser200JSONResponse{Ok: true}, nil
}

func (h *handlers) UnsuspendAcsUser(
	ctx context.Context, r openapi.UnsuspendAcsUserRequestObject,
) (openapi.UnsuspendAcsUserResponseObject, error) {
	if err := h.acs.SetSuspended(ctx, principal(ctx), userName(r.Body), false); err != nil {
		return nil, err
	}
	return openapi.UnsuspendAcsUser200JSONResponse{Ok: true}, nil
}

func (h *handlers) AddAcsUserToAccessGroup(
	ctx context.Context, r openapi.AddAcsUserToAccessGroupRequestObject,
) (openapi.AddAcsUserToAccessGroupResponseObject, error) {
	if err := h.acs.AddToGroup(
		ctx,
		principal(ctx),
		acs.UserName{UserID: r.Body.AcsUserID},
		r.Body.AcsAccessGroupID,
	); err != nil {
		return nil, err
	}
	return openapi.AddAcsUserToAccessGroup200JSONResponse{Ok: true}, nil
}

func (h *handlers) RemoveAcsUserFromAccessGroup(
	ctx context.Context, r openapi.RemoveAcsUserFromAccessGroupRequestObject,
) (openapi.RemoveAcsUserFromAccessGroupResponseObject, error) {
	name := acs.UserName{UserID: r.Body.AcsUserID, IdentityID: r.Body.UserIdentityID}
	if err := h.acs.RemoveFromGroup(ctx, principal(ctx), name, r.Body.AcsAccessGroupID); err != nil {
		return nil, err
	}
	return openapi.RemoveAcsUserFromAccessGroup200JSONResponse{Ok: true}, nil
}

func (h *handlers) ListEntrancesOfAcsUser(
	ctx context.Context, r openapi.ListEntrancesOfAcsUserRequestObject,
) (openapi.ListEntrancesOfAcsUserResponseObject, error) {
	list, err := h.acs.EntrancesOfUser(ctx, principal(ctx), userName(r.Body))
	if err != nil {
		return nil, err
	}
	return openapi.ListEntrancesOfAcsUser200JSONResponse{Ok: true, AcsEntrances: each(list, toAcsEntrance)}, nil
}

func (h *handlers) RevokeAccessOfAcsUser(
	ctx context.Context, r openapi.RevokeAccessOfAcsUserRequestObject,
) (openapi.RevokeAccessOfAcsUserResponseObject, error) {
	if err := h.acs.RevokeAllEntrances(ctx, principal(ctx), userName(r.Body)); err != nil {
		return nil, err
	}
	return openapi.RevokeAccessOfAcsUser200JSONResponse{Ok: true}, nil
}

func (h *handlers) GetUnmanagedAcsUser(
	ctx context.Context, r openapi.GetUnmanagedAcsUserRequestObject,
) (openapi.GetUnmanagedAcsUserResponseObject, error) {
	u, err := h.acs.GetUnmanagedUser(ctx, principal(ctx), r.Body.AcsUserID)
	if err != nil {
		return nil, err
	}
	return openapi.GetUnmanagedAcsUser200JSONResponse{Ok: true, AcsUser: toUnmanagedAcsUser(u)}, nil
}

func (h *handlers) ListUnmanagedAcsUsers(
	ctx context.Context, r openapi.ListUnmanagedAcsUsersRequestObject,
) (openapi.ListUnmanagedAcsUsersResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.acs.ListUsers(ctx, principal(ctx), acs.UserFilter{
		Unmanaged:     true,
		SystemID:      r.Body.AcsSystemID,
		IdentityID:    r.Body.UserIdentityID,
		IdentityEmail: r.Body.UserIdentityEmailAddress,
		IdentityPhone: r.Body.UserIdentityPhoneNumber,
		Search:        r.Body.Search,
	}, page.Page)
	if err != nil {
		return nil, err
	}
	return openapi.ListUnmanagedAcsUsers200JSONResponse{
		Ok:         true,
		AcsUsers:   each(list, toUnmanagedAcsUser),
		Pagination: page.pagination(more, lastUser(list)),
	}, nil
}

func (h *handlers) AddAcsUserToUserIdentity(
	ctx context.Context, r openapi.AddAcsUserToUserIdentityRequestObject,
) (openapi.AddAcsUserToUserIdentityResponseObject, error) {
	if err := h.acs.AddUser(
		ctx,
		principal(ctx),
		r.Body.UserIdentityID,
		r.Body.UserIdentityKey,
		r.Body.AcsUserID,
	); err != nil {
		return nil, err
	}
	return openapi.AddAcsUserToUserIdentity200JSONResponse{Ok: true}, nil
}

func (h *handlers) RemoveAcsUserFromUserIdentity(
	ctx context.Context, r openapi.RemoveAcsUserFromUserIdentityRequestObject,
) (openapi.RemoveAcsUserFromUserIdentityResponseObject, error) {
	if err := h.acs.RemoveUser(ctx, principal(ctx), r.Body.UserIdentityID, r.Body.AcsUserID); err != nil {
		return nil, err
	}
	return openapi.RemoveAcsUserFromUserIdentity200JSONResponse{Ok: true}, nil
}

func (h *handlers) ListAcsUsersOfUserIdentity(
	ctx context.Context, r openapi.ListAcsUsersOfUserIdentityRequestObject,
) (openapi.ListAcsUsersOfUserIdentityResponseObject, error) {
	list, err := h.acs.UsersOf(ctx, principal(ctx), r.Body.UserIdentityID)
	if err != nil {
		return nil, err
	}
	return openapi.ListAcsUsersOfUserIdentity200JSONResponse{Ok: true, AcsUsers: each(list, toAcsUser)}, nil
}

func (h *handlers) ListAcsSystemsOfUserIdentity(
	ctx context.Context, r openapi.ListAcsSystemsOfUserIdentityRequestObject,
) (openapi.ListAcsSystemsOfUserIdentityResponseObject, error) {
	list, err := h.acs.SystemsOf(ctx, principal(ctx), r.Body.UserIdentityID)
	if err != nil {
		return nil, err
	}
	return openapi.ListAcsSystemsOfUserIdentity200JSONResponse{Ok: true, AcsSystems: each(list, toAcsSystem)}, nil
}

func toAcsUser(u acs.User) api.AcsUser {
	found := toUnmanagedAcsUser(u)
	out := api.AcsUser{
		AcsUserID:                found.AcsUserID,
		AcsSystemID:              found.AcsSystemID,
		ConnectedAccountID:       found.ConnectedAccountID,
		WorkspaceID:              found.WorkspaceID,
		CreatedAt:                found.CreatedAt,
		DisplayName:              found.DisplayName,
		FullName:                 found.FullName,
		EmailAddress:             found.EmailAddress,
		Email:                    found.Email,
		PhoneNumber:              found.PhoneNumber,
		AccessSchedule:           found.AccessSchedule,
		IsSuspended:              found.IsSuspended,
		IsManaged:                true,
		LastSuccessfulSyncAt:     found.LastSuccessfulSyncAt,
		Errors:                   found.Errors,
		Warnings:                 found.Warnings,
		UserIdentityFullName:     u.Identity.FullName,
		UserIdentityEmailAddress: u.Identity.Email,
		UserIdentityPhoneNumber:  u.Identity.Phone,
		PendingMutations:         each(u.Pending, toACSMutation),
	}
	if u.IdentityID != nil {
		out.UserIdentityID = u.IdentityID.String()
	}
	return out
}

func toACSMutation(m acs.PendingChange) api.AcsUserMutation {
	return api.AcsUserMutation{
		MutationCode: m.Code,
		Message:      m.Message,
		CreatedAt:    m.At,
		From:         m.From,
		To:           m.To,
	}
}

func toUnmanagedAcsUser(u acs.User) api.UnmanagedAcsUser {
	out := api.UnmanagedAcsUser{
		AcsUserID:            u.ID.String(),
		AcsSystemID:          u.SystemID.String(),
		ConnectedAccountID:   u.AccountID.String(),
		WorkspaceID:          u.WorkspaceID.String(),
		CreatedAt:            u.CreatedAt,
		DisplayName:          u.FullName,
		FullName:             u.FullName,
		IsSuspended:          &u.Suspended,
		IsManaged:            u.Managed,
		LastSuccessfulSyncAt: u.SyncedAt,
		Errors:               toACSErrors(u.Errors),
		Warnings:             toACSWarnings(u.Warnings),
	}
	if u.Email != nil {
		out.EmailAddress, out.Email = *u.Email, *u.Email
	}
	if u.Phone != nil {
		out.PhoneNumber = *u.Phone
	}
	if u.Schedule != nil {
		out.AccessSchedule = &api.AcsAccessSchedule{StartsAt: u.Schedule.StartsAt, EndsAt: u.Schedule.EndsAt}
	}
	return out
}
