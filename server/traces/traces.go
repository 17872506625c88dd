// Package traces tells an OpenTelemetry collector how long the parts of a request, and of the work that it has led to,
// have taken. There are none unless somebody has named a collector: then everything here does nothing, at the cost of
// one look into a context.
//
// All rooms may begin spans; what can be told of them is in attributes.go and nowhere else. No other package speaks to
// OpenTelemetry, so that nothing gets into a trace by itself: no text of an error, no URL, no argument, no header.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/google/uuid"
)

// Traces are those of one server. Nil is a server without traces: its methods may be called and do nothing.
type Traces struct {
	tracer    trace.Tracer
	provider  *sdktrace.TracerProvider
	out       *outlet
	strangers *rate.Limiter
}

const (
	flushWithin = 5 * time.Second // when the server stops
	// strangersPerSecond are the requests without a good credential that are told of. They must not fill the queue, in
	// which there would be no place for the requests of others.
	strangersPerSecond = 10
	longestValue       = 256 // characters of an attribute
)

// New begins to send spans, until Stop. It returns nil where no collector is named. It does not wait for the collector,
// nor fail when there is none.
func New(ctx context.Context, o Options, log *slog.Logger) (*Traces, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	o = o.withDefaults()
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	// Never what the SDK's detectors find: the arguments of the process may hold the master key.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("deviceaccess-server"), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(uuid.NewString())), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES cannot be read; they are written like deployment.environment.name=production,region=north, with other characters as %%2C")
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithMaxResponseSize(64<<10))
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	t := &Traces{out: newOutlet(exporter, o, log), strangers: rate.NewLimiter(strangersPerSecond, strangersPerSecond)}
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > longestValue {
		limits.AttributeValueLengthLimit = longestValue
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits), sdktrace.WithSpanProcessor(t.out.processor(o))}
	if o.Sampler != nil {
		options = append(options, sdktrace.WithSampler(o.Sampler))
	}
	t.provider = sdktrace.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer(scope)
	return t, nil
}

// Stop sends what is left. It takes six seconds at most, whatever the collector does.
func (t *Traces) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	// Also when ctx has ended: what was cut off is what somebody will want to look at.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	t.out.close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // it has been counted, and told in the log
	}
	return err
}

// Figures count the spans that have come to their end since the start, by what became of them.
func (t *Traces) Figures() map[string]uint64 {
	if t == nil {
		return map[string]uint64{"sent": 0, "failed": 0, "dropped": 0}
	}
	return map[string]uint64{"sent": t.out.sent.Load(), "failed": t.out.failed.Load(), "dropped": t.out.dropped.Load()}
}
