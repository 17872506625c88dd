package reconcile

import (
	"cmp"
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
)

// maxThermostatWrites is how many settings a pass sends. A second one follows a change during the first.
const maxThermostatWrites = 3

// isManagedThermostat reports whether the server sets the device. Another thermostat is read only for its presence.
func isManagedThermostat(d device.Device) bool { return d.Managed && d.Capabilities.Thermostat != nil }

// runThermostat does the work of a pass over a thermostat, and returns when to look again. A read decides what to write,
// so it also repairs what a crash has left.
func (p *pass) runThermostat(ctx context.Context) (time.Duration, error) {
	var report thermostat.Report
	for writes := 0; ; {
		w, err := p.readThermostat(ctx, report)
		if err != nil {
			return p.park(ctx, p.work, err)
		}
		if w.Send == nil {
			p.endProblem()
			return p.endThermostat(ctx, w)
		}
		if report, err = p.setThermostat(ctx, *w.Send); err != nil {
			return p.park(ctx, p.work, err)
		}
		if writes++; writes < maxThermostatWrites && report.Outcome.Failure == nil {
			continue
		}
		if w, err = p.access.Thermostats.Advance(ctx, p.lease, p.device.ID, report); err != nil {
			return 0, err
		}
		return p.endThermostat(ctx, w)
	}
}

// readThermostat reads the device, and records what it shows after the report of a write.
func (p *pass) readThermostat(ctx context.Context, report thermostat.Report) (w thermostat.Work, err error) {
	asked := p.access.Devices.Now()
	d, err := p.adapter.Device(ctx, p.ref)
	if err != nil {
		p.unread = true
		if report.Sent != nil {
			_, recorded := p.access.Thermostats.Advance(ctx, p.lease, p.device.ID, report)
			err = cmp.Or(recorded, err)
		}
		return w, err
	}
	if device.OtherSerial(p.device.SerialNumber, d.SerialNumber) {
		return w, &adapter.Error{
			Class:   adapter.NotFound,
			Message: "another device answers in its place",
			Gone:    true,
		}
	}
	found := toFoundDevice(d, p.device.Capabilities, asked)
	report.Read, report.Observed, report.Asked, report.Seq = true, found.Thermostat, asked, p.readSeq
	found.Thermostat = nil // recorded with the report
	if err := p.access.Devices.RecordDevice(ctx, p.lease, p.device.ID, found); err != nil {
		return w, err
	}
	w, err = p.access.Thermostats.Advance(ctx, p.lease, p.device.ID, report)
	p.readSeq = w.Seq
	return w, err
}

// setThermostat sends a setting, and returns the outcome. It fails if the device cannot be reached.
func (p *pass) setThermostat(ctx context.Context, s climate.Setting) (thermostat.Report, error) {
	report := thermostat.Report{Sent: &s}
	controller, ok := p.adapter.(adapter.ThermostatController)
	if !ok {
		report.Outcome.Failure = &climate.Failure{
			Class:   climate.NotSupported,
			Message: "The adapter of this device cannot set thermostats.",
		}
		return report, nil
	}
	state, err := controller.SetThermostat(ctx, p.ref, adapter.ThermostatSetting{
		Mode: s.Mode,
		Fan:  s.Fan,
		Heat: s.Heat,
		Cool: s.Cool,
	})
	switch {
	case err == nil && state == adapter.Confirmed:
		report.Outcome.State = climate.Confirmed
	case err == nil:
		report.Outcome.State = climate.Accepted
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil ||
		adapter.ClassOf(err) == adapter.NotFound:
		return report, err
	case adapter.ClassOf(err) == adapter.Unconfirmed:
		report.Outcome.State = climate.Unknown
	default:
		report.Outcome.Failure = toClimateFailure(err)
	}
	return report, nil
}

// toClimateFailure converts an adapter's error to its meaning for a setting.
func toClimateFailure(err error) *climate.Failure {
	e := adapter.AsError(err)
	f := &climate.Failure{
		Class:      climate.Transient,
		Message:    domain.Storable(e.Message),
		RetryAfter: e.RetryAfter,
	}
	switch e.Class {
	case adapter.Invalid:
		f.Class = climate.Invalid
	case adapter.NotSupported:
		f.Class = climate.NotSupported
	}
	return f
}

// endThermostat ends the pass.
func (p *pass) endThermostat(ctx context.Context, w thermostat.Work) (time.Duration, error) {
	due := p.work
	if due.Seq = w.Seq; w.ReadNeeded {
		due.Seq = p.seq
	}
	if w.Due != nil && (due.Due == nil || w.Due.Before(*due.Due)) {
		due.Due = w.Due
	}
	return p.schedule(ctx, due)
}
