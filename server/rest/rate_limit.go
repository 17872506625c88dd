package rest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// limitWorkspaces limits how fast a credential creates and resets workspaces. Each sandbox workspace has an account with new
// locks, and workspaces are never deleted. Rejected and replayed requests do not count.
func (e *edge) limitWorkspaces(next openapi.StrictHandlerFunc, operation string) openapi.StrictHandlerFunc {
	if operation != "CreateWorkspace" && operation != "ResetSandbox" {
		return next
	}
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		if after := e.limiter.Workspace(principal(ctx).CredentialID.String()); after > 0 {
			return nil, tooManyWorkspaces(after)
		}
		return next(ctx, w, r, request)
	}
}

// countRepeat counts a request if it has a key.
func (e *edge) countRepeat(x *requestContext, sender, workspaceID, content string) error {
	key := x.request.Header.Get(keyHeader)
	if !x.operation.keyed || key == "" {
		return nil
	}
	if id, err := uuid.Parse(workspaceID); err == nil { // normalize the spelling
		workspaceID = id.String()
	}
	after, unanswered := e.repeats.Admit(ratelimit.KeyRequest{
		Sender:      sender,
		WorkspaceID: workspaceID,
		Operation:   x.operation.path,
		Key:         key,
		Content:     content,
	})
	if x.unanswered = unanswered; after > 0 {
		return rateLimited(after, fmt.Sprintf("More than %d requests with this %s within a few seconds; "+
			"send it again, with the same key, after the time in the header Retry-After", ratelimit.MaxRepeats, keyHeader))
	}
	return nil
}

// queueFairly admits requests by fair queueing.
func (e *edge) queueFairly(next http.Handler) http.Handler {
	return admission.Middleware(
		next,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.fail(w, r, tooBusy()) }),
	)
}

// rateLimited is the error of a rate-limited request.
func rateLimited(after time.Duration, message string) *failure {
	return &failure{
		status:     http.StatusTooManyRequests,
		kind:       "too_many_requests",
		message:    message,
		retryAfter: int(math.Ceil(after.Seconds())),
	}
}

func tooManyFailures(after time.Duration) *failure {
	return rateLimited(
		after,
		fmt.Sprintf("Too many requests with invalid credentials from this address; try again in %d s with a valid one",
			int(math.Ceil(after.Seconds()))),
	)
}

func tooManyRequests(after time.Duration) *failure {
	return rateLimited(
		after,
		"Too many requests with this credential; try again after the time in the header Retry-After",
	)
}

func tooManySessionRequests(after time.Duration) *failure {
	return rateLimited(after, "Too many requests with client sessions and publishable keys from this address; "+
		"try again after the time in the header Retry-After")
}

func tooManyWorkspaces(after time.Duration) *failure {
	return rateLimited(after, "This credential creates or resets workspaces too fast; "+
		"use an existing one, or try again after the time in the header Retry-After")
}

// tooBusy is the error of a request that got no slot, because the client has too many concurrent requests.
func tooBusy() *failure {
	return rateLimited(time.Second, "Too many concurrent requests from this address, or unread responses; "+
		"read the responses, and send fewer requests concurrently")
}
