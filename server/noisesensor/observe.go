package noisesensor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Plan is what a device needs.
type Plan struct {
	// Operations are the operations that are due.
	Operations []noise.Operation
	// Due is when the next one is; nil: when the device is woken.
	Due *time.Time
}

// Read is what was read from a device. Asked is when the read was begun, and Seq that of the work that it was for.
type Read struct {
	noise.Observed

	Asked time.Time
	Seq   int64
}

// Observe records what was read from a device by the holder of its lease, and plans. A device that is not managed or was
// removed needs nothing. A read that was overtaken by news counts for nothing, and the device is read again.
func (s *Service) Observe(ctx context.Context, h store.Fence, id uuid.UUID, r Read) (p Plan, err error) {
	o := storable(r.Observed)
	err = s.onDevice(ctx, h, id, "record the noise thresholds", func(t *sensorTx) error {
		p = Plan{}
		if device.IsOvertaken(r.Asked, t.document().At) {
			return s.accounts.WakeDevice(ctx, t.tx, id, true)
		}
		t.Observe(o.Thresholds)
		p.Operations, p.Due = t.Plan()
		if err := t.saveDocument(ctx, o); err != nil {
			return err
		}
		return device.RecordRead(ctx, t.tx, t.d, r.Seq)
	})
	return p, err
}

// Record records the outcome of an operation.
func (s *Service) Record(
	ctx context.Context, h store.Fence, id uuid.UUID, op noise.Operation, outcome noise.Outcome,
) error {
	if !domain.ValidRef(outcome.Ref) {
		outcome.Ref = ""
	}
	if f := outcome.Failure; f != nil {
		f.Message = domain.Storable(f.Message)
	}
	return s.onDevice(ctx, h, id, "record a noise threshold", func(t *sensorTx) error {
		t.Record(op, outcome)
		return nil
	})
}

// onDevice runs f on the thresholds of a managed device, and writes the changes.
func (s *Service) onDevice(
	ctx context.Context, h store.Fence, id uuid.UUID, doing string, f func(*sensorTx) error,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		d, err := tx.LockDevice(ctx, id)
		if store.IsNoRows(err) || err == nil && (d.RemovedAt != nil || !d.IsManaged) { // changed since
			return nil
		}
		if err != nil {
			return err
		}
		t, err := s.load(ctx, tx, d)
		if err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		return t.write(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s of device %s: %w", doing, id, err)
	}
	return nil
}

// recordListed records the state of a noise sensor in a list of its vendor. A list may be older than the last write, so
// that a difference in the thresholds makes the device be read.
func (s *Service) recordListed(ctx context.Context, tx store.Tx, d dbsqlc.Device, f device.FoundDevice) error {
	if f.NoiseSensor == nil || !d.IsManaged {
		return nil
	}
	o := storable(*f.NoiseSensor)
	was := documentOf(d)
	switch {
	case device.IsOvertaken(f.Asked, was.At):
		return s.accounts.WakeDevice(ctx, tx, d.DeviceID, true)
	case same(was.Observed, o):
		return nil
	}
	read := !same(was.Observed.Thresholds, o.Thresholds)
	o.Thresholds = was.Observed.Thresholds
	t, err := s.load(ctx, tx, d)
	if err != nil {
		return err
	}
	if err := t.saveDocument(ctx, o); err != nil || !read {
		return err
	}
	return s.accounts.WakeDevice(ctx, tx, d.DeviceID, true)
}

// saveDocument stores what a vendor says of a noise sensor, and reports the thresholds that the noise has begun to
// exceed.
func (t *sensorTx) saveDocument(ctx context.Context, o noise.Observed) error {
	was := t.document()
	now := noise.Document{Observed: o, At: was.At}
	for _, ref := range o.Triggering {
		i := slices.IndexFunc(t.Thresholds, func(one *noise.Threshold) bool { return one.Ref == ref })
		if i < 0 { // not read yet
			continue
		}
		one := t.Thresholds[i]
		now.Triggering = append(now.Triggering, one.ID)
		if slices.Contains(was.Triggering, one.ID) {
			continue
		}
		if err := t.emitTriggered(ctx, one, o); err != nil {
			return err
		}
	}
	if t.d.Noise != nil && same(was, now) {
		return nil
	}
	now.At = t.Now
	document := domain.MustJSON(now)
	t.d.Noise = document
	return t.tx.SetDeviceNoise(ctx, dbsqlc.SetDeviceNoiseParams{DeviceID: t.d.DeviceID, Noise: document})
}

// document returns what is known of the noise sensor.
func (t *sensorTx) document() noise.Document { return documentOf(t.d) }

func documentOf(d dbsqlc.Device) noise.Document {
	if known := device.NoiseOf(d); known != nil {
		return *known
	}
	return noise.Document{}
}

func (t *sensorTx) emitTriggered(ctx context.Context, one *noise.Threshold, o noise.Observed) error {
	about := event.AboutDevice(t.d).
		With("noise_threshold_id", one.ID).
		With("noise_threshold_name", one.Desired.Name)
	if o.Decibels != nil {
		about = about.With("noise_level_decibels", *o.Decibels)
	}
	if o.NRS != nil {
		about = about.With("noise_level_nrs", *o.NRS)
	}
	for field, value := range metadata(t.d, o) {
		about = about.With(field, value)
	}
	return t.s.events.Emit(ctx, t.tx, "noise_sensor.noise_threshold_triggered", about)
}

// metadata returns the metadata of the vendor in an event.
func metadata(d dbsqlc.Device, o noise.Observed) map[string]any {
	out := map[string]any{"device_id": d.VendorRef, "device_name": d.Name}
	switch d.Provider {
	case "minut":
		if o.Decibels != nil {
			out["latest_sensor_values"] = map[string]any{"sound": map[string]any{"value": *o.Decibels}}
		}
	case "noiseaware":
		if o.Decibels != nil {
			out["noise_level_decibel"] = *o.Decibels
		}
		if o.NRS != nil {
			out["noise_level_nrs"] = *o.NRS
		}
	default:
		return nil
	}
	return map[string]any{d.Provider + "_metadata": out}
}

// storable returns what a vendor says in a form that is stored. Thresholds without a valid reference can be neither
// changed nor removed.
func storable(o noise.Observed) noise.Observed {
	thresholds := o.Thresholds
	o.Thresholds = nil
	for _, f := range thresholds {
		if !domain.ValidRef(f.Ref) || len(o.Thresholds) == noise.MaxThresholds {
			continue
		}
		f.Name = domain.CleanName(f.Name)
		for _, text := range []*string{&f.Key, &f.StartsDaily, &f.EndsDaily, &f.TimeZone} {
			*text = domain.Storable(*text)
		}
		o.Thresholds = append(o.Thresholds, f)
	}
	o.Triggering = slices.DeleteFunc(slices.Clone(o.Triggering), func(ref string) bool { return !domain.ValidRef(ref) })
	return o
}

// same reports whether two values are stored as the same JSON.
func same[T any](a, b T) bool { return string(domain.MustJSON(a)) == string(domain.MustJSON(b)) }
