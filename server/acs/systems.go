package acs

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// System is an access system: it keeps who may pass which entrances.
type System struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	AccountID   uuid.UUID
	Name        string
	TimeZone    *string // IANA name; nil: not known
	Users       int     // that are on it, or are to be
	Groups      int
	Errors      []Problem
	CreatedAt   time.Time
}

const systemDisconnected = "acs_system_disconnected"

func toSystem(r dbsqlc.AcsSystem, accountCode, accountMessage *string, accountAt *time.Time, users, groups int32) System {
	s := System{ID: r.AcsSystemID, WorkspaceID: r.WorkspaceID, AccountID: r.ConnectedAccountID, Name: r.Name, TimeZone: r.TimeZone,
		Users: int(users), Groups: int(groups), CreatedAt: r.CreatedAt}
	if accountCode != nil && accountAt != nil {
		s.Errors = append(s.Errors, Problem{Code: *accountCode, Message: text(accountMessage), At: *accountAt})
	}
	if r.ErrorMessage != nil {
		s.Errors = append(s.Errors, Problem{Code: systemDisconnected, Message: *r.ErrorMessage, At: *r.ErrorAt})
	}
	return s
}

// GetSystem reads a system. It fails with NotFound.
func (s *Service) GetSystem(ctx context.Context, p access.Principal, id string) (System, error) {
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

func systemNotFound(id any) *access.Error { return notFound("acs_system", "acs_system_id", id) }

// SystemFilter is a set of conditions that must all hold; zero ones are none.
type SystemFilter struct {
	AccountID, CustomerKey, Search string
	IdentityID                     string // that this person has a user on
}

// ListSystems lists the systems of the workspace, oldest first.
func (s *Service) ListSystems(ctx context.Context, p access.Principal, f SystemFilter) ([]System, error) {
	arg := dbsqlc.ListAcsSystemsParams{WorkspaceID: p.WorkspaceID, CustomerKey: nonEmpty(f.CustomerKey), Search: nonEmpty(f.Search), Scope: p.Reach}
	if !(conditions{{f.AccountID, &arg.ConnectedAccountID}, {f.IdentityID, &arg.UserIdentityID}}).read() {
		return nil, nil
	}
	rows, err := s.db.PlannedAnew.ListAcsSystems(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("list the access systems: %w", err)
	}
	out := make([]System, len(rows))
	for i, r := range rows {
		out[i] = toSystem(r.AcsSystem, r.AccountErrorCode, r.AccountErrorMessage, r.AccountErrorAt, r.Users, r.Groups)
	}
	return out, nil
}

// conditions are identifiers that rows must have, and where to put those that are given.
type conditions []struct {
	text string
	to   **uuid.UUID
}

// read says whether anything can meet them: what is no identifier names nothing.
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

// lockSystem locks a system of the workspace for a change of what should be on it.
func lockSystem(ctx context.Context, tx store.Tx, workspace uuid.UUID, id string) (dbsqlc.AcsSystem, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return dbsqlc.AcsSystem{}, systemNotFound(id)
	}
	r, err := tx.LockWorkspaceAcsSystem(ctx, dbsqlc.LockWorkspaceAcsSystemParams{WorkspaceID: workspace, AcsSystemID: parsed})
	if store.IsNoRows(err) {
		return r, systemNotFound(id)
	}
	return r, err
}

// wake has a system looked at once tx is committed.
func (s *Service) wake(ctx context.Context, tx store.Tx, system uuid.UUID) error {
	if err := tx.WakeAcsSystem(ctx, system); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, SystemLane, system)
}
