package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// seenWithin bounds how long a simulation waits until what it did at the device has been noticed.
const seenWithin = 30 * time.Second

// How long it waits between two looks. Most of it is noticed at once.
const (
	lookFirst = 10 * time.Millisecond
	lookLast  = 250 * time.Millisecond
)

// SetOnline brings a simulated device online or takes it offline, and returns when that has been noticed.
// It fails with NotFound, and with Invalid for a device that is real.
func (r *Reconciler) SetOnline(ctx context.Context, p access.Principal, deviceID string, online bool) error {
	d, sim, err := r.noticed(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if online && d.HubDisconnected {
		return &access.Error{Kind: access.Invalid, Type: "hub_disconnected", Field: "device_id",
			Message: "The device is reached through a hub, which is disconnected. Connect that first with /devices/simulate/connect_to_hub."}
	}
	if err := sim.SetOnline(ctx, adapter.DeviceRef(d.Ref), online); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.SimulatedDevice(ctx, p, deviceID)
		return now.Online == online, err
	})
}

// SetHub takes the hub of a simulated device off its network or brings it back, and returns when that has been noticed.
// It fails like SetOnline, and with Invalid where the device is behind no hub.
func (r *Reconciler) SetHub(ctx context.Context, p access.Principal, deviceID string, online bool) error {
	d, sim, err := r.noticed(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := simulates(d.Capabilities.Hub, "can_simulate_hub_connection"); err != nil {
		return err
	}
	if err := sim.SetHub(ctx, adapter.DeviceRef(d.Ref), online); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.SimulatedDevice(ctx, p, deviceID)
		return now.HubDisconnected == !online, err
	})
}

// SetSubscription ends or renews what the vendor of a simulated device wants for codes, and returns when that has been
// noticed. It fails like SetOnline, and with Invalid where the vendor wants nothing.
func (r *Reconciler) SetSubscription(ctx context.Context, p access.Principal, deviceID string, expired bool) error {
	d, sim, err := r.noticed(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := simulates(d.Capabilities.Subscription, "can_simulate_paid_subscription"); err != nil {
		return err
	}
	if err := sim.SetSubscription(ctx, adapter.DeviceRef(d.Ref), expired); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.SimulatedDevice(ctx, p, deviceID)
		return now.SubscriptionMissing.IsZero() == !expired, err
	})
}

func simulates(can bool, flag string) error {
	if can {
		return nil
	}
	return &access.Error{Kind: access.Invalid, Type: "device_type_not_supported", Field: "device_id", Message: "This cannot be simulated on this device: its " + flag + " is false."}
}

// RemoveDevice removes a simulated device from its account, and returns when that has been noticed.
// It fails like SetOnline.
func (r *Reconciler) RemoveDevice(ctx context.Context, p access.Principal, deviceID string) error {
	d, sim, err := r.noticed(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := sim.RemoveDevice(ctx, adapter.DeviceRef(d.Ref)); err != nil {
		return simulation(err)
	}
	return r.seen(ctx, d, d.Ref, func(ctx context.Context) (bool, error) {
		_, err := r.access.SimulatedDevice(ctx, p, deviceID)
		if e, ok := errors.AsType[*access.Error](err); ok && e.Kind == access.NotFound {
			return true, nil
		}
		return false, err
	})
}

// DisconnectAccount has a simulated vendor refuse the credentials of an account, and returns when that has been
// noticed. It fails with NotFound, and with Invalid for an account that is real.
func (r *Reconciler) DisconnectAccount(ctx context.Context, p access.Principal, accountID string) error {
	account, err := r.access.GetConnectedAccount(ctx, p, accountID, "")
	if err != nil {
		return err
	}
	if account.Adapter != access.SandboxAdapter && account.Adapter != access.SandboxAccessAdapter {
		return &access.Error{Kind: access.Invalid, Type: "workspace_not_sandbox", Message: "Only simulated accounts can be simulated upon; this one is real.",
			Data: map[string]any{"connected_account_id": accountID}}
	}
	disconnect := r.disconnect
	if r.elsewhere(account.Adapter) {
		disconnect = r.opt.Elsewhere.Disconnect
	}
	if err := disconnect(ctx, account.ID); err != nil && adapter.ClassOf(err) != adapter.AuthRevoked {
		return simulation(err)
	}
	return r.seen(ctx, access.Device{AccountID: account.ID}, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.GetConnectedAccount(ctx, p, accountID, "")
		return len(now.Errors) > 0, err
	})
}

func (r *Reconciler) disconnect(ctx context.Context, account uuid.UUID) error {
	a, err := r.adapters.Get(ctx, account)
	if err != nil {
		return err
	}
	sim, ok := a.(adapter.Simulator)
	if !ok {
		return fmt.Errorf("the adapter of account %s cannot simulate", account)
	}
	return sim.Disconnect(ctx)
}

