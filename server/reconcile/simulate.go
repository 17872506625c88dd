package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// seenWithin bounds how long a simulation waits until what it did at the device has been noticed.
const seenWithin = 10 * time.Second

// SetOnline brings a simulated device online or takes it offline, and returns when that has been noticed.
// It fails with NotFound, and with Invalid for a device that is real.
func (r *Reconciler) SetOnline(ctx context.Context, p access.Principal, deviceID string, online bool) error {
	d, sim, err := r.simulated(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := sim.SetOnline(ctx, adapter.DeviceRef(d.Ref), online); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.GetDevice(ctx, p, deviceID, "")
		return now.Online == online, err
	})
}

// RemoveDevice removes a simulated device from its account, and returns when that has been noticed.
// It fails like SetOnline.
func (r *Reconciler) RemoveDevice(ctx context.Context, p access.Principal, deviceID string) error {
	d, sim, err := r.simulated(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := sim.RemoveDevice(ctx, adapter.DeviceRef(d.Ref)); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, d.Ref, func(ctx context.Context) (bool, error) {
		_, err := r.access.GetDevice(ctx, p, deviceID, "")
		if e, ok := errors.AsType[*access.Error](err); ok && e.Kind == access.NotFound {
			return true, nil
		}
		return false, err
	})
}

// AddUnmanagedCode types a code in at the keypad of a simulated device, and returns it once it has been read.
// It fails like SetOnline, and with Invalid or Conflict when the lock refuses the code.
func (r *Reconciler) AddUnmanagedCode(ctx context.Context, p access.Principal, deviceID, name, pin string) (c access.Code, err error) {
	d, sim, err := r.simulated(ctx, p, deviceID)
	if err != nil {
		return c, err
	}
	ref, err := sim.AddCode(ctx, adapter.DeviceRef(d.Ref), name, pin)
	if err != nil {
		return c, simulation(err)
	}
	err = r.seen(ctx, d, d.Ref, func(ctx context.Context) (found bool, err error) {
		c, found, err = r.access.CodeByRef(ctx, d.ID, string(ref))
		return found, err
	})
	return c, err
}

func (r *Reconciler) simulated(ctx context.Context, p access.Principal, deviceID string) (access.Device, adapter.Simulator, error) {
	d, err := r.access.SimulatedDevice(ctx, p, deviceID)
	if err != nil {
		return d, nil, err
	}
	a, err := r.adapters.Get(ctx, d.AccountID)
	if err != nil {
		return d, nil, err
	}
	sim, ok := a.(adapter.Simulator)
	if !ok {
		return d, nil, fmt.Errorf("the adapter of device %s cannot simulate", d.ID)
	}
	return d, sim, nil
}

// seen has the device (or, without ref, its account) looked at, and waits until that shows.
func (r *Reconciler) seen(ctx context.Context, d access.Device, ref string, shows func(context.Context) (bool, error)) error {
	if err := r.access.Hint(ctx, d.AccountID, ref); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	for {
		ok, err := shows(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return &access.Error{Kind: access.Unavailable, Type: "simulation_not_noticed",
				Message: "The device was simulated upon, but that has not been noticed yet. Is the device online? Read it again in a moment."}
		}
	}
}

// simulation puts the refusal of a simulated device into the words of package access.
func simulation(err error) error {
	e := adapter.AsError(err)
	if e == nil {
		return err
	}
	switch e.Class {
	case adapter.Duplicate:
		return &access.Error{Kind: access.Conflict, Type: "duplicate_access_code", Field: "code", Message: "The device already has this code. Choose another."}
	case adapter.Full, adapter.Invalid, adapter.NotSupported:
		return &access.Error{Kind: access.Invalid, Type: "device_refused", Message: e.Message}
	default:
		return err
	}
}
