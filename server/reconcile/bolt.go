package reconcile

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// bolt does the next of what was asked for about the device's bolt. A command is sent once: when nobody knows
// whether it got through, the device is looked at until it shows that, or until the attempt is given up. A door
// that opened a second time, minutes later, would be worse than one that did not open.
func (p *pass) bolt(ctx context.Context, w access.BoltWork) error {
	if w.Started {
		return p.boltShown(ctx, w)
	}
	locker, ok := p.adapter.(adapter.Locker)
	if !ok {
		return p.access.RecordBoltFailed(ctx, p.lease, p.device.ID, w, "device_type_not_supported", "The way to this device cannot move its bolt.")
	}
	if still, err := p.access.RecordBoltStarted(ctx, p.lease, p.device.ID, w); err != nil || !still {
		return err
	}
	move := locker.Unlock
	if w.Lock {
		move = locker.Lock
	}
	state, err := move(ctx, p.ref)
	switch {
	case err == nil && state == adapter.Confirmed:
		return p.access.RecordBoltMoved(ctx, p.lease, p.device.ID, w)
	case err == nil:
		return nil // the vendor tells, or the device shows it
	}
	return p.boltRefused(ctx, w, err)
}

// delayTolerance is how far the delay that a device shows may be from the one that it was told: devices keep
// milliseconds at best.
const delayTolerance = time.Millisecond

// autoLock tells the device whether to lock itself, once, and looks until it shows that.
func (p *pass) autoLock(ctx context.Context, w access.AutoLockWork) error {
	if w.Started {
		d, err := p.adapter.Device(ctx, p.ref)
		if err != nil || d.AutoLock == nil || d.AutoLock.Enabled != w.Enabled || (w.Enabled && (d.AutoLock.Delay-adapter.Seconds(w.Delay)).Abs() > delayTolerance) {
			return err
		}
		return p.access.RecordAutoLockSet(ctx, p.lease, p.device.ID, w)
	}
	attempt := access.BoltWork{Attempt: w.Attempt}
	locker, ok := p.adapter.(adapter.AutoLocker)
	if !ok {
		return p.access.RecordBoltFailed(ctx, p.lease, p.device.ID, attempt, "device_type_not_supported", "The way to this device cannot configure it.")
	}
	if still, err := p.access.RecordBoltStarted(ctx, p.lease, p.device.ID, attempt); err != nil || !still {
		return err
	}
	state, err := locker.ConfigureAutoLock(ctx, p.ref, adapter.AutoLock{Enabled: w.Enabled, Delay: adapter.Seconds(w.Delay)})
	switch {
	case err == nil && state == adapter.Confirmed:
		return p.access.RecordAutoLockSet(ctx, p.lease, p.device.ID, w)
	case err == nil:
		return nil // the device shows it
	}
	return p.boltRefused(ctx, attempt, err)
}

// boltRefused records why a command did not get through; those errors are returned that are about the way to the
// device.
func (p *pass) boltRefused(ctx context.Context, w access.BoltWork, err error) error {
	e := adapter.AsError(err)
	if e == nil || ctx.Err() != nil {
		return err
	}
	fail := func(errorType, message string) error {
		return p.access.RecordBoltFailed(ctx, p.lease, p.device.ID, w, errorType, message)
	}
	var failed error
	switch e.Class {
	case adapter.Unconfirmed:
		return nil
	case adapter.Transient, adapter.GatewayDown:
		failed = p.access.RecordBoltNotStarted(ctx, p.lease, p.device.ID, w)
	case adapter.Offline:
		failed = fail("device_offline", "The device is offline. Try again when it is back.")
	case adapter.AuthRevoked:
		failed = fail("account_disconnected", "The vendor refuses the account's credentials. Connect the account again.")
	case adapter.NotFound:
		failed = fail("device_removed", "The device is no longer in its vendor account.")
	case adapter.NotSupported:
		return fail("device_type_not_supported", e.Message)
	default:
		return fail("device_refused", e.Message)
	}
	if failed != nil {
		return failed
	}
	return err
}

// boltShown looks whether the bolt is where it was to go.
func (p *pass) boltShown(ctx context.Context, w access.BoltWork) error {
	d, err := p.adapter.Device(ctx, p.ref)
	if err != nil || !d.Online || d.Locked == nil || *d.Locked != w.Lock { // of one that is out of reach it is only known where it was
		return err
	}
	return p.access.RecordBoltMoved(ctx, p.lease, p.device.ID, w)
}

// status takes in where the bolt is by now.
func (p *pass) status(ctx context.Context) error {
	d, err := p.adapter.Device(ctx, p.ref)
	if err != nil {
		return err
	}
	return p.access.RecordDevice(ctx, p.lease, p.device.ID, describe(d, p.device.Capabilities.Simulated))
}
