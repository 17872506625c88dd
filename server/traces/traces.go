// Package traces sends spans of requests, and of the work they cause, to an OpenTelemetry collector. Without a
// collector it does nothing, at the cost of one context lookup.
//
// Every package may start spans. Only the attributes in attributes.go exist. No other package uses OpenTelemetry, so
// that no error text, URL, argument, or header reaches a trace accidentally.
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

// Traces sends the spans of one server. The methods of a nil *Traces do nothing.
type Traces struct {
	tracer          trace.Tracer
	provider        *sdktrace.TracerProvider
	exporter        *countingExporter
	unauthenticated *rate.Limiter
}

const (
	flushTimeout = 5 * time.Second // for Stop
	// unauthenticatedPerSecond limits the traced requests without a valid credential, which must not crowd out other
	// spans.
	unauthenticatedPerSecond = 10
	maxValueLength           = 256 // characters of an attribute
)

// New starts sending spans, until Stop. It returns nil if no collector is configured. It does not wait for the
// collector, and succeeds if there is none.
func New(ctx context.Context, o Options, log *slog.Logger) (*Traces, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	o = o.withDefaults()
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	// Never use the SDK's detectors: the arguments of the process may contain the master key.
	about, err := resource.New(
		ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			semconv.ServiceName("deviceaccess-server"),
			semconv.ServiceVersion(o.Version),
			semconv.ServiceInstanceID(uuid.NewString()),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf(
			"OTEL_RESOURCE_ATTRIBUTES is invalid; write it like " +
				"deployment.environment.name=production,region=north, with other characters as %%2C",
		)
	}
	exporter, err := otlptracehttp.New(
		ctx,
		otlptracehttp.WithEndpointURL(o.Endpoint),
		otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithMaxResponseSize(64<<10),
	)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	t := &Traces{
		exporter:        newCountingExporter(exporter, o, log),
		unauthenticated: rate.NewLimiter(unauthenticatedPerSecond, unauthenticatedPerSecond),
	}
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxValueLength {
		limits.AttributeValueLengthLimit = maxValueLength
	}
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(about),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(t.exporter.processor(o)),
	}
	if o.Sampler != nil {
		options = append(options, sdktrace.WithSampler(o.Sampler))
	}
	t.provider = sdktrace.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer(scope)
	return t, nil
}

// Stop sends the remaining spans. It takes at most six seconds.
func (t *Traces) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	// Send them even if ctx has ended: the interrupted work is worth a look.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	t.exporter.close()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // counted and logged already
	}
	return err
}

// Counts returns the number of ended spans by outcome: sent, failed, or dropped.
func (t *Traces) Counts() map[string]uint64 {
	if t == nil {
		return map[string]uint64{"sent": 0, "failed": 0, "dropped": 0}
	}
	return map[string]uint64{
		"sent":    t.exporter.sent.Load(),
		"failed":  t.exporter.failed.Load(),
		"dropped": t.exporter.dropped.Load(),
	}
}
