package rest

import (
	"context"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// limitWorkspaces limits how fast a credential creates and resets workspaces. Each sandbox workspace has an account with new
// locks, and workspaces are never deleted. Rejected and replayed requests do not count.
func (e *edge) limitWorkspaces(next openapi.StrictHandlerFunc, operation string) openapi.StrictHandlerFunc {
	if operation != "CreateWorkspace" && operation != "ResetSandbox" {
		return next
	}
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		if after := e.callers.workspace(principal(ctx).CredentialID.String()); after > 0 {
			return nil, tooManyWorkspaces(after)
		}
		return next(ctx, w, r, request)
	}
}
