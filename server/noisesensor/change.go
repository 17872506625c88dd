package noisesensor

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Change is what a client sets of a threshold. Fields without a value stay as they are.
type Change struct {
	Name string
	// StartsAt and EndsAt are in the form of noise.ParseTime.
	StartsAt, EndsAt string
	// At most one of Decibels and NRS is set.
	Decibels, NRS *float64
}

// state returns the state that a change makes of was. It fails with Invalid.
func (c Change) state(was noise.State, caps capability.NoiseSensor) (noise.State, error) {
	s := was
	var err error
	if c.StartsAt != "" || c.EndsAt != "" {
		s.Window, err = noise.ParseWindow(cmp.Or(c.StartsAt, was.StartsAt()), cmp.Or(c.EndsAt, was.EndsAt()))
	}
	if err == nil && (c.Decibels != nil || c.NRS != nil) {
		err = noise.CheckLevel(c.Decibels, c.NRS, caps)
		s.Decibels, s.NRS = domain.Value(c.Decibels), c.NRS
	}
	s.Name = cmp.Or(c.Name, was.Name, fmt.Sprintf("Noise threshold from %s to %s", s.Starts, s.Ends))
	return s, err
}

// Create creates a threshold. It returns the attempt, which ends when the device shows the threshold. It fails with
// NotFound, with TooMany, and with Invalid.
func (s *Service) Create(
	ctx context.Context, p domain.Principal, deviceID string, c Change,
) (out Threshold, a device.Attempt, err error) {
	a, err = s.change(ctx, p, deviceID, domain.CreateNoiseThreshold, func(t *sensorTx, caps capability.NoiseSensor) (
		*noise.Threshold, error,
	) {
		if err := noise.CheckLevel(c.Decibels, c.NRS, caps); err != nil {
			return nil, err
		}
		if err := noise.CheckRoom(t.Thresholds, caps); err != nil {
			return nil, err
		}
		one := &noise.Threshold{ID: domain.NewID()}
		state, err := t.check(one, c, caps)
		if err != nil {
			return nil, err
		}
		one.Request(state, false)
		t.Thresholds = append(t.Thresholds, one)
		out = Threshold{one.ID, t.d.DeviceID, state}
		return one, nil
	})
	return out, a, err
}

// Update changes a threshold. It returns the attempt, which ends when the device shows the change. It fails with
// NotFound, with TooMany, and with Invalid.
func (s *Service) Update(
	ctx context.Context, p domain.Principal, deviceID, id string, c Change,
) (device.Attempt, error) {
	return s.change(ctx, p, deviceID, domain.UpdateNoiseThreshold, func(t *sensorTx, caps capability.NoiseSensor) (
		*noise.Threshold, error,
	) {
		one, err := t.find(id)
		if err != nil {
			return nil, err
		}
		if one.Deleting {
			return nil, notFound(id)
		}
		state, err := t.check(one, c, caps)
		if err != nil {
			return nil, err
		}
		one.Request(state, false)
		return one, nil
	})
}

// Delete deletes a threshold. It returns the attempt, which ends when the threshold has left the device. It fails with
// NotFound, with TooMany, and with Invalid if the device has a fixed set of thresholds.
func (s *Service) Delete(ctx context.Context, p domain.Principal, deviceID, id string) (device.Attempt, error) {
	return s.change(ctx, p, deviceID, domain.DeleteNoiseThreshold, func(t *sensorTx, caps capability.NoiseSensor) (
		*noise.Threshold, error,
	) {
		one, err := t.find(id)
		if err != nil {
			return nil, err
		}
		if caps.Fixed {
			return nil, domain.Invalidf("noise_threshold_id",
				"The thresholds of this sensor are fixed. Update this one instead")
		}
		one.Request(one.Desired, true)
		return one, nil
	})
}

// change runs f on the thresholds of a noise sensor, and begins an attempt about the threshold that f returns.
func (s *Service) change(
	ctx context.Context, p domain.Principal, deviceID, action string,
	f func(*sensorTx, capability.NoiseSensor) (*noise.Threshold, error),
) (a device.Attempt, err error) {
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return a, device.NotFound(deviceID)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d, err := device.LockManaged(ctx, tx, p, id)
		if err != nil {
			return err
		}
		caps := device.CapabilitiesOf(d).NoiseSensor
		if caps == nil {
			return device.NotFound(deviceID)
		}
		t, err := s.load(ctx, tx, d)
		if err != nil {
			return err
		}
		one, err := f(t, *caps)
		if err != nil {
			return err
		}
		if err := t.write(ctx); err != nil {
			return err
		}
		if a, err = s.devices.NewThresholdAttempt(ctx, tx, d, action, one.ID); err != nil {
			return err
		}
		return s.accounts.WakeDevice(ctx, tx, id, true)
	})
	return a, domain.Wrap(err, "change the noise thresholds of device "+id.String())
}

func (t *sensorTx) find(id string) (*noise.Threshold, error) {
	if parsed, err := uuid.Parse(id); err == nil {
		if one := t.Threshold(parsed); one != nil {
			return one, nil
		}
	}
	return nil, notFound(id)
}

// check returns the state that a change makes of a threshold. It fails with Invalid.
func (t *sensorTx) check(one *noise.Threshold, c Change, caps capability.NoiseSensor) (noise.State, error) {
	state, err := c.state(one.Desired, caps)
	if err != nil {
		return state, err
	}
	zone := zoneOf(domain.Value(t.d.ReportedTimeZone))
	return state, noise.CheckDisjoint(t.Thresholds, one.ID, state.Window, caps, t.Now, zone)
}
