package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// readyPollInterval is how often a server that systemd waits for checks its health.
const readyPollInterval = 250 * time.Millisecond

// supervised is what systemd learns about a server.
type supervised interface {
	// Ready reports whether /health answers 200.
	Ready(ctx context.Context) bool
	// Stuck returns an error if the process makes no progress and needs a restart.
	Stuck() error
}

// notifySystemd reports to systemd, if systemd has started this program, when the server is ready. With a watchdog, it
// then reports three times in the watchdog's interval that the server makes progress. It returns when ctx ends.
func notifySystemd(ctx context.Context, a supervised, log *slog.Logger) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("ignoring the watchdog of systemd", "error", err)
	}
	for !a.Ready(ctx) {
		if !sleep(ctx, readyPollInterval) {
			return
		}
	}
	notify(daemon.SdNotifyReady, log)
	if watchdog <= 0 {
		return
	}
	for {
		if err := a.Stuck(); err != nil {
			log.Error("withholding the sign of life, so that systemd restarts the server", "error", err)
		} else {
			notify(daemon.SdNotifyWatchdog, log)
		}
		if !sleep(ctx, watchdog/3) {
			return
		}
	}
}

// notifyStopping reports to systemd that the server stops.
func notifyStopping(log *slog.Logger) { notify(daemon.SdNotifyStopping, log) }

// notify sends a state to systemd. Without systemd, it does nothing.
func notify(state string, log *slog.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot notify systemd", "state", state, "error", err)
	}
}

// sleep waits for a duration. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
