// Package metrics exposes the server's state to Prometheus. Counters and histograms are those of this process. Waiting
// work, devices, and codes are counted in the shared database. No label may be a secret. Only the metrics of single
// devices and of the accounts whose vendors limit calls (MaxAccounts) have identifiers as labels.
package metrics

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of one server.
type Metrics struct {
	registry       *prometheus.Registry
	attempts       *prometheus.CounterVec
	attemptSeconds *prometheus.HistogramVec
	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
}

var (
	attemptsTotal = define(
		"webhook_attempts_total",
		"Delivery attempts by outcome: delivered, retry (the server retries it), given_up, or gone (the endpoint answered "+
			"410).",
		"outcome",
	)
	attemptSeconds = define(
		"webhook_attempt_seconds",
		"Response time of webhooks, by whether they accepted the event: success or failure.",
		"result",
	)
	requestsTotal = define(
		"http_requests_total",
		"Requests to the API by operation (the path) and HTTP status. 499: the client closed the connection, no failure here.",
		"operation",
		"status",
	)
	certificateExpiry = define(
		"tls_certificate_expiry_timestamp_seconds",
		"Unix time when the certificate of --tls-cert expires; infinite without TLS.",
	)
	requestSeconds = define("http_request_seconds", "Duration of requests to the API, by operation.", "operation")
)

// New creates the metrics that Attempt and Request count, and those of sources.
func New(sources Sources) *Metrics {
	m := &Metrics{
		registry:       prometheus.NewRegistry(),
		attempts:       attemptsTotal.counter(),
		attemptSeconds: attemptSeconds.histogram([]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}),
		requests:       requestsTotal.counter(),
		requestSeconds: requestSeconds.histogram([]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}),
	}
	certificate := certificateExpiry.gauge(func() float64 {
		if sources.Certificate == nil {
			return math.Inf(1)
		}
		return float64(sources.Certificate().Unix())
	})
	m.registry.MustRegister(m.attempts, m.attemptSeconds, m.requests, m.requestSeconds, newBacklog(sources),
		newInventory(sources.Inventory, sources.Log), certificate,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, outcome := range []string{"delivered", "retry", "given_up", "gone"} {
		// so that the first one counts as an increase
		m.attempts.WithLabelValues(outcome)
	}
	return m
}

// Attempt counts a delivery attempt to a webhook, and its duration.
func (m *Metrics) Attempt(outcome string, took time.Duration) {
	m.attempts.WithLabelValues(outcome).Inc()
	result := "failure"
	if outcome == "delivered" {
		result = "success"
	}
	m.attemptSeconds.WithLabelValues(result).Observe(took.Seconds())
}

// Request counts a request to the API, and its duration.
func (m *Metrics) Request(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Handler returns a handler for GET /metrics.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(
		"GET /metrics",
		promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}),
	)
	return mux
}
