package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
)

// Sources are the functions that New's metrics call on each scrape.
type Sources struct {
	// Backlog returns the work that waits in the database.
	Backlog func(context.Context) (health.Backlog, error)
	// Calls returns what the limits of vendors leave to accounts, at most MaxAccounts of them; nil if there are no limits.
	Calls func(context.Context) ([]AccountCalls, error)
	// Health returns the state of each part: 0 healthy, 1 degraded, 2 down.
	Health func() map[string]float64
	// Busy returns the number of keys that this process is working on, by lane.
	Busy func() map[string]int
	// Spans returns the ended spans by outcome; nil if traces are disabled.
	Spans func() map[string]uint64
	// Certificate returns when the TLS certificate expires; nil without TLS.
	Certificate func() time.Time
	// Inventory counts devices, accounts, codes, and users.
	Inventory InventorySources
	// Log receives failures to read the database.
	Log *slog.Logger
}

// AccountCalls says how many calls the limit of a vendor leaves to an account now.
type AccountCalls struct {
	// Account is the identifier of the account, and Vendor the name of its adapter.
	Account, Vendor string
	Left            float64
}

// MaxAccounts bounds the accounts in labels.
const MaxAccounts = 1000

const (
	backlogTTL     = 5 * time.Second // how long a backlog is cached
	backlogTimeout = 5 * time.Second
)

// backlog collects the metrics of waiting work. It caches them, so that many scrapes cost the database one query.
type backlog struct {
	Sources
	mu   sync.Mutex
	at   time.Time
	last health.Backlog
	err  error

	calls []AccountCalls
}

func newBacklog(s Sources) *backlog { return &backlog{Sources: s} }

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
	callsLeft = describe(
		"account_calls_left",
		"Calls that the limit of the vendor leaves to an account now; 0 while the vendor refuses calls. At most 1,000 "+
			"accounts, those with the fewest calls.",
		"account", "vendor",
	)
	up = describe("database_up", "1 if the database answered the query of waiting work, otherwise 0.")
)

func (b *backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pending, oldestDue, disabled, outbox, oldest, jobs, busy, healthDesc, spans, up, callsLeft} {
		out <- d
	}
}

func (b *backlog) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	lanes := b.Busy()
	for lane, n := range lanes {
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
	now, calls, err := b.read()
	for _, c := range calls {
		gauge(callsLeft, c.Left, c.Account, c.Vendor)
	}
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
	for lane := range lanes { // also those without wake-ups
		gauge(jobs, float64(now.Jobs[lane]), lane)
	}
}

func (b *backlog) read() (health.Backlog, []AccountCalls, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) < backlogTTL {
		return b.last, b.calls, b.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	b.last, b.err = b.Backlog(ctx)
	b.at = time.Now()
	if b.err != nil {
		b.Log.Warn("cannot read the backlog for the metrics", "error", b.err)
	}
	b.calls = nil
	if b.err == nil && b.Calls != nil {
		var err error
		if b.calls, err = b.Calls(ctx); err != nil {
			b.Log.Warn("cannot read the calls left to accounts for the metrics", "error", err)
		}
	}
	return b.last, b.calls, b.err
}
