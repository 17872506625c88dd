package rest

import (
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// beginSpan starts the span of an authenticated request. The span records when the request got its slot, and how long
// authentication took.
func (e *edge) beginSpan(x *requestContext, r *http.Request) {
	if e.traces == nil {
		return
	}
	x.span = e.traces.Request(r.Context(), r.Header, x.begun, r.Method, x.operation.path)
	x.span.AddEvent("its turn has come", x.turn)
	x.span.AddEvent("the credential is good", time.Now())
}

// endSpan ends the span with the result of the request. Public operations have no span, because load balancers call
// them constantly.
func (e *edge) endSpan(x *requestContext, route string) {
	if e.traces == nil {
		return
	}
	if public := x.operation != nil && x.operation.public; !public && !x.span.Decided() {
		x.span = e.traces.UnauthenticatedRequest(x.request.Context(), x.begun, x.request.Method, route)
	}
	if !x.span.Recording() {
		return
	}
	x.span.Set(traces.Status(x.status), traces.RequestID(x.id), traces.Workspace(x.principal.WorkspaceID))
	if x.Header().Get(replayedHeader) != "" {
		x.span.Set(traces.Replayed(true))
	}
	switch {
	case x.status >= http.StatusInternalServerError:
		x.span.Fail(x.failure)
	case x.failure != "":
		x.span.Set(traces.ErrorType(x.failure))
	}
	x.span.End()
}
