package app

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// HealthOptions say what /health goes by. The zero value is for production.
type HealthOptions struct {
	Stalled        time.Duration // when the work of this server counts as standing still; 0: 30 s
	LateDevices    time.Duration // when a device, account or access system that nobody works on is late; 0: 3 min, for one that fails is left alone for up to 90 s
	LateDeliveries time.Duration // when what is to be sent to an endpoint that works is late; 0: 1 min
	Full           time.Duration // for how long the disk counts as full after a statement has failed for that; 0: 1 min
}

const (
	healthKept   = time.Second     // what was found counts for so long, that asking often costs the database nothing
	healthWithin = 2 * time.Second // the database answers in this time, or it is down
)

// health is how this server is.
type monitor struct {
	opt      HealthOptions
	access   *access.Service
	engines  atomic.Pointer[[]*worker.Engine] // nil: they do not run yet
	stopping atomic.Bool
	log      *slog.Logger

	mu    sync.Mutex
	asked time.Time
	last  rest.Health
	told  map[string]api.ServiceHealth
}

func newHealth(a *access.Service, opt HealthOptions, log *slog.Logger) *monitor {
	opt.Stalled = cmp.Or(opt.Stalled, 30*time.Second)
	opt.LateDevices = cmp.Or(opt.LateDevices, 3*time.Minute)
	opt.LateDeliveries = cmp.Or(opt.LateDeliveries, time.Minute)
	opt.Full = cmp.Or(opt.Full, time.Minute)
	return &monitor{opt: opt, access: a, log: log, told: map[string]api.ServiceHealth{}}
}

// now finds out how the server is, unless that was just found. Those who ask at the same time share an answer.
func (h *monitor) now(context.Context) rest.Health {
	if h.stopping.Load() { // whatever was found before
		return rest.Health{Parts: []api.ServiceHealth{{Service: "server", Status: api.Down, Description: "The server is being stopped."}}}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() || time.Since(h.asked) >= healthKept {
		ctx, cancel := context.WithTimeout(context.Background(), healthWithin) // also for those who ask after the first one has hung up
		defer cancel()
		found, causes := h.find(ctx)
		h.last, h.asked = found, time.Now()
		h.tell(found, causes)
	}
	return h.last
}

// find says also why parts are not well, by part, where an error has told.
func (h *monitor) find(ctx context.Context) (rest.Health, map[string]error) {
	condition, err := h.access.Condition(ctx)
	database := api.ServiceHealth{Service: "database", Status: api.Healthy, Description: "The database answers and takes writes."}
	switch {
	case err != nil:
		database.Status, database.Description = api.Down, "The database does not answer, or takes no writes; the log says why."
	case condition.ReadOnly:
		database.Status, database.Description = api.Down, "The database takes no writes: it is a standby, or was told so."
	case time.Since(condition.Full) < h.opt.Full:
		database.Status, database.Description = api.Down, "The disk of the database is full: changes fail."
	case condition.Outdated:
		database.Status, database.Description = api.Down, "The database is older than this server, which migrates it when it starts."
	}
	server := api.ServiceHealth{Service: "server", Status: api.Healthy, Description: "The server takes requests."}
	if condition.Keys != nil {
		server.Status, server.Description = api.Down, "This server cannot open PINs and secrets: it lacks the master key that others have been given."
	}
	parts := []api.ServiceHealth{server, database, h.work()}
	causes := map[string]error{"server": condition.Keys, "database": err}
	var lateness access.Lateness
	if err == nil {
		lateness, err = h.access.Lateness(ctx)
	}
	causes["devices"], causes["deliveries"] = err, err
	return rest.Health{At: condition.At, Parts: append(parts, h.late(lateness, err == nil)...)}, causes
}

// work says whether the engines of this server turn.
func (h *monitor) work() api.ServiceHealth {
	part := api.ServiceHealth{Service: "work", Status: api.Healthy, Description: "This server looks for work."}
	engines := h.engines.Load()
	if engines == nil {
		part.Status, part.Description = api.Down, "This server has not begun to work yet."
		return part
	}
	for _, e := range *engines {
		if time.Since(e.Turned()) > h.opt.Stalled {
			part.Status, part.Description = api.Down, "This server has not looked for work for a while; the log says why. Others take its work over."
		}
	}
	return part
}

// late says whether work is done in time, by whichever server. What is late does not make any of them useless.
func (h *monitor) late(found access.Lateness, known bool) []api.ServiceHealth {
	devices := api.ServiceHealth{Service: "devices", Status: api.Healthy, Description: "Devices are worked on in time."}
	deliveries := api.ServiceHealth{Service: "deliveries", Status: api.Healthy, Description: "Events are delivered in time."}
	if !known {
		devices.Status, devices.Description = api.Degraded, "It is not known whether devices wait: the database does not say; the log says why."
		deliveries.Status, deliveries.Description = api.Degraded, "It is not known whether deliveries wait: the database does not say; the log says why."
		return []api.ServiceHealth{devices, deliveries}
	}
	if found.Devices > h.opt.LateDevices {
		devices.Status, devices.Description = api.Degraded, "Devices wait for longer than they should; the log says which work fails."
	}
	if max(found.Deliveries, found.Events) > h.opt.LateDeliveries {
		deliveries.Status, deliveries.Description = api.Degraded, "Deliveries wait for longer than they should; the metrics say for how long."
	}
	return []api.ServiceHealth{devices, deliveries}
}

// tell writes to the log what has changed since it was last found.
func (h *monitor) tell(now rest.Health, causes map[string]error) {
	for _, p := range now.Parts {
		last := h.told[p.Service]
		was := cmp.Or(last.Status, api.Healthy)
		if p.Status == was && (was == api.Healthy || p.Description == last.Description) { // ill for another reason, it is told once more
			continue
		}
		h.told[p.Service] = p
		level := slog.LevelWarn
		if p.Status == api.Healthy {
			level = slog.LevelInfo
		}
		attributes := []any{"part", p.Service, "status", string(p.Status), "was", string(was), "description", p.Description}
		if cause := causes[p.Service]; cause != nil {
			attributes = append(attributes, "cause", cause)
		}
		h.log.Log(context.Background(), level, "health has changed", attributes...)
	}
}

// figures are what the metrics say of each part.
func (h *monitor) figures() map[string]float64 {
	out := map[string]float64{}
	for _, p := range h.now(context.Background()).Parts {
		out[p.Service] = map[api.ServiceHealthStatus]float64{api.Healthy: 0, api.Degraded: 1, api.Down: 2}[p.Status]
	}
	return out
}
