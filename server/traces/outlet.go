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

// outlet is where spans leave: it keeps no more than a queue of them, counts what becomes of each, and says in the log
// when the collector begins to fail and when it takes spans again.
type outlet struct {
	sdktrace.SpanExporter
	log      *slog.Logger
	redacted *strings.Replacer
	limit    int64
	waiting  atomic.Int64 // in the queue, or being sent

	sent, failed, dropped atomic.Uint64

	// of the one goroutine that sends
	failing   bool
	complain  time.Time // not before
	saidDrops uint64

	open  context.Context // ends when nothing is sent any more
	cut   context.CancelFunc
	ended chan struct{} // closed when that goroutine has come to its end
}

const (
	complainEvery = 10 * time.Minute
	closeWithin   = time.Second
	problemSize   = 300
)

func newOutlet(to sdktrace.SpanExporter, o Options, log *slog.Logger) *outlet {
	hidden := []string{o.Endpoint, "the collector"}
	for _, s := range o.secrets {
		hidden = append(hidden, s, "***")
	}
	out := &outlet{SpanExporter: to, log: log, redacted: strings.NewReplacer(hidden...), limit: int64(o.Queue), ended: make(chan struct{})}
	out.open, out.cut = context.WithCancel(context.Background())
	return out
}

// processor takes spans that have ended.
func (o *outlet) processor(opt Options) sdktrace.SpanProcessor {
	return gate{o, sdktrace.NewBatchSpanProcessor(o, sdktrace.WithMaxQueueSize(opt.Queue), sdktrace.WithMaxExportBatchSize(opt.Batch), sdktrace.WithBatchTimeout(opt.Every))}
}

// gate lets no more spans into the queue than it has room for. The queue would drop the others by itself, but not say how
// many.
type gate struct {
	out *outlet
	sdktrace.SpanProcessor
}

// OnEnd never waits.
func (g gate) OnEnd(s sdktrace.ReadOnlySpan) {
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

// ExportSpans never fails: the SDK would write each failure to standard error.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
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
	o.tell(err)
	return nil
}

func (o *outlet) tell(err error) {
	dropped := o.dropped.Load()
	lost := slog.Group("lost", "failed", o.failed.Load(), "dropped", dropped)
	switch now := time.Now(); {
	case err == nil && o.failing:
		o.failing, o.saidDrops = false, dropped
		o.log.Info("the collector takes traces again", lost)
	case err != nil && now.After(o.complain): // also one that comes and goes says so seldom
		o.failing, o.complain, o.saidDrops = true, now.Add(complainEvery), dropped
		o.log.Warn("the collector does not take traces; the server goes on without them", "problem", o.problem(err), lost)
	case dropped > o.saidDrops && now.After(o.complain):
		o.complain, o.saidDrops = now.Add(complainEvery), dropped
		o.log.Warn("there are more traces than the collector takes, and some are dropped", lost)
	}
}

// problem is what went wrong, without what is secret, and without what the collector has sent for the terminal of whoever
// reads it.
func (o *outlet) problem(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, o.redacted.Replace(err.Error()))
	return strings.ToValidUTF8(text[:min(len(text), problemSize)], "")
}

// Shutdown is called by the SDK when nothing more is sent.
func (o *outlet) Shutdown(ctx context.Context) error {
	defer close(o.ended)
	return o.SpanExporter.Shutdown(ctx)
}

// close cuts off what is being sent, and waits for the end of that.
func (o *outlet) close() {
	o.cut()
	select {
	case <-o.ended:
	case <-time.After(closeWithin):
	}
}
