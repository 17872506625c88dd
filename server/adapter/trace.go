package adapter

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// StartSpan starts the span of an HTTP call to a vendor. The span contains only the known words of the path and
// placeholders for the rest; the request carries no trace headers.
func StartSpan(ctx context.Context, vendor, base, method, path string, words []string) (context.Context, traces.Span) {
	if !traces.Recording(ctx) {
		return ctx, traces.Span{}
	}
	pattern := traces.Pattern(path, words...)
	return traces.Start(ctx, method+" "+pattern,
		append(traces.ServerAddress(base), traces.Adapter(vendor), traces.Method(method), traces.Operation(pattern))...)
}

// StartCommandSpan starts the span of a command to a gateway. command is a word of the gateway's protocol.
func StartCommandSpan(ctx context.Context, vendor, address, command string) (context.Context, traces.Span) {
	if !traces.Recording(ctx) {
		return ctx, traces.Span{}
	}
	return traces.Start(
		ctx,
		command,
		append(traces.ServerAddress(address), traces.Adapter(vendor), traces.Operation(command))...)
}

// EndSpan ends the span of a call. err is the result of the call.
func EndSpan(span traces.Span, err error) {
	if err != nil && span.Recording() {
		span.Fail(traces.ErrorWord(err, string(ClassOf(err))))
	}
	span.End()
}
