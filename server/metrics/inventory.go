package metrics

import (
	"context"
	"log/slog"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
)

// InventorySources are the functions that the metrics of devices, accounts, codes, and users call on each scrape.
type InventorySources struct {
	// Inventory returns the counts. It caches them.
	Inventory func(context.Context) (health.Inventory, error)
	// Devices returns the state of each device, and caches it; nil disables the metrics of single devices.
	Devices func(context.Context) ([]health.DeviceState, error)
	// Backups is whether the server's own backup command makes the backups of the database.
	Backups bool
	// Version is the version of the program.
	Version string
}

var (
	buildInfo = describe(
		"build_info",
		"Always 1. The labels are the versions of the program and of Go.",
		"version",
		"go_version",
	)
	inventoryUp = describe(
		"inventory_up",
		"1 if this server counted devices, accounts, codes, and users for this scrape, otherwise 0.",
	)
	devices = describe("devices", "Managed devices, by state: online or offline. Counted to 100,000.", "state")
	battery = describe(
		"devices_battery",
		"Managed devices with a weak battery, by level: low (below 25 %) or critical (below 10 %). Counted to 100,000.",
		"level",
	)
	accounts = describe(
		"accounts",
		"Connected accounts, by adapter and state: connected, account_disconnected (the vendor refuses the credentials), or "+
			"bridge_disconnected (the gateway is unreachable). Counted to 100,000.",
		"adapter",
		"state",
	)
	codes = describe(
		"access_codes",
		"Managed access codes, by status. A scheduled code is unset until its turn. Counted to 100,000.",
		"status",
	)
	overdue = describe(
		"codes_overdue",
		"Access codes that an online device has not set for more than 10 minutes. Considers 100,000 codes.",
	)
	failing = describe(
		"codes_failing",
		"Access codes with an error: their device refuses them, or fails to set or remove them. Considers 100,000 codes.",
	)
	removalOverdue = describe(
		"codes_removal_overdue",
		"Access codes that an online device has not removed for more than 10 minutes. Considers 100,000 codes.",
	)
	oldestUnset = describe(
		"oldest_unset_code_seconds",
		"How long the oldest unset access code of an online device has waited; 0: none waits.",
	)
	acsUsers = describe(
		"acs_users",
		"Users with changes that their access system lacks, by state: pending, or failing (with an error). Counted to 100,000.",
		"state",
	)
	lastBackup = describe(
		"last_backup_timestamp_seconds",
		"Unix time of the last successful backup; before the first one, of the installation. Private database only.",
	)
	deviceOnline = describe(
		"device_online",
		"1 if the device is online, otherwise 0. Only with --metrics-per-device; 10,000 devices at most.",
		"device_id", "name",
	)
	deviceBattery = describe(
		"device_battery_ratio",
		"Battery level of the device, from 0 to 1. Only with --metrics-per-device.",
		"device_id", "name",
	)
	deviceUnset = describe(
		"device_codes_unset",
		"Access codes that the device has not set yet. Only with --metrics-per-device.",
		"device_id", "name",
	)
)

// accountStates are always exposed, so that an alert sees the first account that fails.
var accountStates = []string{health.AccountConnected, "account_disconnected", "bridge_disconnected"}

// inventory collects the metrics of devices, accounts, codes, and users.
type inventory struct {
	InventorySources
	log      *slog.Logger
	problems recurring.Problems
}

func newInventory(s InventorySources, log *slog.Logger) *inventory {
	return &inventory{InventorySources: s, log: log}
}

func (i *inventory) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildInfo, inventoryUp, devices, battery, accounts, codes, overdue, failing, removalOverdue, oldestUnset,
		acsUsers, lastBackup, deviceOnline, deviceBattery, deviceUnset,
	} {
		out <- d
	}
}

func (i *inventory) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(buildInfo, 1, i.Version, runtime.Version())
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	now, err := i.Inventory(ctx)
	if err != nil {
		gauge(inventoryUp, 0)
		i.problems.Warn(i.log.With("error", err), "counts", "cannot count devices and codes for the metrics")
		return
	}
	gauge(inventoryUp, 1)
	i.problems.End(i.log, "counts", "devices and codes are counted again for the metrics")
	gauge(devices, float64(now.Online), "online")
	gauge(devices, float64(now.Offline), "offline")
	gauge(battery, float64(now.BatteryLow), "low")
	gauge(battery, float64(now.BatteryCritical), "critical")
	for adapter, states := range byAdapter(now.Accounts) {
		for state, n := range states {
			gauge(accounts, float64(n), adapter, state)
		}
	}
	for status, n := range now.Codes {
		gauge(codes, float64(n), status)
	}
	gauge(overdue, float64(now.Overdue))
	gauge(failing, float64(now.Failing))
	gauge(removalOverdue, float64(now.RemovalOverdue))
	gauge(oldestUnset, now.OldestUnset.Seconds())
	gauge(acsUsers, float64(now.UsersPending), "pending")
	gauge(acsUsers, float64(now.UsersFailing), "failing")
	if i.Backups {
		gauge(lastBackup, float64(now.LastBackup.Unix()))
	}
	if i.Devices != nil {
		i.collectDevices(ctx, gauge)
	}
}

// byAdapter returns the number of accounts by adapter and state, including states without accounts.
func byAdapter(counts []health.AccountCount) map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for _, c := range counts {
		if out[c.Adapter] == nil {
			out[c.Adapter] = map[string]int64{}
			for _, state := range accountStates {
				out[c.Adapter][state] = 0
			}
		}
		out[c.Adapter][c.State] += c.Number
	}
	return out
}

func (i *inventory) collectDevices(ctx context.Context, gauge func(*prometheus.Desc, float64, ...string)) {
	found, err := i.Devices(ctx)
	if err != nil {
		i.problems.Warn(i.log.With("error", err), "states", "cannot read the states of devices for the metrics")
		return
	}
	i.problems.End(i.log, "states", "the states of devices are read again for the metrics")
	for _, d := range found {
		online := 0.0
		if d.Online {
			online = 1
		}
		gauge(deviceOnline, online, d.ID, d.Name)
		if d.Battery != nil {
			gauge(deviceBattery, *d.Battery, d.ID, d.Name)
		}
		gauge(deviceUnset, float64(d.Unset), d.ID, d.Name)
	}
}
