package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// HealthOptions configures /health. The zero value is for production.
type HealthOptions struct {
	// Stalled is the age of the last poll after which this server's job engines count as stalled. The default is 30 s.
	Stalled time.Duration
	// LateDevices is the delay after which due work on a device, account, or access system counts as late. The default
	// is 3 min, since failing ones are paused for up to 90 s.
	LateDevices time.Duration
	// LateDeliveries is the delay after which a due delivery to a healthy endpoint counts as late. The default is 1 min.
	LateDeliveries time.Duration
	// DiskFull is how long the disk counts as full after a statement failed for lack of space. The default is 1 min.
	DiskFull time.Duration
	// Stuck is the age of a job engine's last heartbeat after which App.Stuck returns an error. The default is 2 min.
	Stuck time.Duration
}

// workPart is the part of the health that the job engines of this server determine.
const workPart = "work"

const (
	healthTTL     = time.Second     // how long a result is cached
	healthTimeout = 2 * time.Second // timeout of the database, after which it counts as down
)

// monitor determines the health of this server and logs its changes.
type monitor struct {
	opt      HealthOptions
	access   *access.Services
	engines  atomic.Pointer[[]*worker.Engine] // nil: they do not run yet
	stopping atomic.Bool
	log      *slog.Logger

	mu    sync.Mutex
	asked time.Time
	last  rest.Health
	shown map[string]api.ServiceHealth // last logged, by part
}

func newHealth(a *access.Services, opt HealthOptions, log *slog.Logger) *monitor {
	opt.Stalled = cmp.Or(opt.Stalled, 30*time.Second)
	opt.LateDevices = cmp.Or(opt.LateDevices, 3*time.Minute)
	opt.LateDeliveries = cmp.Or(opt.LateDeliveries, time.Minute)
	opt.DiskFull = cmp.Or(opt.DiskFull, time.Minute)
	opt.Stuck = cmp.Or(opt.Stuck, stuckAfter)
	return &monitor{
		opt:    opt,
		access: a,
		log:    log,
		shown:  map[string]api.ServiceHealth{},
	}
}

