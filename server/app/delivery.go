package app

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// endpointWorkers is the maximum number of endpoints with deliveries in flight. Three quarters may belong to one
// workspace, seven eighths to workspaces of one credential, and seven eighths may be endpoints that were suspect at
// their last delivery. Each worker holds a few HTTP requests and no database connection. A hanging endpoint gets three
// to five attempts of 15 s and then a pause of up to a minute, so several times as many endpoints can be dead
// permanently.
const endpointWorkers = 600

// delivery sends events to webhooks. It has its own engine so that hanging endpoints do not block work on devices.
type delivery struct {
	deliverer *webhook.Deliverer
	sweeper   *retention.Sweeper
	engine    *worker.Engine
	started   bool
}

func newDelivery(w *worker.Waker, a *access.Services, c Config) (*delivery, error) {
	d := &delivery{
		deliverer: webhook.New(a.Webhooks, c.Webhooks),
		sweeper:   retention.NewSweeper(a.Retention, c.Retention),
	}
	c.Work.Workers, c.Work.NoConnQuotas = endpointWorkers, true
	var err error
	d.engine, err = worker.NewEngine(w, c.Work, append(d.deliverer.Lanes(), d.sweeper.Lanes()...)...)
	return d, err
}

func (d *delivery) start(ctx context.Context) error {
	err := d.engine.Start(ctx)
	d.started = err == nil
	return err
}

func (d *delivery) stop(ctx context.Context) error {
	if !d.started {
		return nil
	}
	d.deliverer.Quiesce()
	d.sweeper.Quiesce()
	return d.engine.Stop(ctx)
}
