package traces

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// Cause is the span that causes later work in this process. The zero Cause is none.
type Cause struct {
	span  trace.SpanContext
	depth int
}

// maxDepth is the maximum depth of works that cause each other: a request's work on a device, its event, its delivery,
// and one more. Without it, works that cause each other forever would be one endless trace.
const maxDepth = 4

type depthKey struct{}

// CauseOf returns the span of ctx as a Cause.
func CauseOf(ctx context.Context) Cause {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return Cause{}
	}
	depth, _ := ctx.Value(depthKey{}).(int)
	return Cause{span, depth}
}

// Valid reports whether there is a cause.
func (c Cause) Valid() bool { return c.span.IsValid() }

// Work starts the span of a piece of work. Its parent is the first cause, and it links to the others. Without causes it
// starts a trace.
func (t *Traces) Work(ctx context.Context, lane string, id uuid.UUID, causes []Cause) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(pairs([]Attribute{Lane(lane), Key(lane, id)})...),
	}
	depth := 1
	for i, c := range causes {
		if i == 0 && c.depth < maxDepth {
			ctx, depth = trace.ContextWithSpanContext(ctx, c.span), c.depth+1
		} else {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: c.span}))
		}
	}
	ctx, span := t.tracer.Start(ctx, "work "+lane, options...)
	return context.WithValue(ctx, depthKey{}, depth), Span{span}
}
