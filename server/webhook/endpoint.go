package webhook

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// readAhead is the maximum number of deliveries per healthy endpoint that are in memory: read in
// advance, or sent and not yet recorded. bytesAhead is their average size, which exceeds the usual
// one. Larger payloads are read when they are sent.
const (
	readAhead  = 4 * healthyWidth
	bytesAhead = 512
)

// run is the work on one endpoint by the holder of its lease.
type pass struct {
	*Deliverer
	lease    *worker.Lease
	endpoint access.Endpoint
	// since is when endpoint.FailingFor was read.
	since time.Time
	// read is when endpoint was read.
	read time.Time
	// healthy is whether the last response was prompt.
	prompt bool

	ready   []access.Delivery
	flying  map[uuid.UUID]flight // sent and not recorded yet
	air     int                  // requests without a response
	landed  chan answer
	answers []answer    // responses to record next
	records chan record // at most one at a time
	busy    bool        // a record is being written
	unread  error       // why an event could not be read
	// failing is set while a failure is not recorded yet. Nothing is sent meanwhile.
	troubled bool
	news     chan struct{}
	looked   bool // all due deliveries are in ready or flying
	stopped  bool // this run sends nothing more
	disabled bool // the webhook is disabled, so no run sends anything
	window   int  // maximum concurrent requests that the responses so far allow
	own      int  // concurrent requests that do not count toward the shared limit
	begun    time.Time
}

// flight is a delivery in flight, without its payload.
type flight struct {
	step int       // attempts so far
	due  time.Time // distinguishes it from a replayed delivery
}

// drainEndpoint sends the due deliveries of an endpoint and returns when to look again.
func (d *Deliverer) drainEndpoint(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	endpoint, err := d.access.GetEndpoint(ctx, id)
	if isGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// Another server classified the endpoint.
	if !d.judged(ctx, id, endpoint.Prompt) {
		return 0, nil
	}
	p := &pass{
		Deliverer: d,
		lease:     lease,
		endpoint:  endpoint,
		since:     time.Now(),
		read:      time.Now(),
		prompt:    endpoint.Prompt,
		flying:    map[uuid.UUID]flight{},
		landed:    make(chan answer, healthyWidth),
		records:   make(chan record, 1),
		news:      make(chan struct{}, 1),
		stopped:   holds(endpoint),
		disabled:  endpoint.Disabled,
		window:    firstWidth,
		own:       ownOf(endpoint),
		begun:     time.Now(),
	}
	d.news.Store(id, p.news)
	defer d.news.CompareAndDelete(id, p.news)
	if err := p.run(ctx); err != nil {
		return 0, err
	}
	for more := p.disabled; more; {
		if more, err = d.access.HoldDeliveries(ctx, lease, id); err != nil {
			return 0, err
		}
	}
	return d.access.ScheduleWebhook(ctx, id)
}

// reclassify assigns an endpoint to the healthy or the suspect keys. It reports false if the
// suspect keys have no free slot, so that the endpoint must wait.
func (d *Deliverer) judged(ctx context.Context, webhook uuid.UUID, prompt bool) bool {
	d.loads.answered(webhook, prompt)
	if prompt {
		worker.Trust(ctx)
	}
	return prompt || worker.Doubt(ctx)
}

// isHeld reports whether deliveries to an endpoint are held back.
func holds(e access.Endpoint) bool { return e.Disabled || e.Paused || e.Suspended }

func isGone(err error) bool {
	e, ok := errors.AsType[*access.Error](err)
	return ok && e.Kind == access.NotFound
}

