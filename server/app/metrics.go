package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/metrics"
)

// metering serves metrics at an address of its own, which need not be reachable from where the API is.
type metering struct {
	*metrics.Metrics
	listener net.Listener
	http     *http.Server
}

// newMetering listens, and is nil where no metrics are wanted.
func (a *App) newMetering(ctx context.Context, address string, log *slog.Logger) (*metering, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for metrics: %w; another address is chosen with --metrics-listen", address, err)
	}
	a.MetricsURL = "http://" + reachable(listener.Addr()) + "/metrics"
	m := &metering{listener: listener, Metrics: metrics.New(metrics.Sources{Log: log, Backlog: a.Access.Backlog, Health: a.health.figures, Spans: a.traces.Figures, Busy: func() map[string]int {
		busy := a.engine.Busy()
		maps.Copy(busy, a.delivery.engine.Busy())
		return busy
	}})}
	m.http = &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	return m, nil
}

func (m *metering) start() {
	go func() { _ = m.http.Serve(m.listener) }() // ends with stop; without metrics the server goes on
}

func (m *metering) stop(ctx context.Context) error {
	m.listener.Close() //nolint:errcheck // it may have been served and closed
	if err := m.http.Shutdown(ctx); err != nil {
		return m.http.Close()
	}
	return nil
}
