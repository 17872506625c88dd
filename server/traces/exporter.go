package traces

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// countingExporter exports spans. It bounds the queue, counts the outcome of each span, and logs when the collector
// starts to fail and when it recovers.
type countingExporter struct {
	sdktrace.SpanExporter
	log      *slog.Logger
	redacted *strings.Replacer
	limit    int64
	waiting  atomic.Int64 // queued or being sent

	sent, failed, dropped atomic.Uint64

	// used only by the sending goroutine
	failing       bool
	nextReport    time.Time // earliest next report
	reportedDrops uint64

	open  context.Context // ends when sending stops
	cut   context.CancelFunc
	ended chan struct{} // closed when the sending goroutine ends
}

const (
	reportInterval   = 10 * time.Minute
	closeTimeout     = time.Second
	maxProblemLength = 300
)

func newCountingExporter(to sdktrace.SpanExporter, o Options, log *slog.Logger) *countingExporter {
	hidden := []string{o.Endpoint, "the collector"}
	for _, s := range o.secrets {
		hidden = append(hidden, s, "***")
	}
	out := &countingExporter{
		SpanExporter: to,
		log:          log,
		redacted:     strings.NewReplacer(hidden...),
		limit:        int64(o.Queue),
		ended:        make(chan struct{}),
	}
	out.open, out.cut = context.WithCancel(context.Background())
	return out
}

// processor returns a processor for ended spans.
func (o *countingExporter) processor(opt Options) sdktrace.SpanProcessor {
	return queueLimiter{
		o,
		sdktrace.NewBatchSpanProcessor(
			o,
			sdktrace.WithMaxQueueSize(opt.Queue),
			sdktrace.WithMaxExportBatchSize(opt.Batch),
			sdktrace.WithBatchTimeout(opt.Interval),
		),
	}
}

// queueLimiter drops spans when the queue is full. The SDK's queue drops them too, but does not count them.
type queueLimiter struct {
	out *countingExporter
	sdktrace.SpanProcessor
}

// OnEnd queues or drops a span. It never blocks.
func (g queueLimiter) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.out.waiting.Add(1) > g.out.limit {
		g.out.waiting.Add(-1)
		g.out.dropped.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// ExportSpans sends spans and counts the outcome. It returns no error, because the SDK would write each error to
// standard error.
func (o *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer o.waiting.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.open, cancel)()
	err := o.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		o.failed.Add(uint64(len(spans)))
	} else {
		o.sent.Add(uint64(len(spans)))
	}
	o.report(err)
	return nil
}

func (o *countingExporter) report(err error) {
	dropped := o.dropped.Load()
	lost := slog.Group("lost", "failed", o.failed.Load(), "dropped", dropped)
	switch now := time.Now(); {
	case err == nil && o.failing:
		o.failing, o.reportedDrops = false, dropped
		o.log.Info("sending traces to the collector works again", lost)
	// limits the reports of a flapping collector, too
	case err != nil && now.After(o.nextReport):
		o.failing, o.nextReport, o.reportedDrops = true, now.Add(reportInterval), dropped
		o.log.Warn(
			"cannot send traces to the collector; the server continues without them",
			"error",
			o.problem(err),
			lost,
		)
	case dropped > o.reportedDrops && now.After(o.nextReport):
		o.nextReport, o.reportedDrops = now.Add(reportInterval), dropped
		o.log.Warn("dropped spans because the queue to the collector is full", lost)
	}
}

// problem returns the text of an error without secrets and without control characters from the collector, which could
// affect a terminal.
func (o *countingExporter) problem(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, o.redacted.Replace(err.Error()))
	return strings.ToValidUTF8(text[:min(len(text), maxProblemLength)], "")
}

// Shutdown is called by the SDK when everything was sent.
func (o *countingExporter) Shutdown(ctx context.Context) error {
	defer close(o.ended)
	return o.SpanExporter.Shutdown(ctx)
}

// close cancels sending and waits for its end.
func (o *countingExporter) close() {
	o.cut()
	select {
	case <-o.ended:
	case <-time.After(closeTimeout):
	}
}
