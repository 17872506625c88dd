package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

// authenticate returns the principal of a token. workspaceID is the workspace that the request names, or empty. It
// returns an access.Error of kind Unauthorized.
type authenticate func(ctx context.Context, token, workspaceID string) (domain.Principal, error)

// The security schemes of the contract.
const (
	schemeAPIKey          = "api_key"
	schemePAT             = "pat"
	schemeConsole         = "console_session"
	schemeSession         = "client_session"
	schemeCustomerSession = "client_session_with_customer"
	schemePublishable     = "publishable_key"

	withWorkspace    = "_with_workspace"
	withoutWorkspace = "_without_workspace"
	workspaceHeader  = "seam_workspace"
)

var schemes = []string{
	schemeAPIKey,
	schemePAT + withWorkspace,
	schemePAT + withoutWorkspace,
	schemeConsole + withWorkspace,
	schemeConsole + withoutWorkspace,
	schemeSession,
	schemeCustomerSession,
	schemePublishable,
}

// schemesOf returns the security schemes that a principal satisfies.
func schemesOf(p domain.Principal) []string {
	roaming := withWorkspace
	if p.WorkspaceID == uuid.Nil {
		roaming = withoutWorkspace
	}
	switch p.Kind {
	case domain.APIKey:
		return []string{schemeAPIKey}
	case domain.PAT:
		return []string{schemePAT + roaming}
	case domain.ConsoleSession:
		return []string{schemeConsole + roaming}
	case domain.PublishableKey:
		return []string{schemePublishable}
	case domain.EndUser:
		if p.Customer != "" {
			return []string{schemeSession, schemeCustomerSession}
		}
		return []string{schemeSession}
	}
	return nil
}

var schemeNames = map[string]string{
	schemeAPIKey:                     "an API key",
	schemePAT + withWorkspace:        "a personal access token with the header seam-workspace",
	schemePAT + withoutWorkspace:     "a personal access token without the header seam-workspace",
	schemeConsole + withWorkspace:    "a console session with the header seam-workspace",
	schemeConsole + withoutWorkspace: "a console session without the header seam-workspace",
	schemeSession:                    "a client session",
	schemeCustomerSession:            "a client session of a customer",
	schemePublishable:                "a publishable key",
}

// sessionHeaders can contain the token of a client session, in addition to or instead of Authorization.
var sessionHeaders = []string{"Client-Session-Token", "Seam-Client-Session-Token"}

// credentialHeaders are all headers with credentials and workspaces.
var credentialHeaders = append([]string{"Authorization", "Seam-Publishable-Key", "Seam-Workspace"}, sessionHeaders...)

// credentialOf reads the credential from the headers. Empty headers count as absent, because the Go SDK always sends
// all of them. A header with two different values is rejected, because a proxy may have trusted the other one.
func credentialOf(header http.Header) (token, workspaceID string, err error) {
	for _, name := range credentialHeaders {
		if values := header.Values(
			name,
		); len(values) > 1 &&
			slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			return "", "", &failure{
				status: http.StatusBadRequest, kind: "conflicting_credentials",
				message: fmt.Sprintf("The header %s comes with different values; send it once", strings.ToLower(name)),
			}
		}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	for _, name := range sessionHeaders {
		session := strings.TrimSpace(header.Get(name))
		switch {
		case session == "":
			continue
		case !strings.HasPrefix(session, auth.SessionPrefix):
			return "", "", badSessionToken(
				fmt.Sprintf(
					"The header %s takes the token of a client session, which begins with %s",
					strings.ToLower(name),
					auth.SessionPrefix,
				),
			)
		case token != "" && token != session:
			return "", "", badSessionToken("The headers carry two different credentials; send one")
		}
		token = session
	}
	publishable := strings.TrimSpace(header.Get("Seam-Publishable-Key"))
	switch {
	case strings.HasPrefix(token, auth.PublishablePrefix):
		return "", "", &failure{
			status:  http.StatusBadRequest,
			kind:    "publishable_key_header_required",
			message: "Send a publishable key in the header seam-publishable-key",
		}
	case token != "": // it can do more than a publishable key
	case publishable == "":
		return "", "", unauthorized("No authentication methods succeeded")
	case !strings.HasPrefix(publishable, auth.PublishablePrefix):
		return "", "", &failure{
			status:  http.StatusUnauthorized,
			kind:    "invalid_publishable_key",
			message: "Publishable keys begin with " + auth.PublishablePrefix,
		}
	default:
		token = publishable
	}
	return token, strings.TrimSpace(header.Get("Seam-Workspace")), nil
}

// authenticateCaller authenticates the caller as the operation requires, and checks that it may call the operation.
func (e *edge) authenticateCaller(x *requestContext, r *http.Request) error {
	if x.operation.public {
		return nil
	}
	token, workspaceID, err := credentialOf(r.Header)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(token, auth.PublishablePrefix) { // keys of publishable keys depend on the parameters
		if err := e.countRepeat(x, token, workspaceID, ""); err != nil {
			return err
		}
	}
	address := ratelimit.AddressOf(r, e.trustForwarded)
	if after := e.limiter.Admit(address, token); after > 0 {
		return tooManyFailures(after)
	}
	p, err := e.authenticate(r.Context(), token, workspaceID)
	found := ratelimit.Undecided
	if refused := new(domain.Error); err == nil {
		found = ratelimit.Valid
	} else if errors.As(err, &refused) && refused.Kind == domain.Unauthorized {
		found = ratelimit.Invalid
	}
	e.limiter.RecordVerdict(address, token, found)
	if err != nil {
		return err
	}
	x.principal = p
	e.beginSpan(x, r)
	if after := e.limiter.Request(p.CredentialID.String()); after > 0 {
		return tooManyRequests(after)
	}
	if err := e.checkUpstream(r.Context(), r.Header, p); err != nil {
		return err
	}
	if p.Kind == domain.EndUser || p.Kind == domain.PublishableKey {
		if after := e.limiter.Session(address); after > 0 {
			return tooManySessionRequests(after)
		}
	}
	if p.Suspended && !strings.HasPrefix(x.operation.path, "/workspaces/") {
		return auth.WorkspaceSuspended()
	}
	if err := x.operation.authorize(p); err != nil {
		return err
	}
	return x.operation.authorizeRole(p)
}

// authorize returns an error if a valid credential may not call the operation.
func (o *operation) authorize(p domain.Principal) error {
	kinds := schemesOf(p)
	for _, kind := range kinds {
		if slices.Contains(o.accepts, kind) {
			return nil
		}
	}
	for _, kind := range kinds {
		if roaming, is := strings.CutSuffix(
			kind,
			withoutWorkspace,
		); is &&
			slices.Contains(o.accepts, roaming+withWorkspace) {
			return unauthorized("This credential is bound to no workspace; name one in the header seam-workspace")
		}
	}
	names := make([]string, len(o.accepts))
	for i, kind := range o.accepts {
		names[i] = schemeNames[kind]
	}
	message := "This credential is good, but not for this operation."
	if len(kinds) > 0 {
		message = fmt.Sprintf(
			"This operation cannot be called with %s. Call it with %s",
			schemeNames[kinds[0]],
			strings.Join(names, ", or "),
		)
	}
	return &failure{status: http.StatusForbidden, kind: "forbidden", message: message}
}

func unauthorized(message string) *failure {
	return &failure{status: http.StatusUnauthorized, kind: "unauthorized", message: message}
}

func badSessionToken(message string) *failure {
	return &failure{status: http.StatusBadRequest, kind: "invalid_client_session_token", message: message}
}
