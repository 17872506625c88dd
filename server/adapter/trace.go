package adapter

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Trace begins the span of a call of a vendor over HTTP. Of its path only words are told, and that there is something
// else; the call itself carries none of it.
func Trace(ctx context.Context, vendor, base, method, path string, words []string) (context.Context, traces.Span) {
	if !traces.On(ctx) {
		return ctx, traces.Span{}
	}
	pattern := traces.Pattern(path, words...)
	return traces.Begin(ctx, method+" "+pattern, append(traces.At(base), traces.Adapter(vendor), traces.Method(method), traces.Operation(pattern))...)
}

// TraceCommand begins the span of a command to a gateway. Command is a word of the gateway's protocol.
func TraceCommand(ctx context.Context, vendor, address, command string) (context.Context, traces.Span) {
	if !traces.On(ctx) {
		return ctx, traces.Span{}
	}
	return traces.Begin(ctx, command, append(traces.At(address), traces.Adapter(vendor), traces.Operation(command))...)
}

// Traced ends the span of a call that has failed with err.
func Traced(span traces.Span, err error) {
	if err != nil && span.On() {
		span.Fail(traces.Word(err, string(ClassOf(err))))
	}
	span.End()
}
