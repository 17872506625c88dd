package traces

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request begins the span of a request that has come at begun with a credential that is good: it is a part of the
// caller's trace, where the header traceparent names one, and told of where the caller's is. What else callers can send
// (tracestate, baggage) is passed over: it would be a header's value in a trace.
func (t *Traces) Request(ctx context.Context, header http.Header, begun time.Time, verb, route string) Span {
	if t == nil {
		return Span{}
	}
	return t.serve(remote(ctx, header), begun, verb, route)
}

// Stranger is Request for one without such a credential. It has no say in whether it is told of, and there are no more
// than ten of them a second: whoever likes could fill the queue else.
func (t *Traces) Stranger(ctx context.Context, begun time.Time, verb, route string) Span {
	if t == nil || !t.strangers.Allow() {
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

// remote is ctx in the span that the caller names.
func remote(ctx context.Context, header http.Header) context.Context {
	named := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header)))
	if !named.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, named.WithTraceState(trace.TraceState{}))
}
