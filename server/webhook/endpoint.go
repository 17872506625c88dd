package webhook

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// readAhead is the maximum number of deliveries per healthy endpoint that are in memory: read in
// advance, or sent and not yet recorded. bytesAhead is their average size, which exceeds the usual
// one. Larger payloads are read when they are sent.
const (
	readAhead  = 4 * healthyConcurrency
	bytesAhead = 512
)

// run is the work on one endpoint by the holder of its lease.
type run struct {
	*Deliverer
	lease    *worker.Lease
	endpoint Endpoint
	// since is when endpoint.FailingFor was read.
	since time.Time
	// read is when endpoint was read.
	read time.Time
	// healthy is whether the last response was prompt.
	healthy bool

	ready        []Delivery
	inFlightByID map[uuid.UUID]flight // sent and not recorded yet
	inFlight     int                  // requests without a response
	results      chan answer
	pending      []answer    // responses to record next
	records      chan record // at most one at a time
	busy         bool        // a record is being written
	unread       error       // why an event could not be read
	// failing is set while a failure is not recorded yet. Nothing is sent meanwhile.
	failing    bool
	wakeup     chan struct{}
	upToDate   bool // all due deliveries are in ready or inFlightByID
	stopped    bool // this run sends nothing more
	disabled   bool // the webhook is disabled, so no run sends anything
	window     int  // maximum concurrent requests that the responses so far allow
	guaranteed int  // concurrent requests that do not count toward the shared limit
	begun      time.Time
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
	if !d.reclassify(ctx, id, endpoint.Healthy) {
		return 0, nil
	}
	p := &run{
		Deliverer:    d,
		lease:        lease,
		endpoint:     endpoint,
		since:        time.Now(),
		read:         time.Now(),
		healthy:      endpoint.Healthy,
		inFlightByID: map[uuid.UUID]flight{},
		results:      make(chan answer, healthyConcurrency),
		records:      make(chan record, 1),
		wakeup:       make(chan struct{}, 1),
		stopped:      isHeld(endpoint),
		disabled:     endpoint.Disabled,
		window:       initialConcurrency,
		guaranteed:   guaranteedConcurrency(endpoint),
		begun:        time.Now(),
	}
	d.wakeups.Store(id, p.wakeup)
	defer d.wakeups.CompareAndDelete(id, p.wakeup)
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
func (d *Deliverer) reclassify(ctx context.Context, webhook uuid.UUID, prompt bool) bool {
	d.memory.setHealthy(webhook, prompt)
	if prompt {
		worker.MarkHealthy(ctx)
	}
	return prompt || worker.MarkSuspect(ctx)
}

// isHeld reports whether deliveries to an endpoint are held back.
func isHeld(e Endpoint) bool { return e.Disabled || e.Paused || e.Suspended }

func isGone(err error) bool {
	e, ok := errors.AsType[*domain.Error](err)
	return ok && e.Kind == domain.NotFound
}

// run keeps as many requests in flight as the endpoint's health allows, until nothing is due.
// Meanwhile it records the responses, in batches of those that arrived during the previous write.
func (p *run) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer func() {
		for p.inFlight > 0 {
			p.endRequest()
		}
	}()
	defer others.Wait()
	// Cancel before the wait, so that an error ends the requests in flight.
	defer cancel()
	for {
		if err := p.refill(ctx); err != nil {
			return err
		}
		for p.canSend() && len(p.ready) > 0 && p.startRequest() {
			// The endpoint may be read again meanwhile.
			next, endpoint := p.ready[0], p.endpoint
			p.ready = p.ready[1:]
			p.inFlightByID[next.Event.ID] = flight{next.Step, next.Due}
			others.Go(func() { p.results <- p.deliver(ctx, endpoint, next) })
		}
		if len(p.pending) > 0 && !p.busy {
			r := p.nextRecord()
			others.Go(func() {
				r.err = p.access.RecordDeliveries(ctx, p.lease, r.webhook, r.attempts, r.health)
				p.records <- r
			})
		}
		if len(p.inFlightByID) == 0 {
			return cmp.Or(p.unread, ctx.Err())
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// canSend reports whether one more request may be sent.
func (p *run) canSend() bool {
	return !p.stopped && !p.failing && p.inFlight < p.maxInFlight() && len(p.inFlightByID) < readAhead
}

// maxInFlight returns the maximum number of requests in flight.
func (p *run) maxInFlight() int { return min(p.window, maxConcurrency(p.endpoint.Failures)) }

// startRequest counts one more request in flight, unless the limits forbid it. Beyond its
// guaranteed requests, an endpoint may have at most a quarter as many as remain free, and an
// unproven endpoint leaves half of the total to others. The next response or poll tries again.
func (p *run) startRequest() bool {
	if p.inFlight >= p.guaranteed {
		left := maxExtraRequests - p.extraRequests.Add(1)
		if left < 0 || int64(p.inFlight-p.guaranteed) > left/4 || p.unproven() && left < maxExtraRequests/2 {
			p.extraRequests.Add(-1)
			return false
		}
	}
	p.inFlight++
	return true
}

// unproven reports whether the endpoint has not yet succeeded in this run, nor at the end of the
// last one.
func (p *run) unproven() bool { return p.guaranteed == 1 && p.window == initialConcurrency }

// endRequest counts one request less.
func (p *run) endRequest() {
	if p.inFlight--; p.inFlight >= p.guaranteed {
		p.extraRequests.Add(-1)
	}
}

// refill reads due deliveries unless some are in memory.
func (p *run) refill(ctx context.Context) error {
	p.stopped = p.stopped || p.stopping.Load() || time.Since(p.begun) > p.opt.Quantum
	if !p.canSend() {
		return nil
	}
	if err := p.refreshEndpoint(ctx); err != nil || p.stopped || p.upToDate || len(p.ready) > 0 {
		return err
	}
	limit := p.readLimit()
	due, err := p.access.DueDeliveries(
		ctx,
		p.endpoint.ID,
		slices.Collect(maps.Keys(p.inFlightByID)),
		limit,
		limit*bytesAhead,
	)
	if err != nil {
		return err
	}
	p.ready, p.upToDate = due, len(due) < limit
	return nil
}

// readLimit returns how many deliveries to read together. A hanging endpoint keeps few in memory,
// because there may be hundreds of them.
func (p *run) readLimit() int {
	room := p.maxInFlight()
	if room == 1 || p.unproven() {
		return room
	}
	return readAhead / healthyConcurrency * room
}

// refreshEndpoint reads an endpoint again after the poll interval. Its secret may have been
// rotated, or it may have been disabled.
func (p *run) refreshEndpoint(ctx context.Context) error {
	if time.Since(p.read) < p.opt.PollInterval {
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
		p.stopped, p.disabled = p.stopped || isHeld(endpoint), endpoint.Disabled
	}
	return nil
}

// wait waits for a response, the end of a record, or more deliveries.
func (p *run) wait(ctx context.Context) error {
	timer := time.NewTimer(p.opt.PollInterval)
	defer timer.Stop()
	select {
	case a := <-p.results:
		p.handleResult(ctx, a)
		for len(p.results) > 0 {
			p.handleResult(ctx, <-p.results)
		}
		return nil
	case r := <-p.records:
		return p.applyRecord(r)
	case <-p.wakeup:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.upToDate = false
	return nil
}

func (p *run) handleResult(ctx context.Context, a answer) {
	p.endRequest()
	if !a.cut && !a.unopened {
		p.healthy = p.opt.healthy(p.healthy, a)
		p.stopped = !p.reclassify(ctx, p.endpoint.ID, p.healthy) || p.stopped
	}
	switch {
	// The next holder of the lease sends it again.
	case a.cut:
		// First finish and record the requests in flight.
		if a.unread != nil || a.withdrawn {
			delete(p.inFlightByID, a.event)
			p.unread, p.stopped = cmp.Or(p.unread, a.unread), true
		}
	case a.unopened:
		p.pending = append(p.pending, a)
	case a.ok():
		p.window = min(p.window+1, healthyConcurrency)
		p.pending = append(p.pending, a)
	default:
		p.failing = true
		p.pending = append(p.pending, a)
	}
}

// record is a batch of attempts that are recorded together.
type record struct {
	webhook  uuid.UUID
	attempts []DeliveryAttempt
	health   Health
	outcomes []string // of the attempts, for metrics
	problem  string   // the last one
	err      error
}

// nextRecord returns the record of all pending responses.
func (p *run) nextRecord() record {
	r := record{webhook: p.endpoint.ID, attempts: make([]DeliveryAttempt, len(p.pending))}
	for i, a := range p.pending {
		sent := p.inFlightByID[a.event]
		r.attempts[i] = p.opt.planAttempt(a, sent.step)
		r.attempts[i].Due = sent.due
		r.problem = cmp.Or(a.problem, r.problem)
		r.outcomes = append(r.outcomes, outcome(a, r.attempts[i].State))
	}
	r.health = p.opt.health(p.endpoint, time.Since(p.since), p.pending)
	// These attempts precede the disabling. They must not disable a webhook that is enabled again.
	if p.disabled {
		r.health.Stale, r.health.Disable = true, ""
	}
	p.pending, p.busy = nil, true
	return r
}

// warnAfterFailures is the number of consecutive failures from which the log warns of an endpoint. Fewer are often a
// restart of the receiver.
const warnAfterFailures = 3

// endpointHost returns the host of a webhook's URL. Its path and query may contain a secret of the receiver.
func endpointHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// applyRecord updates the run from a finished record.
func (p *run) applyRecord(r record) error {
	p.busy = false
	for _, a := range r.attempts {
		delete(p.inFlightByID, a.EventID)
	}
	p.failing = slices.ContainsFunc(p.pending, func(a answer) bool { return !a.ok() && !a.unopened })
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
	p.endpoint.Healthy = r.health.Healthy
	if p.endpoint.Failures = r.health.Failures; r.health.Recovered {
		p.endpoint.FailingFor, p.since = 0, time.Now()
	}
	log := p.opt.Log.With("webhook_id", p.endpoint.ID)
	switch {
	case r.health.Disable != "":
		log.Error("the webhook was disabled; its events are kept and can be replayed", "reason", r.health.Disable)
	case r.health.Failures >= warnAfterFailures:
		p.problems.Warn(
			log.With("endpoint", endpointHost(p.endpoint.URL), "failures", r.health.Failures, "error", r.problem),
			p.endpoint.ID.String(),
			"a webhook's endpoint is failing",
		)
	case r.health.Failures > 0:
		log.Debug("a webhook's endpoint is failing", "failures", r.health.Failures, "error", r.problem)
	case r.health.Recovered:
		p.problems.End(log, p.endpoint.ID.String(), "a webhook's endpoint works again")
	}
	p.stopped = p.stopped || r.health.Disable != "" || r.health.Pause > 0
	return nil
}
