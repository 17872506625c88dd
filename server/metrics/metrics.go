// Package metrics tells Prometheus how the server does. Counters and histograms are of this process; what waits is
// read from the database that all instances share, when it is asked for. No label is an identifier or a secret.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are those of one server.
type Metrics struct {
	registry       *prometheus.Registry
	attempts       *prometheus.CounterVec
	attemptSeconds *prometheus.HistogramVec
	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
}

// New makes metrics of what is told to it and of what sources know.
func New(sources Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "deviceaccess_webhook_attempts_total",
			Help: "Requests to webhooks by outcome: delivered, retry (it will be tried again), given_up, or gone (the endpoint answered 410)."}, []string{"outcome"}),
		attemptSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "deviceaccess_webhook_attempt_seconds",
			Help: "How long webhooks took to answer, by whether they took the event.", Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}}, []string{"result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "deviceaccess_http_requests_total",
			Help: "Requests to the API by operation (the path) and HTTP status."}, []string{"operation", "status"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "deviceaccess_http_request_seconds",
			Help: "How long requests to the API took, by operation.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}, []string{"operation"}),
	}
	m.registry.MustRegister(m.attempts, m.attemptSeconds, m.requests, m.requestSeconds, newBacklog(sources),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, outcome := range []string{"delivered", "retry", "given_up", "gone"} {
		m.attempts.WithLabelValues(outcome) // so that the first one is an increase
	}
	return m
}

// Attempt counts a request to a webhook.
func (m *Metrics) Attempt(outcome string, took time.Duration) {
	m.attempts.WithLabelValues(outcome).Inc()
	result := "failure"
	if outcome == "delivered" {
		result = "success"
	}
	m.attemptSeconds.WithLabelValues(result).Observe(took.Seconds())
}

// Request counts a request to the API.
func (m *Metrics) Request(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}