// AddUnmanagedCode types a code in at the keypad of a simulated device, and returns it once it has been read.
// It fails like SetOnline, and with Invalid or Conflict when the device is not managed or the lock refuses the code.
func (r *Reconciler) AddUnmanagedCode(ctx context.Context, p access.Principal, deviceID, name, pin string) (c access.Code, err error) {
	if err := r.access.Checkpoint(ctx, uuid.Nil); err != nil { // what follows is noticed in other transactions
		return c, err
	}
	d, sim, err := r.noticed(ctx, p, deviceID)
	if err == nil {
		err = d.CheckManaged()
	}
	if err != nil {
		return c, err
	}
	if !d.Online {
		return c, &access.Error{Kind: access.Invalid, Type: "device_offline", Field: "device_id",
			Message: "The device is offline, so a code that is typed in there would not be noticed. Connect it with /devices/simulate/connect first."}
	}
	ref, err := sim.AddCode(ctx, adapter.DeviceRef(d.Ref), name, pin, access.RequestName(ctx))
	if err != nil {
		return c, simulation(err)
	}
	access.SameAct(ctx, string(ref)) // a request that comes again finds the code that it has typed in
	err = r.seen(ctx, d, d.Ref, func(ctx context.Context) (found bool, err error) {
		c, found, err = r.access.CodeByRef(ctx, d.ID, string(ref))
		return found, err
	})
	return c, err
}

// EnterCode types a PIN in at a simulated device. Whether that has opened the door is told by an event, as it is of
// a real one. It fails like SetOnline.
func (r *Reconciler) EnterCode(ctx context.Context, p access.Principal, deviceID, pin string) (access.Attempt, error) {
	return r.attempted(ctx, p, deviceID, access.SimulateKeypadCodeEntry, func(ctx context.Context, sim adapter.Simulator, d adapter.DeviceRef) error {
		_, err := sim.EnterCode(ctx, d, pin)
		return err
	})
}

// LockByHand locks a simulated device with the keypad's own button. It fails like SetOnline.
func (r *Reconciler) LockByHand(ctx context.Context, p access.Principal, deviceID string) (access.Attempt, error) {
	return r.attempted(ctx, p, deviceID, access.SimulateManualLock, func(ctx context.Context, sim adapter.Simulator, d adapter.DeviceRef) error {
		return sim.LockByHand(ctx, d)
	})
}

// attempted makes the simulation an action attempt. One that is cut off in the middle is given up in time.
func (r *Reconciler) attempted(ctx context.Context, p access.Principal, deviceID, action string, do func(context.Context, adapter.Simulator, adapter.DeviceRef) error) (a access.Attempt, err error) {
	d, err := r.access.SimulatedDevice(ctx, p, deviceID)
	if err == nil {
		err = d.CheckManaged()
	}
	if err != nil {
		return a, err
	}
	if a, err = r.access.BeginSimulation(ctx, d.ID, action); err != nil {
		return a, err
	}
	if err := r.access.Checkpoint(ctx, a.ID); err != nil {
		return a, err
	}
	sim, problem := r.simulatorOf(ctx, d)
	if problem == nil {
		problem = do(ctx, sim, adapter.DeviceRef(d.Ref))
	}
	message := ""
	if e := adapter.AsError(problem); e != nil {
		message = e.Message
	} else if problem != nil {
		return a, problem
	}
	return r.access.EndSimulation(ctx, d.ID, a, message)
}

func (r *Reconciler) simulated(ctx context.Context, p access.Principal, deviceID string) (access.Device, adapter.Simulator, error) {
	d, err := r.access.SimulatedDevice(ctx, p, deviceID)
	if err != nil {
		return d, nil, err
	}
	sim, err := r.simulatorOf(ctx, d)
	return d, sim, err
}

func (r *Reconciler) simulatorOf(ctx context.Context, d access.Device) (adapter.Simulator, error) {
	a, err := r.adapters.Get(ctx, d.AccountID)
	if err != nil {
		return nil, simulation(err)
	}
	sim, ok := a.(adapter.Simulator)
	if !ok {
		return nil, fmt.Errorf("the adapter of device %s cannot simulate", d.ID)
	}
	return sim, nil
}

// noticed is simulated for what the vendor's account has to tell of: it fails with Invalid while that is disconnected.
func (r *Reconciler) noticed(ctx context.Context, p access.Principal, deviceID string) (access.Device, adapter.Simulator, error) {
	d, sim, err := r.simulated(ctx, p, deviceID)
	if err == nil && len(d.AccountErrors) > 0 {
		err = &access.Error{Kind: access.Invalid, Type: "account_disconnected", Field: "device_id",
			Message: "The device's account is disconnected, so nothing that is simulated would be noticed. Log in again, with a connect webview."}
	}
	return d, sim, err
}

// seen has the device (or, without ref, its account) looked at, and waits until that shows.
func (r *Reconciler) seen(ctx context.Context, d access.Device, ref string, shows func(context.Context) (bool, error)) error {
	if err := r.access.Hint(ctx, d.AccountID, ref); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	pause := 100 * time.Millisecond
	again := time.Now().Add(pause)
	for look := lookFirst; ; look = min(look*3/2, lookLast) {
		ok, err := shows(ctx)
		if err == nil && !ok && time.Now().After(again) {
			// The vendor's list may have lagged behind at the last look.
			err = r.access.Hint(ctx, d.AccountID, ref)
			pause *= 2
			again = time.Now().Add(pause)
		}
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(look):
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
	if e == errDisconnected { // since it was found
		return &access.Error{Kind: access.NotFound, Type: "connected_account_not_found", Message: "The account was disconnected meanwhile."}
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
