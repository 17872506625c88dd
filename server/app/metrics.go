package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/metrics"
)

// metricsServer serves metrics at its own address, so that clients of the API need not reach them.
type metricsServer struct {
	*metrics.Metrics
	listener net.Listener
	http     *http.Server
}

// maxMetricsConnections is the maximum number of connections to the metrics, half of them from one address.
const maxMetricsConnections = 64

// listenForMetrics returns nil if address is empty.
func listenForMetrics(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // metrics are off
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf(
			"listen on %s for metrics: %w; choose another address with --metrics-listen",
			address,
			err,
		)
	}
	return listener, nil
}

// newMetering returns nil without a listener.
func (a *App) newMetering(listener net.Listener, cert *certificate, log *slog.Logger) *metricsServer {
	if listener == nil {
		return nil
	}
	a.MetricsURL = "http://" + reachable(listener.Addr()) + "/metrics"
	var expiry func() time.Time
	if cert != nil {
		expiry = cert.expiry
	}
	inventory := metrics.InventorySources{
		Inventory: a.Access.Health.Inventory,
		Backups:   a.config.DatabaseURL == "",
		Version:   a.config.Version,
	}
	if a.config.MetricsPerDevice {
		inventory.Devices = a.Access.Health.DeviceStates
	}
	m := &metricsServer{listener: listener, Metrics: metrics.New(metrics.Sources{
		Certificate: expiry,
		Log:         log,
		Backlog:     a.Access.Health.Backlog,
		Calls:       a.accountCalls,
		Health:      a.health.metricValues,
		Inventory:   inventory,
		Spans:       a.traces.Counts,
		Busy: func() map[string]int {
			busy := a.engine.Busy()
			maps.Copy(busy, a.delivery.engine.Busy())
			return busy
		},
	})}
	m.http = newHTTP(log)
	return m
}

// accountCalls returns the calls that are left to the accounts of vendors with a limit.
func (a *App) accountCalls(ctx context.Context) (out []metrics.AccountCalls, err error) {
	for _, v := range a.config.Connecting.Registered() {
		if v.CallsPerHour == 0 || len(out) == metrics.MaxAccounts {
			continue
		}
		left, err := a.Access.Accounts.ListCallsLeft(ctx, v.Adapter, bucketOf(v), metrics.MaxAccounts-len(out))
		if err != nil {
			return nil, err
		}
		for account, calls := range left {
			out = append(
				out,
				metrics.AccountCalls{Account: account.String(), Vendor: v.Adapter, Left: math.Floor(calls)},
			)
		}
	}
	return out, nil
}

func (m *metricsServer) start() {
	go func() { // until stop; an error only ends the metrics
		_ = serveLimited(
			m.http,
			admission.Middleware(m.Handler(), http.HandlerFunc(busyScraping)),
			admission.Limits{Connections: maxMetricsConnections, Slots: 2},
			m.listener,
		)
	}()
}

func busyScraping(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "too many concurrent requests for metrics", http.StatusTooManyRequests)
}

func (m *metricsServer) stop(ctx context.Context) error {
	m.listener.Close() //nolint:errcheck // may already be closed
	if err := m.http.Shutdown(ctx); err != nil {
		return m.http.Close()
	}
	return nil
}
