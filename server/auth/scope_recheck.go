package auth

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Recheck returns the principal with its current scope, for an answer after a wait. It fails with Unauthorized
// where the credential was revoked or has expired, and with Forbidden where the workspace was suspended.
func (s *Service) Recheck(ctx context.Context, p domain.Principal) (domain.Principal, error) {
	if p.CredentialID == uuid.Nil { // the server itself
		return p, nil
	}
	if p.Kind == domain.OperatorAccount {
		return s.recheckOperator(ctx, p)
	}
	now, err := s.db.StandingNow(
		ctx,
		dbsqlc.StandingNowParams{CredentialID: p.CredentialID, WorkspaceID: p.WorkspaceID},
	)
	switch {
	case err != nil:
		return p, fmt.Errorf("recheck the credential: %w", err)
	case !now.Good:
		return p, &domain.Error{
			Kind:    domain.Unauthorized,
			Type:    "unauthorized",
			Message: "This credential was revoked or expired while the request waited.",
		}
	case now.IsSuspended && !p.Suspended:
		return p, WorkspaceSuspended()
	}
	if p.Scope != nil {
		p.Scope = append([]uuid.UUID{}, now.Scope...) // nil would mean all accounts
	}
	return p, nil
}

// recheckOperator is Recheck for an operator. The principal gets the current role. It fails with Unauthorized where the
// operator was deleted or disabled, or has no role in the workspace any more.
func (s *Service) recheckOperator(ctx context.Context, p domain.Principal) (domain.Principal, error) {
	now, err := s.db.OperatorStanding(
		ctx,
		dbsqlc.OperatorStandingParams{OperatorID: p.CredentialID, WorkspaceID: p.WorkspaceID},
	)
	if err != nil && !store.IsNoRows(err) {
		return p, fmt.Errorf("recheck the operator: %w", err)
	}
	role := domain.StrongerRole(domain.Role(now.Role), domain.Role(now.RoleEverywhere))
	switch {
	case err != nil || !now.Good || role == "":
		return p, &domain.Error{
			Kind:    domain.Unauthorized,
			Type:    "unauthorized",
			Message: "Your access ended while the request waited. Ask an administrator.",
		}
	case now.IsSuspended && !p.Suspended:
		return p, WorkspaceSuspended()
	}
	p.Role = role
	return p, nil
}

// WorkspaceSuspended returns the error for requests on a suspended workspace.
func WorkspaceSuspended() *domain.Error {
	return &domain.Error{
		Kind:    domain.Forbidden,
		Type:    "workspace_suspended",
		Message: "The workspace is suspended. Resume it with /workspaces/update and is_suspended false.",
	}
}

// RecheckScope fails like Recheck, and with Unauthorized where a client session lost part of the scope that it
// had when the request started. An answer based on the old scope must not reach it.
func (s *Service) RecheckScope(ctx context.Context, p domain.Principal) error {
	now, err := s.Recheck(ctx, p)
	if err == nil && slices.ContainsFunc(p.Scope, func(id uuid.UUID) bool { return !slices.Contains(now.Scope, id) }) {
		err = &domain.Error{
			Kind:    domain.Unauthorized,
			Type:    "unauthorized",
			Message: "This credential lost access to some of what it could see when the request started.",
		}
	}
	return err
}
