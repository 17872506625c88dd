package app

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// endpointWorkers is how many endpoints are sent to at once: three quarters may be of one workspace, seven eighths of all that one
// credential has made, and seven eighths such as have not been prompt the last time, whoever's they are. Each costs a few requests in the air and no connection of the database. One that goes on hanging
// is tried three to five times for 15 s and then left alone for up to a minute, so that several times as many can be dead for good.
const endpointWorkers = 600

// delivery is the sending of events. It has an engine of its own, so that endpoints which hang keep no
// worker from a device.
type delivery struct {
	deliverer *webhook.Deliverer
	sweeper   *retention.Sweeper
	engine    *worker.Engine
	started   bool
}

func newDelivery(w *worker.Waker, a *access.Service, c Config) (*delivery, error) {
	d := &delivery{deliverer: webhook.New(a, c.Webhooks), sweeper: retention.NewSweeper(a, c.Retention)}
	c.Work.Workers, c.Work.Undivided = endpointWorkers, true
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
