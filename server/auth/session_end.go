package auth

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RevokeClientSession ends a session immediately. It can still be read. It fails with NotFound.
func (s *Service) RevokeClientSession(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return SessionNotFound("client_session_id", id)
	}
	n, err := s.db.RevokeClientSession(
		ctx,
		dbsqlc.RevokeClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed},
	)
	if err == nil && n == 0 {
		return SessionNotFound("client_session_id", id)
	}
	return domain.Wrap(err, "revoke a client session")
}

// DeleteClientSession ends a session immediately and deletes it. It fails with NotFound.
func (s *Service) DeleteClientSession(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return SessionNotFound("client_session_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := tx.DeleteClientSession(
			ctx,
			dbsqlc.DeleteClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed},
		)
		if store.IsNoRows(err) {
			return SessionNotFound("client_session_id", id)
		}
		if err != nil {
			return err
		}
		return s.emitSessionDeleted(ctx, tx, r)
	})
	return domain.Wrap(err, "delete a client session")
}

// emitSessionDeleted announces a deleted session with its user identity and customer.
func (s *Service) emitSessionDeleted(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession) error {
	a := event.About{Workspace: r.WorkspaceID}.With("client_session_id", r.ClientSessionID)
	if r.UserIdentityID != nil {
		a = a.With("user_identity_id", *r.UserIdentityID)
	}
	if r.CustomerKey != nil {
		a = a.With("customer_key", *r.CustomerKey)
	}
	return s.events.Emit(ctx, tx, event.ClientSessionDeleted, a)
}

// EndSessionsOf deletes the client sessions of a user identity that is being deleted.
func (s *Service) EndSessionsOf(ctx context.Context, tx store.Tx, workspace, identity uuid.UUID) error {
	ended, err := tx.EndSessionsOfIdentity(
		ctx,
		dbsqlc.EndSessionsOfIdentityParams{WorkspaceID: workspace, UserIdentityID: &identity},
	)
	if err != nil {
		return fmt.Errorf("end the client sessions of user identity %s: %w", identity, err)
	}
	for _, r := range ended {
		if err := s.emitSessionDeleted(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}
