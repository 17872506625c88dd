package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/metrics"
)

// metering serves metrics at an address of its own, which need not be reachable from where the API is.
type metering struct {
	*metrics.Metrics
	listener net.Listener
	http     *http.Server
}

// scrapers is how many connections there are at once to where the metrics are, half of them of one address.
const scrapers = 64

// listenForMetrics is nil where no metrics are wanted.
func listenForMetrics(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // nobody listens then
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for metrics: %w; another address is chosen with --metrics-listen", address, err)
	}
	return listener, nil
}

// newMetering is nil where nobody listens.
func (a *App) newMetering(listener net.Listener, log *slog.Logger) *metering {
	if listener == nil {
		return nil
	}
	a.MetricsURL = "http://" + reachable(listener.Addr()) + "/metrics"
	m := &metering{listener: listener, Metrics: metrics.New(metrics.Sources{Log: log, Backlog: a.Access.Backlog, Health: a.health.figures, Spans: a.traces.Figures, Busy: func() map[string]int {
		busy := a.engine.Busy()
		maps.Copy(busy, a.delivery.engine.Busy())
		return busy
	}})}
	m.http = newHTTP(log)
	return m
}

func (m *metering) start() {
	go func() {
		_ = serveLimited(m.http, admission.InTurn(m.Handler(), http.HandlerFunc(busyScraping)), admission.Limits{Connections: scrapers, Turns: 2}, m.listener)
	}() // ends with stop; without metrics the server goes on
}

func busyScraping(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "too many ask for the metrics", http.StatusTooManyRequests)
}

func (m *metering) stop(ctx context.Context) error {
	m.listener.Close() //nolint:errcheck // it may have been served and closed
	if err := m.http.Shutdown(ctx); err != nil {
		return m.http.Close()
	}
	return nil
}
