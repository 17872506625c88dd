// Package webhooks turns events into deliveries: it hands the events of a workspace to the webhooks that ask
// for them, sends each one signed, tries again what failed, and stops sending to endpoints that are gone. It
// is at work on two kinds of keys: the outbox of a workspace, and an endpoint. So one endpoint that hangs
// keeps no other waiting. What is delivered at least once may be delivered twice: with the same identifier
// and the same bytes.
//
// Which events there are, and what they carry, is decided by access; the package must not know devices.
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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of a Deliverer. The zero value is for production.
type Options struct {
	AllowPrefixes []netip.Prefix  // addresses that are sent to although they are not public
	Timeout       time.Duration   // how long an endpoint may take to answer; 0: 15 s
	Schedule      []time.Duration // pauses between attempts; nil: those of spec/contract.md section 7
	ProbePause    time.Duration   // how long an endpoint that keeps failing is left alone at first, later up to 60 times that; 0: 1 s
	DisableAfter  time.Duration   // how long an endpoint may do nothing but fail; 0: five days
	Turn          time.Duration   // after which an endpoint that is busy all the time lets others have its place; 0: five minutes
	Glance        time.Duration   // how often a busy endpoint is read again, and looked at for what other instances have made due; 0: 1 s
	Log           *slog.Logger

	// Observe is told of each attempt: delivered, retry, given_up or gone, and how long it took. nil: nobody.
	Observe func(outcome string, took time.Duration)
}

// Deliverer brings events to webhooks.
type Deliverer struct {
	access   *access.Service
	client   *http.Client
	opt      Options
	stopping atomic.Bool
	loads    *loads
	more     atomic.Int64 // requests in the air beyond the first ones to each endpoint
	turns    sync.Map     // workspace → uuid.UUID: the account that had the last turn, while there is more to hand out
	news     sync.Map     // webhook → chan struct{}: something has become due while it is at work in this process
}

// New makes a Deliverer.
func New(a *access.Service, opt Options) *Deliverer {
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
	if opt.Glance == 0 {
		opt.Glance = time.Second
	}
	if opt.Turn == 0 {
		opt.Turn = 5 * time.Minute
	}
	if opt.Observe == nil {
		opt.Observe = func(string, time.Duration) {}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Deliverer{access: a, client: newClient(opt.AllowPrefixes, nil), opt: opt, loads: newLoads()}
}

// Lanes are the kinds of work that an engine has to be given.
func (d *Deliverer) Lanes() []worker.Lane {
	return []worker.Lane{outboxLane{d}, endpointLane{d}}
}

// Quiesce begins nothing new from now on, so that an engine has an end of the work in hand to wait for.
func (d *Deliverer) Quiesce() { d.stopping.Store(true) }

type endpointLane struct{ *Deliverer }

func (endpointLane) Name() string { return access.EndpointLane }

func (l endpointLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	if l.stopping.Load() {
		return false, nil
	}
	return l.access.WebhookDue(ctx, id)
}

func (l endpointLane) Sweep(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	ids, prompt, err := l.access.DueWebhooks(ctx, limit, but)
	l.loads.known(prompt)
	return ids, err
}

// Owners implements work.Owned.
func (l endpointLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	owners, prompt, err := l.access.WebhookOwners(ctx, ids)
	l.loads.known(prompt)
	return owners, err
}

// Doubts implements work.Doubting.
func (l endpointLane) Doubts(id uuid.UUID) bool { return !l.loads.prompt(id) }

func (l endpointLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainEndpoint(ctx, lease, id)
}
