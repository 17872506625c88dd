package rest

import (
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// beginSpan has what is done from here on told of, as a part of the request: who asks is known now. When its turn had come,
// and how long his credential took, are moments of it.
func (e *edge) beginSpan(x *exchange, r *http.Request) {
	if e.traces == nil {
		return
	}
	x.span = e.traces.Request(r.Context(), r.Header, x.begun, r.Method, x.operation.path)
	x.span.Note("its turn has come", x.turn)
	x.span.Note("the credential is good", time.Now())
}

// endSpan tells what has come of the request. Of what needs no credential nothing is told: balancers ask for the health all
// the time.
func (e *edge) endSpan(x *exchange, route string) {
	if e.traces == nil {
		return
	}
	if public := x.operation != nil && x.operation.public; !public && !x.span.Begun() {
		x.span = e.traces.Stranger(x.request.Context(), x.begun, x.request.Method, route)
	}
	if !x.span.On() {
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
