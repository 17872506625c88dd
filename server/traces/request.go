package traces

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request starts the span of a request that arrived at begun with a valid credential. If the header traceparent names a
// trace, the span belongs to it, and the caller's sampling decision applies. Other propagated values (tracestate,
// baggage) are ignored, because they would put header values into a trace.
func (t *Traces) Request(ctx context.Context, header http.Header, begun time.Time, verb, route string) Span {
	if t == nil {
		return Span{}
	}
	return t.serve(remote(ctx, header), begun, verb, route)
}

// UnauthenticatedRequest is Request for a request without a valid credential. It ignores traceparent, and at most ten
// such requests per second are traced. Otherwise any client could fill the queue.
func (t *Traces) UnauthenticatedRequest(ctx context.Context, begun time.Time, verb, route string) Span {
	if t == nil || !t.unauthenticated.Allow() {
		return Span{}
	}
	return t.serve(ctx, begun, verb, route)
}

func (t *Traces) serve(ctx context.Context, begun time.Time, verb, route string) Span {
	verb = method(verb)
	_, span := t.tracer.Start(ctx, verb+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(begun),
		trace.WithAttributes(Method(verb).kv, Route(route).kv))
	return Span{span}
}

// remote returns ctx with the span that traceparent names.
func remote(ctx context.Context, header http.Header) context.Context {
	named := trace.SpanContextFromContext(
		propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header)),
	)
	if !named.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, named.WithTraceState(trace.TraceState{}))
}
