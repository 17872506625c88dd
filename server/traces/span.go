package traces

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a span of a trace. The methods of the zero Span do nothing.
type Span struct{ span trace.Span }

// Recording reports whether work with ctx is traced. Callers check it before they compute expensive attributes.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Start starts a span for a call to a database, a vendor, or an endpoint. It returns the zero Span if ctx is not
// traced.
func Start(ctx context.Context, name string, about ...Attribute) (context.Context, Span) {
	return start(ctx, time.Time{}, trace.SpanKindClient, name, about)
}

// Record starts a span, with an earlier start time, for internal work.
func Record(ctx context.Context, begun time.Time, name string, about ...Attribute) Span {
	_, s := start(ctx, begun, trace.SpanKindInternal, name, about)
	return s
}

func start(
	ctx context.Context,
	at time.Time,
	kind trace.SpanKind,
	name string,
	about []Attribute,
) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(pairs(about)...)}
	if !at.IsZero() {
		options = append(options, trace.WithTimestamp(at))
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, options...)
	return ctx, Span{span}
}

const scope = "github.com/deviceaccess/terraform-provider-deviceaccess/server"

func pairs(about []Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(about))
	for _, a := range about {
		if a.kv.Valid() {
			out = append(out, a.kv)
		}
	}
	return out
}

// FromContext returns the span of ctx.
func FromContext(ctx context.Context) Span {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span}
	}
	return Span{}
}

// Recording reports whether the span is recorded.
func (s Span) Recording() bool { return s.span != nil && s.span.IsRecording() }

// Decided reports whether sampling has decided about the span, recorded or not.
func (s Span) Decided() bool { return s.span != nil }

// NewContext returns ctx with the span, for work that belongs to it.
func (s Span) NewContext(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Set adds attributes to the span.
func (s Span) Set(about ...Attribute) {
	if s.Recording() {
		s.span.SetAttributes(pairs(about)...)
	}
}

// Fail marks the span as failed, with a word for the reason.
func (s Span) Fail(word string) {
	if s.Recording() {
		s.span.SetAttributes(ErrorType(word).kv)
		s.span.SetStatus(codes.Error, "")
	}
}

// AddEvent adds an event at a time within the span.
func (s Span) AddEvent(what string, at time.Time) {
	if s.Recording() {
		s.span.AddEvent(what, trace.WithTimestamp(at))
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// ErrorWord returns canceled or timeout for a context error, and other for any other error.
func ErrorWord(err error, other string) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return other
}
