package reconcile

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// runLockCommand runs the next lock command of the device. It sends a command once. If the outcome
// is unknown, it polls the device until the device shows the result or the attempt expires. A door
// that opens a second time minutes later would be worse than one that stays closed.
func (p *pass) runLockCommand(ctx context.Context, w lockstate.Command) error {
	if w.Started {
		return p.confirmLockCommand(ctx, w)
	}
	locker, ok := p.adapter.(adapter.Locker)
	if !ok {
		return p.access.Devices.RecordLockCommandFailed(ctx, p.lease, p.device.ID, w, "device_type_not_supported",
			"The adapter of this device cannot lock or unlock it.")
	}
	if still, err := p.access.Devices.RecordLockCommandStarted(ctx, p.lease, p.device.ID, w); err != nil || !still {
		return err
	}
	move := locker.Unlock
	if w.Lock {
		move = locker.Lock
	}
	state, err := move(ctx, p.ref)
	switch {
	case err == nil && state == adapter.Confirmed:
		return p.access.Devices.RecordLockCommandDone(ctx, p.lease, p.device.ID, w)
	case err == nil:
		// The vendor reports the result later, or the device shows it.
		return nil
	}
	return p.recordCommandError(ctx, w, err)
}

// delayTolerance is how far the auto-lock delay of a device may differ from the requested one.
// Devices store milliseconds at best.
const delayTolerance = time.Millisecond

// configureAutoLock sends the auto-lock setting to the device once and polls until the device shows
// it.
func (p *pass) configureAutoLock(ctx context.Context, w lockstate.AutoLockCommand) error {
	if w.Started {
		d, err := p.adapter.Device(ctx, p.ref)
		if err != nil || d.AutoLock == nil || d.AutoLock.Enabled != w.Enabled ||
			(w.Enabled && (d.AutoLock.Delay-adapter.Seconds(w.Delay)).Abs() > delayTolerance) {
			return err
		}
		return p.access.Devices.RecordAutoLockSet(ctx, p.lease, p.device.ID, w)
	}
	attempt := lockstate.Command{Attempt: w.Attempt}
	locker, ok := p.adapter.(adapter.AutoLocker)
	if !ok {
		return p.access.Devices.RecordLockCommandFailed(ctx, p.lease, p.device.ID, attempt, "device_type_not_supported",
			"The adapter of this device cannot configure auto-lock.")
	}
	if still, err := p.access.Devices.RecordLockCommandStarted(
		ctx,
		p.lease,
		p.device.ID,
		attempt,
	); err != nil ||
		!still {
		return err
	}
	state, err := locker.ConfigureAutoLock(ctx, p.ref,
		adapter.AutoLock{Enabled: w.Enabled, Delay: adapter.Seconds(w.Delay)})
	switch {
	case err == nil && state == adapter.Confirmed:
		return p.access.Devices.RecordAutoLockSet(ctx, p.lease, p.device.ID, w)
	case err == nil:
		// The device shows the result later.
		return nil
	}
	return p.recordCommandError(ctx, attempt, err)
}

// recordCommandError records why a command failed. It returns err if it concerns the connection to
// the device.
func (p *pass) recordCommandError(ctx context.Context, w lockstate.Command, err error) error {
	e := adapter.AsError(err)
	if e == nil || ctx.Err() != nil {
		return err
	}
	fail := func(errorType, message string) error {
		return p.access.Devices.RecordLockCommandFailed(ctx, p.lease, p.device.ID, w, errorType, message)
	}
	var failed error
	switch e.Class {
	case adapter.Unconfirmed:
		return nil
	case adapter.Transient, adapter.GatewayDown:
		failed = p.access.Devices.RecordLockCommandNotStarted(ctx, p.lease, p.device.ID, w)
	case adapter.Offline:
		failed = fail("device_offline", "The device is offline. Try again when it is back.")
	case adapter.AuthRevoked:
		failed = fail("account_disconnected",
			"The vendor refuses the account's credentials. Connect the account again.")
	case adapter.NotFound:
		failed = fail("device_removed", "The device was removed from its vendor account.")
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

// confirmLockCommand records success once the device shows the requested lock state.
func (p *pass) confirmLockCommand(ctx context.Context, w lockstate.Command) error {
	d, err := p.adapter.Device(ctx, p.ref)
	// An offline device only shows its last known state.
	if err != nil || !d.Online || d.Locked == nil || *d.Locked != w.Lock {
		return err
	}
	return p.access.Devices.RecordLockCommandDone(ctx, p.lease, p.device.ID, w)
}

// readStatus records the current state of the device.
func (p *pass) readStatus(ctx context.Context) error {
	asked := p.access.Devices.Now()
	d, err := p.adapter.Device(ctx, p.ref)
	if err != nil {
		return err
	}
	found := toFoundDevice(d, p.device.Capabilities, asked)
	return p.access.Devices.RecordDevice(ctx, p.lease, p.device.ID, found)
}
