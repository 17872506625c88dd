package traces

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is a part of a trace. The zero Span is none: its methods do nothing.
type Span struct{ span trace.Span }

// On says whether what is done with a context is told of. Who has to work for attributes asks before.
func On(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Begin begins a part of what is done with ctx, and calls another: a database, a vendor, an endpoint. It is none where
// what it would be a part of is not told of.
func Begin(ctx context.Context, name string, about ...Attribute) (context.Context, Span) {
	return begin(ctx, time.Time{}, trace.SpanKindClient, name, about)
}

// Since is a part that has begun earlier, and is no call.
func Since(ctx context.Context, begun time.Time, name string, about ...Attribute) Span {
	_, s := begin(ctx, begun, trace.SpanKindInternal, name, about)
	return s
}

func begin(ctx context.Context, at time.Time, kind trace.SpanKind, name string, about []Attribute) (context.Context, Span) {
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

// Of is the span that ctx is in.
func Of(ctx context.Context) Span {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span}
	}
	return Span{}
}

// On says whether the span is told of.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Begun says whether it was decided about the span, told of or not.
func (s Span) Begun() bool { return s.span != nil }

// In is ctx with the span in it: what is done with that is a part of it.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Set adds to what is told of the span.
func (s Span) Set(about ...Attribute) {
	if s.On() {
		s.span.SetAttributes(pairs(about)...)
	}
}

// Fail says that what the span is of has gone wrong, in a word.
func (s Span) Fail(word string) {
	if s.On() {
		s.span.SetAttributes(ErrorType(word).kv)
		s.span.SetStatus(codes.Error, "")
	}
}

// Note notes a moment within the span.
func (s Span) Note(what string, at time.Time) {
	if s.On() {
		s.span.AddEvent(what, trace.WithTimestamp(at))
	}
}

// End ends it.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Word is a word for why something was not done that was cut off, and other for anything else.
func Word(err error, other string) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return other
}
