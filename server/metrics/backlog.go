package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
)

// Sources are the functions that New's metrics call on each scrape.
type Sources struct {
	// Backlog returns the work that waits in the database.
	Backlog func(context.Context) (health.Backlog, error)
	// Health returns the state of each part: 0 healthy, 1 degraded, 2 down.
	Health func() map[string]float64
	// Busy returns the number of keys that this process is working on, by lane.
	Busy func() map[string]int
	// Spans returns the ended spans by outcome; nil if traces are disabled.
	Spans func() map[string]uint64
	// Inventory counts devices, accounts, codes, and users.
	Inventory InventorySources
	// Log receives failures to read the database.
	Log *slog.Logger
}

const (
	backlogTTL   = 5 * time.Second // how long a backlog is cached
	queryTimeout = 5 * time.Second // of the queries of a scrape
)

// backlog collects the metrics of waiting work.
type backlog struct {
	Sources
	waiting *cached[health.Backlog]
}

func newBacklog(s Sources) *backlog {
	b := &backlog{Sources: s}
	b.waiting = &cached[health.Backlog]{ttl: backlogTTL, read: b.read}
	return b
}

var (
	pending = describe(
		"webhook_deliveries_pending",
		"Pending deliveries, due now or later, by whether the last attempt at their endpoint succeeded. Counted to "+
			"100,000.",
		"endpoint",
	)
	oldestDue = describe(
		"webhook_oldest_due_seconds",
		"Age of the longest overdue delivery, by state of its endpoint. Slow: healthy endpoints that are receiving "+
			"other deliveries meanwhile.",
		"endpoint",
	)
	disabled = describe("webhooks_disabled", "Disabled webhooks, which receive no deliveries.")
	outbox   = describe("outbox_events", "Events without fan-out to webhooks yet. Counted to 100,000.")
	oldest   = describe("outbox_oldest_seconds", "Age of the oldest event in the outbox.")
	jobs     = describe("wakeups_queued", "Queued wake-ups, by lane. Counted to 100,000.", "lane")
	busy     = describe(
		"work_in_progress",
		"Devices, accounts, and endpoints that this process is working on, by lane.",
		"lane",
	)
	healthDesc = describe("health", "State of each part as in /health: 0 healthy, 1 degraded, 2 down.", "part")
	spans      = describe(
		"trace_spans_total",
		"Spans of traces by outcome: sent, failed (the collector rejected them), or dropped (the queue was full).",
		"outcome",
	)
	up = describe("database_up", "1 if the database answered the query of waiting work, otherwise 0.")
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
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	now, err := b.waiting.get(ctx)
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	for endpoint, e := range map[string]health.EndpointBacklog{"healthy": now.Healthy, "failing": now.Failing} {
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

func (b *backlog) read(ctx context.Context) (health.Backlog, error) {
	waiting, err := b.Backlog(ctx)
	if err != nil {
		b.Log.Warn("cannot read the backlog for the metrics", "error", err)
	}
	return waiting, err
}