// run keeps as many requests in flight as the endpoint's health allows, until nothing is due.
// Meanwhile it records the responses, in batches of those that arrived during the previous write.
func (p *pass) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer func() {
		for p.air > 0 {
			p.down()
		}
	}()
	defer others.Wait()
	// Cancel before the wait, so that an error ends the requests in flight.
	defer cancel()
	for {
		if err := p.refill(ctx); err != nil {
			return err
		}
		for p.free() && len(p.ready) > 0 && p.up() {
			// The endpoint may be read again meanwhile.
			next, endpoint := p.ready[0], p.endpoint
			p.ready = p.ready[1:]
			p.flying[next.Event.ID] = flight{next.Step, next.Due}
			others.Go(func() { p.landed <- p.deliver(ctx, endpoint, next) })
		}
		if len(p.answers) > 0 && !p.busy {
			r := p.next()
			others.Go(func() {
				r.err = p.access.RecordDeliveries(ctx, p.lease, r.webhook, r.attempts, r.health)
				p.records <- r
			})
		}
		if len(p.flying) == 0 {
			return cmp.Or(p.unread, ctx.Err())
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// canSend reports whether one more request may be sent.
func (p *pass) free() bool {
	return !p.stopped && !p.troubled && p.air < p.room() && len(p.flying) < readAhead
}

// maxInFlight returns the maximum number of requests in flight.
func (p *pass) room() int { return min(p.window, width(p.endpoint.Failures)) }

// startRequest counts one more request in flight, unless the limits forbid it. Beyond its
// guaranteed requests, an endpoint may have at most a quarter as many as remain free, and an
// unproven endpoint leaves half of the total to others. The next response or poll tries again.
func (p *pass) up() bool {
	if p.air >= p.own {
		left := moreAtOnce - p.more.Add(1)
		if left < 0 || int64(p.air-p.own) > left/4 || p.unknown() && left < moreAtOnce/2 {
			p.more.Add(-1)
			return false
		}
	}
	p.air++
	return true
}

// unproven reports whether the endpoint has not yet succeeded in this run, nor at the end of the
// last one.
func (p *pass) unknown() bool { return p.own == 1 && p.window == firstWidth }

// endRequest counts one request less.
func (p *pass) down() {
	if p.air--; p.air >= p.own {
		p.more.Add(-1)
	}
}

// refill reads due deliveries unless some are in memory.
func (p *pass) refill(ctx context.Context) error {
	p.stopped = p.stopped || p.stopping.Load() || time.Since(p.begun) > p.opt.Turn
	if !p.free() {
		return nil
	}
	if err := p.lookAgain(ctx); err != nil || p.stopped || p.looked || len(p.ready) > 0 {
		return err
	}
	limit := p.ahead()
	due, err := p.access.DueDeliveries(ctx, p.endpoint.ID, slices.Collect(maps.Keys(p.flying)), limit, limit*bytesAhead)
	if err != nil {
		return err
	}
	p.ready, p.looked = due, len(due) < limit
	return nil
}

// readLimit returns how many deliveries to read together. A hanging endpoint keeps few in memory,
// because there may be hundreds of them.
func (p *pass) ahead() int {
	room := p.room()
	if room == 1 || p.unknown() {
		return room
	}
	return readAhead / healthyWidth * room
}

// refreshEndpoint reads an endpoint again after the poll interval. Its secret may have been
// rotated, or it may have been disabled.
func (p *pass) lookAgain(ctx context.Context) error {
	if time.Since(p.read) < p.opt.Glance {
		return nil
	}
	endpoint, err := p.access.GetEndpoint(ctx, p.endpoint.ID)
	switch {
	case isGone(err):
		p.stopped = true
	case err != nil:
		return err
	default:
		p.endpoint, p.since, p.read = endpoint, time.Now(), time.Now()
		p.stopped, p.disabled = p.stopped || holds(endpoint), endpoint.Disabled
	}
	return nil
}

// wait waits for a response, the end of a record, or more deliveries.
func (p *pass) wait(ctx context.Context) error {
	timer := time.NewTimer(p.opt.Glance)
	defer timer.Stop()
	select {
	case a := <-p.landed:
		p.land(ctx, a)
		for len(p.landed) > 0 {
			p.land(ctx, <-p.landed)
		}
		return nil
	case r := <-p.records:
		return p.recorded(r)
	case <-p.news:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.looked = false
	return nil
}

func (p *pass) land(ctx context.Context, a answer) {
	p.down()
	if !a.cut && !a.unopened {
		p.prompt = p.opt.prompt(p.prompt, a)
		p.stopped = !p.judged(ctx, p.endpoint.ID, p.prompt) || p.stopped
	}
	switch {
	// The next holder of the lease sends it again.
	case a.cut:
		// First finish and record the requests in flight.
		if a.unread != nil || a.withdrawn {
			delete(p.flying, a.event)
			p.unread, p.stopped = cmp.Or(p.unread, a.unread), true
		}
	case a.unopened:
		p.answers = append(p.answers, a)
	case a.ok():
		p.window = min(p.window+1, healthyWidth)
		p.answers = append(p.answers, a)
	default:
		p.troubled = true
		p.answers = append(p.answers, a)
	}
}

// record is a batch of attempts that are recorded together.
type record struct {
	webhook  uuid.UUID
	attempts []access.DeliveryAttempt
	health   access.Health
	outcomes []string // of the attempts, for metrics
	problem  string   // the last one
	err      error
}

// nextRecord returns the record of all pending responses.
func (p *pass) next() record {
	r := record{webhook: p.endpoint.ID, attempts: make([]access.DeliveryAttempt, len(p.answers))}
	for i, a := range p.answers {
		sent := p.flying[a.event]
		r.attempts[i] = p.opt.next(a, sent.step)
		r.attempts[i].Due = sent.due
		r.problem = cmp.Or(a.problem, r.problem)
		r.outcomes = append(r.outcomes, outcome(a, r.attempts[i].State))
	}
	r.health = p.opt.health(p.endpoint, time.Since(p.since), p.answers)
	// These attempts precede the disabling. They must not disable a webhook that is enabled again.
	if p.disabled {
		r.health.Past, r.health.Disable = true, ""
	}
	p.answers, p.busy = nil, true
	return r
}

// applyRecord updates the run from a finished record.
func (p *pass) recorded(r record) error {
	p.busy = false
	for _, a := range r.attempts {
		delete(p.flying, a.EventID)
	}
	p.troubled = slices.ContainsFunc(p.answers, func(a answer) bool { return !a.ok() && !a.unopened })
	// The webhook was deleted, so the requests in flight are the last ones.
	if isGone(r.err) {
		p.stopped = true
		return nil
	}
	if r.err != nil {
		return r.err
	}
	for i, a := range r.attempts {
		p.opt.Observe(r.outcomes[i], a.Latency)
	}
	p.disabled = p.disabled || r.health.Disable != ""
	p.endpoint.Prompt = r.health.Prompt
	if p.endpoint.Failures = r.health.Failures; r.health.Recovered {
		p.endpoint.FailingFor, p.since = 0, time.Now()
	}
	log := p.opt.Log.With("webhook", p.endpoint.ID)
	switch {
	case r.health.Disable != "":
		log.Error("the webhook was disabled; its events are kept and can be replayed", "reason", r.health.Disable)
	case r.health.Failures > 0:
		log.Info("a webhook's endpoint is failing", "failures", r.health.Failures, "problem", r.problem)
	}
	p.stopped = p.stopped || r.health.Disable != "" || r.health.Pause > 0
	return nil
}
