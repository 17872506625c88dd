package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// StandsNow is whoever began a request, with what he reaches at this moment: what is answered after a wait goes by that. It fails with
// Unauthorized when his credential was revoked or has ended meanwhile, and with Forbidden when his workspace was suspended.
func (s *Service) StandsNow(ctx context.Context, p Principal) (Principal, error) {
	if p.CredentialID == uuid.Nil { // it is the server itself that asks
		return p, nil
	}
	now, err := s.db.StandingNow(ctx, dbsqlc.StandingNowParams{CredentialID: p.CredentialID, WorkspaceID: p.WorkspaceID})
	switch {
	case err != nil:
		return p, fmt.Errorf("look what the credential still reaches: %w", err)
	case !now.Good:
		return p, &Error{Kind: Unauthorized, Type: "unauthorized", Message: "This credential was revoked, or has ended, while the request waited."}
	case now.IsSuspended && !p.Suspended:
		return p, WorkspaceSuspended()
	}
	if p.Reach != nil {
		p.Reach = append([]uuid.UUID{}, now.Accounts...) // nil would be everything
	}
	return p, nil
}

// WorkspaceSuspended is what requests for what is in a suspended workspace fail with.
func WorkspaceSuspended() *Error {
	return &Error{Kind: Forbidden, Type: "workspace_suspended", Message: "The workspace is suspended. End that with /workspaces/update and is_suspended false."}
}

// StillSees fails like StandsNow, and with Unauthorized when some of what a client session reached when it began a request is out of its
// reach: it may not be told any more what it might then.
func (s *Service) StillSees(ctx context.Context, p Principal) error {
	now, err := s.StandsNow(ctx, p)
	if err == nil && slices.ContainsFunc(p.Reach, func(id uuid.UUID) bool { return !slices.Contains(now.Reach, id) }) {
		err = &Error{Kind: Unauthorized, Type: "unauthorized", Message: "This credential does not reach any more what it reached when the request began."}
	}
	return err
}
