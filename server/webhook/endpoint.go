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

// readAhead is how many deliveries are kept at hand for one endpoint that answers, and sent ones that wait to be recorded; bytesAhead
// is what each of them may carry on average, which is more than usual. What is beyond that is read when it is sent.
const (
	readAhead  = 4 * healthyWidth
	bytesAhead = 512
)

// pass is the work on one endpoint by the holder of its lease.
type pass struct {
	*Deliverer
	lease    *worker.Lease
	endpoint access.Endpoint
	since    time.Time // when endpoint.FailingFor was read
	read     time.Time // when endpoint was
	prompt   bool      // by the last answer

	ready    []access.Delivery
	flying   map[uuid.UUID]flight // sent and not recorded yet
	air      int                  // of these, requests without an answer
	landed   chan answer
	answers  []answer    // to be recorded next
	records  chan record // one at a time
	busy     bool        // one is being written
	unread   error       // an event that could not be read
	troubled bool        // an answer that is not recorded yet is a failure: nothing is sent until it is
	news     chan struct{}
	looked   bool // all that is due is ready or flying
	stopped  bool // nothing more is sent in this pass
	disabled bool // nor in any other
	window   int  // requests at once, as far as its answers have earned them
	own      int  // of these, those that are not counted among all endpoints' others
	begun    time.Time
}

// flight is a delivery as it was sent, without what its event carries.
type flight struct {
	step int       // attempts before
	due  time.Time // what tells it from one that has been replayed meanwhile
}

// drainEndpoint sends what is due at an endpoint, and says when to look again.
func (d *Deliverer) drainEndpoint(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	endpoint, err := d.access.GetEndpoint(ctx, id)
	if isGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !d.judged(ctx, id, endpoint.Prompt) { // as another server has found
		return 0, nil
	}
	p := &pass{Deliverer: d, lease: lease, endpoint: endpoint, since: time.Now(), read: time.Now(), prompt: endpoint.Prompt, flying: map[uuid.UUID]flight{},
		landed: make(chan answer, healthyWidth), records: make(chan record, 1), news: make(chan struct{}, 1), stopped: holds(endpoint), disabled: endpoint.Disabled,
		window: firstWidth, own: ownOf(endpoint), begun: time.Now()}
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

// judged has an endpoint have its turn with those that are prompt, or with those that are not: false where there is no room among these,
// and it has to wait for it.
func (d *Deliverer) judged(ctx context.Context, webhook uuid.UUID, prompt bool) bool {
	d.loads.answered(webhook, prompt)
	if prompt {
		worker.Trust(ctx)
	}
	return prompt || worker.Doubt(ctx)
}

// holds says whether nothing is sent to an endpoint for now.
func holds(e access.Endpoint) bool { return e.Disabled || e.Paused || e.Suspended }

func isGone(err error) bool {
	e, ok := errors.AsType[*access.Error](err)
	return ok && e.Kind == access.NotFound
}

// run keeps as many requests in the air as the endpoint's health allows, until nothing is due. Meanwhile the answers that
// have come back are written down, all at once those that came while the ones before were being written.
func (p *pass) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer func() {
		for p.air > 0 {
			p.down()
		}
	}()
	defer others.Wait()
	defer cancel() // before the wait: on an error what is in the air is cut off
	for {
		if err := p.refill(ctx); err != nil {
			return err
		}
		for p.free() && len(p.ready) > 0 && p.up() {
			next, endpoint := p.ready[0], p.endpoint // which may be read anew meanwhile
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

// free says whether one more request may be sent.
func (p *pass) free() bool {
	return !p.stopped && !p.troubled && p.air < p.room() && len(p.flying) < readAhead
}

// room is how many requests may be in the air.
func (p *pass) room() int { return min(p.window, width(p.endpoint.Failures)) }

// up counts one more request in the air, unless there are too many: beyond its own an endpoint has at most a
// quarter as many as are left, so that there are some left for whoever comes next, and half of them are for those that answer. Otherwise it is tried again with the
// next answer, or look.
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

// unknown says whether the endpoint has answered nothing well, neither in this pass nor the last time before.
func (p *pass) unknown() bool { return p.own == 1 && p.window == firstWidth }

// down counts one less.
func (p *pass) down() {
	if p.air--; p.air >= p.own {
		p.more.Add(-1)
	}
}

// refill reads what is due, unless that is at hand.
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

// ahead is how many deliveries are read at once: an endpoint that hangs keeps few in memory, and there may be hundreds.
func (p *pass) ahead() int {
	room := p.room()
	if room == 1 || p.unknown() {
		return room
	}
	return readAhead / healthyWidth * room
}

// lookAgain reads the endpoint once more, should that be a while ago: its secret may have been rotated, or nothing may
// be sent there any more.
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

// wait is for an answer, for what is written down, or for more to send.
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
	case a.cut: // sent again by whoever comes next
		if a.unread != nil || a.withdrawn { // what else is in the air is answered and recorded first
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

// record is what is written down together.
type record struct {
	webhook  uuid.UUID
	attempts []access.DeliveryAttempt
	health   access.Health
	outcomes []string // of the attempts, for the metrics
	problem  string   // the last one
	err      error
}

// next is the record of all answers that have come back.
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
	if p.disabled { // all of these were sent before: they do not disable it again, should it be enabled by now
		r.health.Past, r.health.Disable = true, ""
	}
	p.answers, p.busy = nil, true
	return r
}

// recorded goes by what is now written down.
func (p *pass) recorded(r record) error {
	p.busy = false
	for _, a := range r.attempts {
		delete(p.flying, a.EventID)
	}
	p.troubled = slices.ContainsFunc(p.answers, func(a answer) bool { return !a.ok() && !a.unopened })
	if isGone(r.err) { // deleted: what is in the air is the last of it
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
		log.Error("the webhook is disabled; its events are kept and can be replayed", "reason", r.health.Disable)
	case r.health.Failures > 0:
		log.Info("a webhook's endpoint fails", "failures", r.health.Failures, "problem", r.problem)
	}
	p.stopped = p.stopped || r.health.Disable != "" || r.health.Pause > 0
	return nil
}
