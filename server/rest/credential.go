package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// authenticate tells whose token it is and which workspace the request acts in; workspaceID is the one that it names,
// or empty. It fails with an access.Error of kind Unauthorized.
type authenticate func(ctx context.Context, token, workspaceID string) (access.Principal, error)

// foreignCredentials are headers with kinds of credentials that this service does not issue.
var foreignCredentials = []string{"Client-Session-Token", "Seam-Client-Session-Token", "Seam-Publishable-Key"}

// credentialOf reads the credential from the headers. Headers that are present but empty count as absent, because the
// Go SDK always sends all of them.
func credentialOf(header http.Header) (token, workspaceID string, err error) {
	for _, name := range foreignCredentials {
		if strings.TrimSpace(header.Get(name)) != "" {
			return "", "", unauthorized("Client sessions and publishable keys are not supported; send an API key as Authorization: Bearer")
		}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", "", unauthorized("No authentication methods succeeded")
	}
	return token, strings.TrimSpace(header.Get("Seam-Workspace")), nil
}

// identify finds out who makes the request, as far as the operation asks for it.
func (e *edge) identify(x *exchange, r *http.Request) error {
	if x.operation.public {
		return nil
	}
	token, workspaceID, err := credentialOf(r.Header)
	if err != nil {
		return err
	}
	if x.principal, err = e.authenticate(r.Context(), token, workspaceID); err != nil {
		return err
	}
	if x.principal.WorkspaceID == uuid.Nil && !x.operation.roaming {
		return &failure{
			status: http.StatusBadRequest, kind: "missing_workspace_id",
			message: "This credential is bound to no workspace; name one in the header seam-workspace",
		}
	}
	return nil
}

func unauthorized(message string) *failure {
	return &failure{status: http.StatusUnauthorized, kind: "unauthorized", message: message}
}
