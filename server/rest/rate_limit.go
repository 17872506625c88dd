package rest

import (
	"context"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// paced has each credential make workspaces, and empty them, at its pace: every one is an account with new locks, if they are
// simulated, and nobody deletes one. What is refused before, or answered as it was before, does not count.
func (e *edge) paced(next openapi.StrictHandlerFunc, operation string) openapi.StrictHandlerFunc {
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
