package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Sources are what is asked when metrics are.
type Sources struct {
	Backlog func(context.Context) (access.Backlog, error)
	Health  func() map[string]float64 // by part: 0 it is well, 1 something is late, 2 it is down
	Busy    func() map[string]int     // keys that this process works on, by lane
	Spans   func() map[string]uint64  // of traces, that have come to their end, by what became of them; nil: there are no traces
	Log     *slog.Logger
}

const (
	keepFor   = 5 * time.Second // how old an answer of the database may be
	askWithin = 5 * time.Second
)

// backlog shows what waits. Many who ask cost the database no more than one.
type backlog struct {
	Sources
	mu   sync.Mutex
	at   time.Time
	last access.Backlog
	err  error
}

func newBacklog(s Sources) *backlog { return &backlog{Sources: s} }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("deviceaccess_"+name, help, labels, nil)
}

var (
	pending   = describe("webhook_deliveries_pending", "Deliveries to be made, due now or later, by whether the last attempt at their endpoint succeeded. Counted to 100,000.", "endpoint")
	oldestDue = describe("webhook_oldest_due_seconds", "For how long the delivery waits that has been due for longest, by the same; slow are healthy ones that are sent others meanwhile.", "endpoint")
	disabled  = describe("webhooks_disabled", "Webhooks that nothing is sent to any more.")
	outbox    = describe("outbox_events", "Events that no webhook has been given yet. Counted to 100,000.")
	oldest    = describe("outbox_oldest_seconds", "For how long the oldest of these events waits.")
	jobs      = describe("jobs_available", "Wake-ups in the queue that nobody has taken, by lane. Counted to 100,000.", "lane")
	busy      = describe("keys_busy", "Keys that this process works on, by lane.", "lane")
	healthDesc    = describe("health", "What /health says of each part: 0 it is well, 1 something is late, 2 it is down.", "part")
	spans     = describe("trace_spans_total", "Spans of traces by outcome: sent, failed (the collector did not take them), or dropped (the queue was full).", "outcome")
	up        = describe("database_up", "Whether the database told what waits: 1 or 0.")
)

func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pending, oldestDue, disabled, outbox, oldest, jobs, busy, healthDesc, spans, up} {
		out <- d
	}
}

func (b *backlog) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for lane, n := range b.Busy() {
		gauge(busy, float64(n), lane)
	}
	for part, status := range b.Health() {
		gauge(healthDesc, status, part)
	}
	if b.Spans != nil {
		for outcome, n := range b.Spans() {
			out <- prometheus.MustNewConstMetric(spans, prometheus.CounterValue, float64(n), outcome)
		}
	}
	now, err := b.ask()
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	for endpoint, e := range map[string]access.EndpointBacklog{"healthy": now.Healthy, "failing": now.Failing} {
		gauge(pending, float64(e.Pending), endpoint)
		gauge(oldestDue, e.OldestDue.Seconds(), endpoint)
	}
	gauge(oldestDue, now.Slow.Seconds(), "slow")
	gauge(disabled, float64(now.Disabled))
	gauge(outbox, float64(now.Outbox))
	gauge(oldest, now.OldestOutbox.Seconds())
	for lane, n := range now.Jobs {
		gauge(jobs, float64(n), lane)
	}
}

func (b *backlog) ask() (access.Backlog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) < keepFor {
		return b.last, b.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	b.last, b.err = b.Backlog(ctx)
	b.at = time.Now()
	if b.err != nil {
		b.Log.Warn("metrics are without what waits in the database", "error", b.err)
	}
	return b.last, b.err
}
