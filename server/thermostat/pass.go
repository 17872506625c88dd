package thermostat

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Report is what happened at a thermostat since the last transaction of a pass.
type Report struct {
	// Sent is the setting that the vendor has answered with Outcome; nil: none.
	Sent    *climate.Setting
	Outcome climate.Outcome
	// Read is true if the device was read, and Observed what it showed; nil: nothing. Asked is when the read was begun,
	// and Seq the wake-up that it covers.
	Read     bool
	Observed *climate.Observed
	Asked    time.Time
	Seq      int64
}

// Work is what a thermostat needs.
type Work struct {
	// Send is the setting to write now, which is recorded as started; nil: nothing.
	Send *climate.Setting
	// Due is when to read the device again unless it is woken earlier; nil: when it is woken.
	Due *time.Time
	// Seq is the last wake-up that the plan covers. ReadNeeded means that a wake-up asked for another read since.
	Seq        int64
	ReadNeeded bool
}

// Advance records a report and returns what the thermostat needs. It returns something to send only after a read. A
// device that was removed, erased, or became unmanaged needs nothing.
func (s *Service) Advance(ctx context.Context, h store.Fence, id uuid.UUID, report Report) (w Work, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		w = Work{}
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		d, err := tx.LockDevice(ctx, id)
		if store.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		limits := device.CapabilitiesOf(d).Thermostat
		if limits == nil || !d.IsManaged || d.RemovedAt != nil {
			w.Seq = d.WakeSeq
			return nil
		}
		r, err := s.loadCurrent(ctx, tx, d, *limits)
		if err != nil {
			return err
		}
		w, err = r.advance(ctx, report)
		return err
	})
	if err != nil {
		return w, fmt.Errorf("plan the thermostat %s: %w", id, err)
	}
	return w, nil
}

func (r *rows) advance(ctx context.Context, report Report) (w Work, err error) {
	if report.Sent != nil {
		r.rules.Record(*report.Sent, report.Outcome)
	}
	w.Seq = r.d.WakeSeq
	w.ReadNeeded = r.d.ReadNeeded
	if report.Read {
		was := r.rules.State.Observed
		if report.Observed != nil && (was == nil || !device.IsOvertaken(report.Asked, was.At)) {
			r.observe(*report.Observed)
		}
		w.ReadNeeded = r.d.ReadNeeded && r.d.WakeSeq != report.Seq
		err := r.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{DeviceID: r.d.DeviceID, WakeSeq: report.Seq})
		if err != nil {
			return w, err
		}
	}
	plan := r.rules.Plan()
	w.Due = plan.Due
	if plan.Send != nil && report.Read {
		r.rules.Start(*plan.Send)
		w.Send = plan.Send
	}
	if poll := r.rules.Now.Add(r.s.opt.PollInterval); w.Due == nil || poll.Before(*w.Due) {
		w.Due = &poll
	}
	return w, r.write(ctx)
}

// observe records what a read has shown, by the clock of the rules.
func (r *rows) observe(o climate.Observed) {
	o.At = r.rules.Now
	r.rules.Observe(o)
}

// recordFound records a thermostat in the list of its account, unless nothing has changed. It wakes the device if that
// needs something.
func (s *Service) recordFound(ctx context.Context, tx store.Tx, d dbsqlc.Device, f device.FoundDevice) error {
	limits := f.Capabilities.Thermostat
	if f.Thermostat == nil || limits == nil || !d.IsManaged {
		return nil
	}
	d.Online = f.Online
	known, err := s.thermostat(d, *limits)
	if err != nil {
		return err
	}
	// The caller holds the locks of all devices of the account, so what has not changed costs no query.
	if was := known.State.Observed; was != nil {
		if device.IsOvertaken(f.Asked, was.At) {
			return s.accounts.WakeDevice(ctx, tx, d.DeviceID, true)
		}
		f.Thermostat.At = was.At
		if reflect.DeepEqual(was, f.Thermostat) {
			return nil
		}
	}
	r, err := s.loadCurrent(ctx, tx, d, *limits)
	if err != nil {
		return err
	}
	r.observe(*f.Thermostat)
	plan := r.rules.Plan()
	if err := r.write(ctx); err != nil {
		return err
	}
	earlier := plan.Due != nil && (d.DueAt == nil || plan.Due.Before(*d.DueAt))
	if plan.Send == nil && !earlier {
		return nil
	}
	return s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
}
