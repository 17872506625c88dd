package reconcile

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
)

// isNoiseSensor reports whether the passes over a device are those of a noise sensor.
func isNoiseSensor(d device.Device) bool { return d.Managed && d.Capabilities.NoiseSensor != nil }

// runNoiseSensor does the work of a pass over a noise sensor. Each read decides the operations that follow, so that the
// next pass repairs the effects of a crash at any point.
func (p *pass) runNoiseSensor(ctx context.Context) error {
	plan, err := p.readNoiseSensor(ctx)
	for err == nil && len(plan.Operations) > 0 {
		for _, op := range plan.Operations {
			if err := p.sendThreshold(ctx, op); err != nil {
				return err
			}
		}
		plan, err = p.readNoiseSensor(ctx)
	}
	if err != nil {
		return err
	}
	_, err = p.advance(ctx, device.Report{Answered: p.work.Failures > 0}, func(w device.Work) device.Next {
		due := w.Due
		if plan.Due != nil && (due == nil || plan.Due.Before(*due)) {
			due = plan.Due
		}
		return device.Next{End: true, Due: due, Seq: p.seq}
	})
	if plan.Due != nil && (p.work.Due == nil || plan.Due.Before(*p.work.Due)) {
		p.work.Due = plan.Due
	}
	return err
}

// readNoiseSensor reads the device, and records what it found.
func (p *pass) readNoiseSensor(ctx context.Context) (noisesensor.Plan, error) {
	asked := p.access.Devices.Now()
	d, err := p.adapter.Device(ctx, p.ref)
	if err != nil {
		p.unread = true
		return noisesensor.Plan{}, err
	}
	if device.OtherSerial(p.device.SerialNumber, d.SerialNumber) {
		return noisesensor.Plan{}, &adapter.Error{
			Class:   adapter.NotFound,
			Message: "another device answers in its place",
			Gone:    true,
		}
	}
	if d.NoiseSensor == nil {
		return noisesensor.Plan{}, adapter.Errorf(adapter.Transient, "the vendor does not report the thresholds")
	}
	plan, err := p.access.NoiseSensors.Observe(ctx, p.lease, p.device.ID, noisesensor.Read{
		Observed: *toObservedNoise(d.NoiseSensor),
		Asked:    asked,
		Seq:      p.seq,
	})
	if err != nil {
		return plan, err
	}
	return plan, p.access.Devices.RecordDevice(
		ctx,
		p.lease,
		p.device.ID,
		toFoundDevice(d, p.device.Capabilities, asked),
	)
}

// sendThreshold sends an operation to the device, and records its outcome. It returns an error that concerns the
// connection to the device.
func (p *pass) sendThreshold(ctx context.Context, op noise.Operation) error {
	outcome, err := p.putThreshold(ctx, op)
	e := adapter.AsError(err)
	switch {
	case err == nil:
	case isUnreachable(err) || ctx.Err() != nil || e == nil:
		return err
	case e.Class == adapter.NotFound:
		// The whole device may be missing.
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return err
		}
		outcome.Failure = &noise.Failure{Absent: true}
	default:
		outcome.Failure = &noise.Failure{
			Refused: e.Class == adapter.Invalid || e.Class == adapter.Full || e.Class == adapter.NotSupported ||
				e.Class == adapter.Duplicate,
			Unsure:     e.Class == adapter.Unconfirmed,
			Message:    e.Message,
			RetryAfter: e.RetryAfter,
		}
	}
	return p.access.NoiseSensors.Record(ctx, p.lease, p.device.ID, op, outcome)
}

func (p *pass) putThreshold(ctx context.Context, op noise.Operation) (out noise.Outcome, err error) {
	controller, ok := p.adapter.(adapter.NoiseController)
	switch {
	case !ok:
		return out, adapter.Errorf(adapter.NotSupported, "the adapter of this device cannot change noise thresholds")
	case op.Delete:
		_, err = controller.DeleteNoiseThreshold(ctx, p.ref, adapter.ThresholdRef(op.Ref))
		return out, err
	}
	ref, _, err := controller.PutNoiseThreshold(ctx, p.ref, adapter.NoiseThreshold{
		Ref:         adapter.ThresholdRef(op.Ref),
		Key:         op.Threshold.String(),
		Name:        op.State.Name,
		StartsDaily: op.State.Starts,
		EndsDaily:   op.State.Ends,
		TimeZone:    op.State.Zone,
		Decibels:    op.State.Decibels,
		NRS:         op.State.NRS,
	})
	out.Ref = string(ref)
	return out, err
}
