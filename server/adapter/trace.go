package adapter

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// StartSpan starts the span of an HTTP call to a vendor. The span contains only the known words of the path and
// placeholders for the rest; the request carries no trace headers.
func Trace(ctx context.Context, vendor, base, method, path string, words []string) (context.Context, traces.Span) {
	if !traces.On(ctx) {
		return ctx, traces.Span{}
	}
	pattern := traces.Pattern(path, words...)
	return traces.Begin(ctx, method+" "+pattern,
		append(traces.At(base), traces.Adapter(vendor), traces.Method(method), traces.Operation(pattern))...)
}

// StartCommandSpan starts the span of a command to a gateway. command is a word of the gateway's protocol.
func TraceCommand(ctx context.Context, vendor, address, command string) (context.Context, traces.Span) {
	if !traces.On(ctx) {
		return ctx, traces.Span{}
	}
	return traces.Begin(ctx, command, append(traces.At(address), traces.Adapter(vendor), traces.Operation(command))...)
}

// EndSpan ends the span of a call. err is the result of the call.
func Traced(span traces.Span, err error) {
	if err != nil && span.On() {
		span.Fail(traces.Word(err, string(ClassOf(err))))
	}
	span.End()
}