// now returns the health of the server. Concurrent callers share a result, which is cached for healthTTL.
func (h *monitor) now(context.Context) rest.Health {
	if h.stopping.Load() {
		return rest.Health{
			Parts: []api.ServiceHealth{
				{Service: "server", Status: api.Down, Description: "The server is shutting down."},
			},
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() || time.Since(h.asked) >= healthTTL {
		// Not the caller's context: other callers use the result, too.
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		found, causes := h.check(ctx)
		h.last, h.asked = found, time.Now()
		h.logChanges(found, causes)
	}
	return h.last
}

// stuckAfter is the age of a job engine's last heartbeat after which this process counts as stuck. Between heartbeats
// are two queries at most, each with a timeout of 15 s, or a pause of at most 10 s.
const stuckAfter = 2 * time.Minute

// stuck returns an error if a job engine of this process makes no progress.
func (h *monitor) stuck() error {
	engines := h.engines.Load()
	if engines == nil {
		return nil
	}
	for _, e := range *engines {
		if age := time.Since(e.Heartbeat()); age > h.opt.Stuck {
			return fmt.Errorf("a job engine has made no progress for %s", age.Round(time.Second))
		}
	}
	return nil
}

// check determines the health of all parts. It also returns the errors behind unhealthy parts, by part.
func (h *monitor) check(ctx context.Context) (rest.Health, map[string]error) {
	condition, err := h.access.Health.Condition(ctx)
	database := api.ServiceHealth{
		Service:     "database",
		Status:      api.Healthy,
		Description: "The database accepts reads and writes.",
	}
	switch {
	case err != nil:
		database.Status, database.Description = api.Down, "The database does not answer or rejects writes; see the log."
	case condition.ReadOnly:
		database.Status, database.Description = api.Down, "The database is read-only: it is a standby or configured as "+
			"read-only."
	case time.Since(condition.Full) < h.opt.DiskFull:
		database.Status, database.Description = api.Down, "The disk of the database is full: writes fail."
	case condition.Outdated:
		database.Status, database.Description = api.Down, "The schema of the database is older than this server; restart "+
			"the server to migrate it."
	}
	server := api.ServiceHealth{Service: "server", Status: api.Healthy, Description: "The server accepts requests."}
	if condition.Keys != nil {
		server.Status, server.Description = api.Down, "This server cannot decrypt PINs and secrets: it lacks a master "+
			"key that other servers have."
	}
	parts := []api.ServiceHealth{server, database, h.workHealth(), h.retentionHealth()}
	causes := map[string]error{"server": condition.Keys, "database": err}
	var lateness health.Lateness
	if err == nil {
		lateness, err = h.access.Health.Lateness(ctx)
	}
	causes["devices"], causes["deliveries"] = err, err
	now := rest.Health{At: condition.At, Parts: append(parts, h.lateness(lateness, err == nil)...)}
	if err == nil {
		now.Attention = h.attention()
	}
	return now, causes
}

// attention counts what needs attention at the locks. It returns nil while the counts are unknown.
func (h *monitor) attention() *api.HealthAttention {
	i, known := h.access.Health.InventoryNow()
	if !known {
		return nil
	}
	return &api.HealthAttention{
		DevicesOffline:            int(i.Offline),
		DevicesWithLowBattery:     int(i.BatteryLow + i.BatteryCritical),
		AccountsDisconnected:      int(i.AccountsFailing()),
		AccessCodesOverdue:        int(i.Overdue),
		AccessCodesFailing:        int(i.Failing),
		AccessCodesRemovalOverdue: int(i.RemovalOverdue),
	}
}

// workHealth reports whether the job engines of this server poll for work.
func (h *monitor) workHealth() api.ServiceHealth {
	part := api.ServiceHealth{Service: workPart, Status: api.Healthy, Description: "This server processes work."}
	engines := h.engines.Load()
	if engines == nil {
		part.Status, part.Description = api.Down, "This server has not started to process work."
		return part
	}
	for _, e := range *engines {
		if time.Since(e.LastSweep()) > h.opt.Stalled {
			part.Status, part.Description = api.Down, "This server has stopped processing work; see the log. Other servers "+
				"take over."
		}
	}
	return part
}

// retentionHealth reports whether this server deletes what has expired. It never deletes by a clock that may be wrong.
func (h *monitor) retentionHealth() api.ServiceHealth {
	part := api.ServiceHealth{Service: "retention", Status: api.Healthy, Description: "Expired data is deleted."}
	if problem := h.access.Retention.Problem(); problem != "" {
		part.Status, part.Description = api.Degraded, problem+". Nothing is deleted until the clocks have been right "+
			"for an hour."
	}
	return part
}

// lateness reports whether the servers on the database keep up with the work. Late work degrades health but is not an
// outage.
func (h *monitor) lateness(found health.Lateness, known bool) []api.ServiceHealth {
	devices := api.ServiceHealth{Service: "devices", Status: api.Healthy, Description: "Work on devices is on time."}
	deliveries := api.ServiceHealth{Service: "deliveries", Status: api.Healthy, Description: "Deliveries are on time."}
	if !known {
		devices.Status, devices.Description = api.Degraded, "The state of the work on devices is unknown because the "+
			"database does not answer; see the log."
		deliveries.Status, deliveries.Description = api.Degraded, "The state of deliveries is unknown because the "+
			"database does not answer; see the log."
		return []api.ServiceHealth{devices, deliveries}
	}
	if found.Devices > h.opt.LateDevices {
		devices.Status, devices.Description = api.Degraded, "Work on devices is late; the log says which work fails."
	}
	if max(found.Deliveries, found.Events) > h.opt.LateDeliveries {
		deliveries.Status, deliveries.Description = api.Degraded, "Deliveries are late; the metrics show the delay."
	}
	return []api.ServiceHealth{devices, deliveries}
}

// logChanges logs parts whose health has changed.
func (h *monitor) logChanges(now rest.Health, causes map[string]error) {
	starting := h.engines.Load() == nil
	for _, p := range now.Parts {
		if starting && p.Service == workPart { // expected
			continue
		}
		last := h.shown[p.Service]
		was := cmp.Or(last.Status, api.Healthy)
		if p.Status == was && (was == api.Healthy || p.Description == last.Description) { // log a new reason
			continue
		}
		h.shown[p.Service] = p
		level := slog.LevelWarn
		if p.Status == api.Healthy {
			level = slog.LevelInfo
		}
		attributes := []any{
			"part",
			p.Service,
			"status",
			string(p.Status),
			"was",
			string(was),
			"description",
			p.Description,
		}
		if cause := causes[p.Service]; cause != nil {
			attributes = append(attributes, "error", cause)
		}
		h.log.Log(context.Background(), level, "health has changed", attributes...)
	}
}

// metricValues returns the value of the health metric of each part: 0 healthy, 1 degraded, 2 down.
func (h *monitor) metricValues() map[string]float64 {
	out := map[string]float64{}
	for _, p := range h.now(context.Background()).Parts {
		out[p.Service] = map[api.ServiceHealthStatus]float64{api.Healthy: 0, api.Degraded: 1, api.Down: 2}[p.Status]
	}
	return out
}
