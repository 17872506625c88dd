package access

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RevokeClientSession ends a session at once; it may still be read. It fails with NotFound.
func (s *Service) RevokeClientSession(ctx context.Context, p Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return sessionNotFound("client_session_id", id)
	}
	n, err := s.db.RevokeClientSession(ctx, dbsqlc.RevokeClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed})
	if err == nil && n == 0 {
		return sessionNotFound("client_session_id", id)
	}
	return named(err, "revoke a client session")
}

// DeleteClientSession ends a session at once and forgets it. It fails with NotFound.
func (s *Service) DeleteClientSession(ctx context.Context, p Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return sessionNotFound("client_session_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := tx.DeleteClientSession(ctx, dbsqlc.DeleteClientSessionParams{WorkspaceID: p.WorkspaceID, ClientSessionID: parsed})
		if store.IsNoRows(err) {
			return sessionNotFound("client_session_id", id)
		}
		if err != nil {
			return err
		}
		return s.emitSessionDeleted(ctx, tx, r)
	})
	return named(err, "delete a client session")
}

// ClientSessionDeleted is the type of the event that tells of the end of a session.
const ClientSessionDeleted = "client_session.deleted"

// emitSessionDeleted tells of the end of a session, and whose it was.
func (s *Service) emitSessionDeleted(ctx context.Context, tx store.Tx, r dbsqlc.ClientSession) error {
	a := about{workspace: r.WorkspaceID}.with("client_session_id", r.ClientSessionID)
	if r.UserIdentityID != nil {
		a = a.with("user_identity_id", *r.UserIdentityID)
	}
	if r.CustomerKey != nil {
		a = a.with("customer_key", *r.CustomerKey)
	}
	return s.emit(ctx, tx, ClientSessionDeleted, a)
}

// EndSessionsOf ends the client sessions of a user identity that ends.
func (s *Service) EndSessionsOf(ctx context.Context, tx store.Tx, workspace, identity uuid.UUID) error {
	ended, err := tx.EndSessionsOfIdentity(ctx, dbsqlc.EndSessionsOfIdentityParams{WorkspaceID: workspace, UserIdentityID: &identity})
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
