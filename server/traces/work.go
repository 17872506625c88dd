package traces

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
)

// Cause is what asks for work that is done later, in this process. The zero Cause is none.
type Cause struct {
	span  trace.SpanContext
	depth int
}

// deepest is how many works may be parts of each other: what a request asks for of a device, the event of that, its
// delivery, and one more. Works that ask for each other without end would be one trace without end.
const deepest = 4

type depthKey struct{}

// CauseOf is what ctx is told of, as the cause of what is asked for with it.
func CauseOf(ctx context.Context) Cause {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return Cause{}
	}
	depth, _ := ctx.Value(depthKey{}).(int)
	return Cause{span, depth}
}

// Is says whether there is one.
func (c Cause) Is() bool { return c.span.IsValid() }

// Work begins the span of a piece of work. It is a part of the first of its causes, and linked with the others; without
// any it is a trace of its own.
func (t *Traces) Work(ctx context.Context, lane string, id uuid.UUID, causes []Cause) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(pairs([]Attribute{Lane(lane), Key(lane, id)})...)}
	depth := 1
	for i, c := range causes {
		if i == 0 && c.depth < deepest {
			ctx, depth = trace.ContextWithSpanContext(ctx, c.span), c.depth+1
		} else {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: c.span}))
		}
	}
	ctx, span := t.tracer.Start(ctx, "work "+lane, options...)
	return context.WithValue(ctx, depthKey{}, depth), Span{span}
}
