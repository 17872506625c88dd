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

// System is an access system. It stores which users may pass which entrances.
type System struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	AccountID   uuid.UUID
	Name        string
	TimeZone    *string // IANA name; nil: unknown
	Users       int     // on the system or planned for it
	Groups      int
	Errors      []Problem
	CreatedAt   time.Time
}

const systemDisconnected = "acs_system_disconnected"

func toSystem(
	r dbsqlc.AcsSystem,
	accountCode, accountMessage *string,
	accountAt *time.Time,
	users, groups int32,
) System {
	s := System{
		ID:          r.AcsSystemID,
		WorkspaceID: r.WorkspaceID,
		AccountID:   r.ConnectedAccountID,
		Name:        r.Name,
		TimeZone:    r.TimeZone,
		Users:       int(users),
		Groups:      int(groups),
		CreatedAt:   r.CreatedAt,
	}
	if accountCode != nil && accountAt != nil {
		s.Errors = append(s.Errors, Problem{Code: *accountCode, Message: text(accountMessage), At: *accountAt})
	}
	if r.ErrorMessage != nil {
		s.Errors = append(s.Errors, Problem{Code: systemDisconnected, Message: *r.ErrorMessage, At: *r.ErrorAt})
	}
	return s
}

// GetSystem returns a system. It fails with NotFound.
func (s *Service) GetSystem(ctx context.Context, p domain.Principal, id string) (System, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return System{}, systemNotFound(id)
	}
	r, err := s.db.GetAcsSystem(ctx, dbsqlc.GetAcsSystemParams{WorkspaceID: p.WorkspaceID, AcsSystemID: parsed})
	switch {
	case store.IsNoRows(err):
		return System{}, systemNotFound(id)
	case err != nil:
		return System{}, fmt.Errorf("read the access system %s: %w", id, err)
	}
	return toSystem(r.AcsSystem, r.AccountErrorCode, r.AccountErrorMessage, r.AccountErrorAt, r.Users, r.Groups), nil
}

func systemNotFound(id any) *domain.Error { return notFound("acs_system", "acs_system_id", id) }

// SystemFilter is a set of conditions that must all hold. Zero values match everything.
type SystemFilter struct {
	AccountID, CustomerKey, Search string
	IdentityID                     string // this person has a user on the system
}

// ListSystems lists the systems of the workspace, oldest first.
func (s *Service) ListSystems(ctx context.Context, p domain.Principal, f SystemFilter) ([]System, error) {
	arg := dbsqlc.ListAcsSystemsParams{
		WorkspaceID: p.WorkspaceID,
		CustomerKey: nonEmpty(f.CustomerKey),
		Pattern:     store.SearchPattern(f.Search),
		Scope:       p.Scope,
	}
	if !(conditions{{f.AccountID, &arg.ConnectedAccountID}, {f.IdentityID, &arg.UserIdentityID}}).read() {
		return nil, nil
	}
	rows, err := s.db.UnpreparedQueries.ListAcsSystems(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("list the access systems: %w", err)
	}
	out := make([]System, len(rows))
	for i, r := range rows {
		out[i] = toSystem(r.AcsSystem, r.AccountErrorCode, r.AccountErrorMessage, r.AccountErrorAt, r.Users, r.Groups)
	}
	return out, nil
}

// conditions are optional identifiers and where to store them once parsed.
type conditions []struct {
	text string
	to   **uuid.UUID
}

// read parses the conditions. It reports false if one is no identifier, so that nothing can match.
func (c conditions) read() bool {
	for _, one := range c {
		if one.text == "" {
			continue
		}
		id, err := uuid.Parse(one.text)
		if err != nil {
			return false
		}
		*one.to = &id
	}
	return true
}

// lockSystem locks a system of the workspace to change its desired state.
func lockSystem(ctx context.Context, tx store.Tx, workspace uuid.UUID, id string) (dbsqlc.AcsSystem, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return dbsqlc.AcsSystem{}, systemNotFound(id)
	}
	r, err := tx.LockWorkspaceAcsSystem(ctx,
		dbsqlc.LockWorkspaceAcsSystemParams{WorkspaceID: workspace, AcsSystemID: parsed})
	if store.IsNoRows(err) {
		return r, systemNotFound(id)
	}
	return r, err
}

// wake requests a look at a system when tx commits.
func (s *Service) wake(ctx context.Context, tx store.Tx, system uuid.UUID) error {
	if err := tx.WakeAcsSystem(ctx, system); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, SystemLane, system)
}
