// Package metrics exposes the server's state to Prometheus. Counters and histograms are those of this process. Waiting
// work is read from the shared database on each scrape. No label may be an identifier or a secret,
// except the identifiers of the accounts whose vendors limit calls (MaxAccounts).
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

// New creates the metrics that Attempt and Request count, and those of sources.
func New(sources Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deviceaccess_webhook_attempts_total",
			Help: "Delivery attempts by outcome: delivered, retry (the server retries it), given_up, or gone (the " +
				"endpoint answered 410).",
		}, []string{"outcome"}),
		attemptSeconds: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{
				Name:    "deviceaccess_webhook_attempt_seconds",
				Help:    "Response time of webhooks, by whether they accepted the event.",
				Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
			},
			[]string{"result"},
		),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deviceaccess_http_requests_total",
			Help: "Requests to the API by operation (the path) and HTTP status.",
		}, []string{"operation", "status"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "deviceaccess_http_request_seconds",
			Help:    "Duration of requests to the API, by operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}, []string{"operation"}),
	}
	certificate := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "deviceaccess_tls_certificate_expiry_timestamp_seconds",
		Help: "When the TLS certificate expires, in seconds since 1970; infinite without one.",
	}, func() float64 {
		if sources.Certificate == nil {
			return math.Inf(1)
		}
		return float64(sources.Certificate().Unix())
	})
	m.registry.MustRegister(m.attempts, m.attemptSeconds, m.requests, m.requestSeconds, newBacklog(sources),
		certificate, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
