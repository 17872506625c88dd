// Package webhook delivers events to webhooks. It fans the events of a workspace out to the
// matching webhooks, sends each delivery signed, retries failures, and stops sending to disabled
// endpoints. It works on two kinds of keys, the outbox of a workspace and an endpoint, so a hanging
// endpoint delays no other. Delivery is at least once: a repeated delivery has the same identifier
// and the same bytes.
//
// Package event decides which events exist and what they contain. This package must not know
// devices.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options configures a Deliverer. The zero value is for production.
type Options struct {
	// AllowPrefixes lists addresses that may receive events although they are not public.
	AllowPrefixes []netip.Prefix
	// Timeout is the maximum time until an endpoint has answered. 0 means 15 s.
	Timeout time.Duration
	// Schedule lists the delays between attempts. nil means 5 s, 5 min, 30 min, 2, 5, 10, and 10 h.
	Schedule []time.Duration
	// ProbePause is the first pause of a failing endpoint. It grows up to 60 times. 0 means 1 s.
	ProbePause time.Duration
	// DisableAfter is how long an endpoint may fail without a success before it is disabled. 0
	// means five days.
	DisableAfter time.Duration
	// Quantum is how long a busy endpoint keeps its slot before others get it. 0 means five
	// minutes.
	Quantum time.Duration
	// PollInterval is how often a busy endpoint and its due deliveries are read again, since other
	// instances may change them. 0 means 1 s.
	PollInterval time.Duration
	Log          *slog.Logger

	// Observe receives the outcome and duration of each attempt. The outcome is delivered, retry,
	// given_up, or gone. nil disables it.
	Observe func(outcome string, took time.Duration)
}

// Deliverer delivers events to webhooks.
type Deliverer struct {
	access        *Service
	client        *http.Client
	opt           Options
	stopping      atomic.Bool
	memory        *memoryBudget
	extraRequests atomic.Int64 // requests in flight beyond the guaranteed ones of each endpoint
	// lastAccount maps a workspace to the account whose events were fanned out last, while more are due.
	lastAccount sync.Map
	// problems are those of endpoints that the log reports.
	problems recurring.Problems
	// wakeups maps a webhook to a channel that signals new deliveries during its run in this process.
	wakeups sync.Map
}

// New creates a Deliverer.
func New(a *Service, opt Options) *Deliverer {
	if opt.Timeout == 0 {
		opt.Timeout = 15 * time.Second
	}
	if opt.Schedule == nil {
		opt.Schedule = schedule
	}
	if opt.ProbePause == 0 {
		opt.ProbePause = time.Second
	}
	if opt.DisableAfter == 0 {
		opt.DisableAfter = 5 * 24 * time.Hour
	}
	if opt.PollInterval == 0 {
		opt.PollInterval = time.Second
	}
	if opt.Quantum == 0 {
		opt.Quantum = 5 * time.Minute
	}
	if opt.Observe == nil {
		opt.Observe = func(string, time.Duration) {}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Deliverer{
		access: a,
		client: newClient(opt.AllowPrefixes, nil),
		opt:    opt,
		memory: newMemoryBudget(),
	}
}

// Lanes returns the kinds of work that a worker.Engine runs.
func (d *Deliverer) Lanes() []worker.Lane {
	return []worker.Lane{outboxLane{d}, endpointLane{d}}
}

// Quiesce starts no new work from now on, so that an engine can wait for the work in progress.
func (d *Deliverer) Quiesce() { d.stopping.Store(true) }

type endpointLane struct{ *Deliverer }

func (endpointLane) Name() string { return domain.EndpointLane }

func (l endpointLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	if l.stopping.Load() {
		return false, nil
	}
	return l.access.WebhookDue(ctx, id)
}

func (l endpointLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	ids, prompt, err := l.access.DueWebhooks(ctx, limit, but)
	l.memory.importHealth(prompt)
	return ids, err
}

// Owners implements worker.Owned.
func (l endpointLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	owners, prompt, err := l.access.WebhookOwners(ctx, ids)
	l.memory.importHealth(prompt)
	return owners, err
}

// IsSuspect implements worker.Suspectable.
func (l endpointLane) IsSuspect(id uuid.UUID) bool { return !l.memory.isHealthy(id) }

func (l endpointLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainEndpoint(ctx, lease, id)
}
