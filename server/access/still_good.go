package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// stillGood fails with Unauthorized when the credential of a request that waits was revoked or has ended meanwhile: it is
// told nothing more.
func (s *Service) stillGood(ctx context.Context, p Principal) error {
	if p.CredentialID == uuid.Nil { // it is the server itself that asks
		return nil
	}
	good, err := s.db.CredentialIsGood(ctx, p.CredentialID)
	if err != nil {
		return fmt.Errorf("look whether the credential is still good: %w", err)
	}
	if !good {
		return &Error{Kind: Unauthorized, Type: "unauthorized", Message: "This credential was revoked, or has ended, while the request waited."}
	}
	return nil
}

// StillSees fails with Unauthorized when whoever began a request may not be told any more what he might then: his credential has
// ended, his workspace is suspended, or some of what his client session reached is out of its reach.
func (s *Service) StillSees(ctx context.Context, p Principal) error {
	if err := s.stillGood(ctx, p); err != nil {
		return err
	}
	now, err := s.db.ReachNow(ctx, store.ReachNowParams{ClientSessionID: p.CredentialID, WorkspaceID: p.WorkspaceID})
	if err != nil {
		return fmt.Errorf("look what the credential still reaches: %w", err)
	}
	lost := slices.ContainsFunc(p.Reach, func(id uuid.UUID) bool { return !slices.Contains(now.Accounts, id) })
	if lost || now.IsSuspended && !p.Suspended {
		return &Error{Kind: Unauthorized, Type: "unauthorized", Message: "This credential does not reach any more what it reached when the request began."}
	}
	return nil
}
