package webhooks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/work"
)

const (
	readAhead = 4 * healthyWidth // deliveries kept at hand for one endpoint
	glance    = time.Second      // how often a busy endpoint is looked at for what other instances have made due
)

// pass is the work on one endpoint by the holder of its lease.
type pass struct {
	*Deliverer
	lease    *work.Lease
	endpoint access.Endpoint
	since    time.Time // when endpoint.FailingFor was read

	ready   []access.Delivery
	flying  map[uuid.UUID]access.Delivery
	landed  chan answer
	news    chan struct{}
	looked  bool // all that is due is ready or flying
	stopped bool // nothing more is sent in this pass
}

// drainEndpoint sends what is due at an endpoint, and says when to look again.
func (d *Deliverer) drainEndpoint(ctx context.Context, lease *work.Lease, id uuid.UUID) (time.Duration, error) {
	endpoint, err := d.access.GetEndpoint(ctx, id)
	if isGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	p := &pass{Deliverer: d, lease: lease, endpoint: endpoint, since: time.Now(), flying: map[uuid.UUID]access.Delivery{},
		landed: make(chan answer, healthyWidth), news: make(chan struct{}, 1), stopped: endpoint.Disabled || endpoint.Paused}
	d.news.Store(id, p.news)
	defer d.news.CompareAndDelete(id, p.news)
	if err := p.run(ctx); err != nil {
		return 0, err
	}
	due, err := d.access.ScheduleWebhook(ctx, id)
	if err != nil || due == nil {
		return 0, err
	}
	return max(time.Until(*due), time.Millisecond), nil
}

func isGone(err error) bool {
	e, ok := errors.AsType[*access.Error](err)
	return ok && e.Kind == access.NotFound
}

// run keeps as many requests in the air as the endpoint's health allows, until nothing is due.
func (p *pass) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel() // before the wait: on an error what is in the air is cut off
	for {
		if err := p.refill(ctx); err != nil {
			return err
		}
		for !p.stopped && len(p.ready) > 0 && len(p.flying) < width(p.endpoint.Failures) {
			next := p.ready[0]
			p.ready = p.ready[1:]
			p.flying[next.Event.ID] = next
			senders.Go(func() { p.landed <- p.send(ctx, p.endpoint.Webhook, next.Event) })
		}
		if len(p.flying) == 0 {
			return ctx.Err()
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// refill reads what is due, unless that is at hand.
func (p *pass) refill(ctx context.Context) error {
	p.stopped = p.stopped || p.stopping.Load()
	if p.stopped || p.looked || len(p.ready) > 0 || len(p.flying) >= width(p.endpoint.Failures) {
		return nil
	}
	limit := readAhead
	if width(p.endpoint.Failures) == 1 {
		limit = 1
	}
	due, err := p.access.DueDeliveries(ctx, p.endpoint.ID, slices.Collect(maps.Keys(p.flying)), limit)
	if err != nil {
		return err
	}
	p.ready, p.looked = due, len(due) < limit
	return nil
}

// wait is for an answer, or for more to send.
func (p *pass) wait(ctx context.Context) error {
	timer := time.NewTimer(glance)
	defer timer.Stop()
	select {
	case a := <-p.landed:
		answers := []answer{a}
		for {
			select {
			case a = <-p.landed:
				answers = append(answers, a)
				continue
			default:
			}
			return p.record(ctx, answers)
		}
	case <-p.news:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.looked = false
	return nil
}

// record writes down what has come back.
func (p *pass) record(ctx context.Context, answers []answer) error {
	answers = slices.DeleteFunc(answers, func(a answer) bool { return a.cut })
	if len(answers) == 0 {
		return ctx.Err()
	}
	attempts := make([]access.DeliveryAttempt, len(answers))
	for i, a := range answers {
		attempts[i] = p.opt.next(a, p.flying[a.event].Step)
		delete(p.flying, a.event)
	}
	health := p.opt.health(p.endpoint.Failures, p.endpoint.FailingFor+time.Since(p.since), answers)
	err := p.access.RecordDeliveries(ctx, p.lease, p.endpoint.ID, attempts, health)
	if isGone(err) { // deleted: what is in the air is the last of it
		p.stopped = true
		return nil
	}
	if err != nil {
		return err
	}
	if p.endpoint.Failures = health.Failures; health.Recovered {
		p.endpoint.FailingFor, p.since = 0, time.Now()
	}
	log := p.opt.Log.With("webhook", p.endpoint.ID)
	switch {
	case health.Disable != "":
		log.Error("the webhook is disabled; its events are kept and can be replayed", "reason", health.Disable)
	case health.Failures > 0:
		log.Info("a webhook's endpoint fails", "failures", health.Failures, "problem", answers[len(answers)-1].problem)
	}
	p.stopped = p.stopped || health.Disable != "" || health.Pause > 0
	return nil
}
