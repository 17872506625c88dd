package reconcile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
)

// observeTimeout is how long a simulation waits until the server has observed its effect.
const observeTimeout = 30 * time.Second

// Polling interval of that wait, from the first to the last. Most effects show immediately.
const (
	minPollInterval = 10 * time.Millisecond
	maxPollInterval = 250 * time.Millisecond
)

// SetOnline brings a simulated device online or takes it offline, and returns once the server has
// observed that. It fails with NotFound, and with Invalid for a real device.
func (r *Reconciler) SetOnline(ctx context.Context, p domain.Principal, deviceID string, online bool) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if online && d.HubDisconnected {
		return &domain.Error{
			Kind:    domain.Invalid,
			Type:    "hub_disconnected",
			Field:   "device_id",
			Message: "The device's hub is disconnected. Connect the hub first with /devices/simulate/connect_to_hub.",
		}
	}
	if err := sim.SetOnline(ctx, adapter.DeviceRef(d.Ref), online); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		return now.Online == online, err
	})
}

// SetHub connects or disconnects the hub of a simulated device, and returns once the server has
// observed that. It fails like SetOnline, and with Invalid if the device has no hub.
func (r *Reconciler) SetHub(ctx context.Context, p domain.Principal, deviceID string, online bool) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := requireCapability(d.Capabilities.Hub, "can_simulate_hub_connection"); err != nil {
		return err
	}
	if err := sim.SetHub(ctx, adapter.DeviceRef(d.Ref), online); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		return now.HubDisconnected == !online, err
	})
}

// SetSubscription ends or renews the subscription that the vendor of a simulated device requires
// for codes, and returns once the server has observed that. It fails like SetOnline, and with
// Invalid if the vendor requires none.
func (r *Reconciler) SetSubscription(ctx context.Context, p domain.Principal, deviceID string, expired bool) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := requireCapability(d.Capabilities.Subscription, "can_simulate_paid_subscription"); err != nil {
		return err
	}
	if err := sim.SetSubscription(ctx, adapter.DeviceRef(d.Ref), expired); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		return now.SubscriptionMissing.IsZero() == !expired, err
	})
}

func requireCapability(can bool, flag string) error {
	if can {
		return nil
	}
	return &domain.Error{
		Kind:    domain.Invalid,
		Type:    "device_type_not_supported",
		Field:   "device_id",
		Message: "The device does not support this simulation: its " + flag + " is false.",
	}
}

// RemoveDevice removes a simulated device from its account, and returns once the server has
// observed that. It fails like SetOnline.
func (r *Reconciler) RemoveDevice(ctx context.Context, p domain.Principal, deviceID string) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err != nil {
		return err
	}
	if err := sim.RemoveDevice(ctx, adapter.DeviceRef(d.Ref)); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, d.Ref, func(ctx context.Context) (bool, error) {
		_, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.NotFound {
			return true, nil
		}
		return false, err
	})
}

// DisconnectAccount makes a simulated vendor refuse the credentials of an account, and returns once
// the server has observed that. It fails with NotFound, and with Invalid for a real account.
func (r *Reconciler) DisconnectAccount(ctx context.Context, p domain.Principal, accountID string) error {
	acct, err := r.access.Accounts.GetConnectedAccount(ctx, p, accountID, "")
	if err != nil {
		return err
	}
	if acct.Adapter != account.SandboxAdapter && acct.Adapter != account.SandboxAccessAdapter {
		return &domain.Error{
			Kind:    domain.Invalid,
			Type:    "workspace_not_sandbox",
			Message: "Simulations work only on sandbox accounts. This account is real.",
			Data:    map[string]any{"connected_account_id": accountID},
		}
	}
	disconnect := r.disconnect
	if r.delegated(acct.Adapter) {
		disconnect = r.opt.AccessSystems.Disconnect
	}
	if err := disconnect(ctx, acct.ID); err != nil && adapter.ClassOf(err) != adapter.AuthRevoked {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, device.Device{AccountID: acct.ID}, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.Accounts.GetConnectedAccount(ctx, p, accountID, "")
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

// AddUnmanagedCode enters a code at the keypad of a simulated device, and returns the code once the
// server has read it. It fails like SetOnline, and with Invalid or Conflict if the device is
// unmanaged or refuses the code.
func (r *Reconciler) AddUnmanagedCode(
	ctx context.Context,
	p domain.Principal,
	deviceID, name, pin string,
) (c device.Code, err error) {
	// Other transactions observe the effects of the rest.
	if err := r.access.Idempotency.Checkpoint(ctx, uuid.Nil); err != nil {
		return c, err
	}
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err == nil {
		err = checkObservable(d)
	}
	if err != nil {
		return c, err
	}
	ref, err := sim.AddCode(ctx, adapter.DeviceRef(d.Ref), name, pin, idempotency.RequestName(ctx))
	if err != nil {
		return c, toSimulationError(err)
	}
	// A repeated request finds the code that it has entered.
	audit.SameAct(ctx, string(ref))
	err = r.awaitObserved(ctx, d, d.Ref, func(ctx context.Context) (found bool, err error) {
		c, found, err = r.access.Devices.CodeByRef(ctx, d.ID, string(ref))
		return found, err
	})
	return c, err
}

// EnterCode enters a PIN at a simulated device. An event reports whether the door opened, as for a
// real device. It fails like SetOnline.
func (r *Reconciler) EnterCode(ctx context.Context, p domain.Principal, deviceID, pin string) (device.Attempt, error) {
	return r.runAttempt(
		ctx,
		p,
		deviceID,
		domain.SimulateKeypadCodeEntry,
		func(ctx context.Context, sim adapter.Simulator, d adapter.DeviceRef) error {
			_, err := sim.EnterCode(ctx, d, pin)
			return err
		},
	)
}

// LockByHand locks a simulated device with the button of its keypad. It fails like SetOnline.
func (r *Reconciler) LockByHand(ctx context.Context, p domain.Principal, deviceID string) (device.Attempt, error) {
	return r.runAttempt(
		ctx,
		p,
		deviceID,
		domain.SimulateManualLock,
		func(ctx context.Context, sim adapter.Simulator, d adapter.DeviceRef) error {
			return sim.LockByHand(ctx, d)
		},
	)
}

// runAttempt runs the simulation as an action attempt. If the server stops in the middle, the
// attempt expires.
func (r *Reconciler) runAttempt(
	ctx context.Context,
	p domain.Principal,
	deviceID, action string,
	do func(context.Context, adapter.Simulator, adapter.DeviceRef) error,
) (a device.Attempt, err error) {
	d, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
	if err == nil {
		err = d.CheckManaged()
	}
	if err != nil {
		return a, err
	}
	if a, err = r.access.Devices.BeginSimulation(ctx, d.ID, action); err != nil {
		return a, err
	}
	if err := r.access.Idempotency.Checkpoint(ctx, a.ID); err != nil {
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
	return r.access.Devices.EndSimulation(ctx, d.ID, a, message)
}

func (r *Reconciler) simulated(
	ctx context.Context,
	p domain.Principal,
	deviceID string,
) (device.Device, adapter.Simulator, error) {
	d, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
	if err != nil {
		return d, nil, err
	}
	sim, err := r.simulatorOf(ctx, d)
	return d, sim, err
}

func (r *Reconciler) simulatorOf(ctx context.Context, d device.Device) (adapter.Simulator, error) {
	a, err := r.adapters.Get(ctx, d.AccountID)
	if err != nil {
		return nil, toSimulationError(err)
	}
	sim, ok := a.(adapter.Simulator)
	if !ok {
		return nil, fmt.Errorf("the adapter of device %s cannot simulate", d.ID)
	}
	return sim, nil
}

// connectedSimulator is like simulated, but fails with Invalid while the vendor account is
// disconnected.
func (r *Reconciler) connectedSimulator(
	ctx context.Context,
	p domain.Principal,
	deviceID string,
) (device.Device, adapter.Simulator, error) {
	d, sim, err := r.simulated(ctx, p, deviceID)
	if err == nil && len(d.AccountErrors) > 0 {
		err = &domain.Error{
			Kind:  domain.Invalid,
			Type:  "account_disconnected",
			Field: "device_id",
			Message: "The device's account is disconnected, so the server cannot observe a simulation. " +
				"Log in again with a connect webview.",
		}
	}
	return d, sim, err
}

// checkObservable fails with Invalid if the server would not observe a change of the device, because it is unmanaged or
// offline.
func checkObservable(d device.Device) error {
	if err := d.CheckManaged(); err != nil {
		return err
	}
	if d.Online {
		return nil
	}
	return &domain.Error{
		Kind:  domain.Invalid,
		Type:  "device_offline",
		Field: "device_id",
		Message: "The device is offline, so the server cannot observe a simulation. " +
			"Connect it first with /devices/simulate/connect.",
	}
}

// awaitObserved requests a look at the device (or its account, if ref is empty), and waits until
// shows reports true.
func (r *Reconciler) awaitObserved(
	ctx context.Context,
	d device.Device,
	ref string,
	shows func(context.Context) (bool, error),
) error {
	if err := r.access.Accounts.Hint(ctx, d.AccountID, ref); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	pause := 100 * time.Millisecond
	again := time.Now().Add(pause)
	for look := minPollInterval; ; look = min(look*3/2, maxPollInterval) {
		ok, err := shows(ctx)
		if err == nil && !ok && time.Now().After(again) {
			// The vendor's list may have lagged at the last look.
			err = r.access.Accounts.Hint(ctx, d.AccountID, ref)
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
			return &domain.Error{
				Kind: domain.Unavailable, Type: "simulation_not_noticed",
				Message: "The simulation ran, but the server has not observed its effect yet. " +
					"Check that the device is online and read it again in a moment.",
			}
		}
	}
}

// toSimulationError converts a simulated device's error to the type of package device.
func toSimulationError(err error) error {
	e := adapter.AsError(err)
	if e == nil {
		return err
	}
	// The account was disconnected after the device was found.
	if e == errDisconnected {
		return &domain.Error{
			Kind:    domain.NotFound,
			Type:    "connected_account_not_found",
			Message: "The account was disconnected during the simulation.",
		}
	}
	switch e.Class {
	case adapter.Duplicate:
		return &domain.Error{
			Kind:    domain.Conflict,
			Type:    "duplicate_access_code",
			Field:   "code",
			Message: "The device already has this code. Choose another.",
		}
	case adapter.Full, adapter.Invalid, adapter.NotSupported:
		return &domain.Error{Kind: domain.Invalid, Type: "device_refused", Message: e.Message}
	default:
		return err
	}
}

// AdjustThermostat changes the setting of a simulated thermostat as a person does, and returns once the server has
// observed that. It fails like SetOnline, and with Invalid for a setting that the device does not have.
func (r *Reconciler) AdjustThermostat(
	ctx context.Context, p domain.Principal, deviceID string, s climate.Setting,
) error {
	if err := s.CheckComplete(); err != nil {
		return err
	}
	return r.simulateThermostat(
		ctx, p, deviceID, func(ctx context.Context, sim adapter.ThermostatSimulator, d adapter.DeviceRef) error {
			return sim.AdjustThermostat(ctx, d, adapter.ThermostatSetting{
				Mode: s.Mode,
				Fan:  s.Fan,
				Heat: s.Heat,
				Cool: s.Cool,
			})
		}, func(o climate.Observed) bool {
			return o.Setting.Mode == s.Mode && sameDegrees(o.Setting.Heat, s.Heat) &&
				sameDegrees(o.Setting.Cool, s.Cool)
		},
	)
}

// SetTemperature changes the temperature in the room of a simulated thermostat to a number of °C, and returns once the
// server has observed that. It fails like AdjustThermostat.
func (r *Reconciler) SetTemperature(ctx context.Context, p domain.Principal, deviceID string, celsius float64) error {
	return r.simulateThermostat(
		ctx, p, deviceID, func(ctx context.Context, sim adapter.ThermostatSimulator, d adapter.DeviceRef) error {
			return sim.SetTemperature(ctx, d, celsius)
		}, func(o climate.Observed) bool { return sameDegrees(o.Temperature, &celsius) },
	)
}

// sameDegrees reports whether a device shows a temperature in °C that it may have rounded; nil: any.
func sameDegrees(shown, asked *float64) bool {
	const rounding = 0.3
	return asked == nil || shown != nil && math.Abs(*shown-*asked) <= rounding
}

// simulateLag is how long the list of a simulated vendor may lag. A schedule can undo an adjustment, so afterwards any
// change counts.
const simulateLag = time.Second

func (r *Reconciler) simulateThermostat(
	ctx context.Context, p domain.Principal, deviceID string,
	do func(context.Context, adapter.ThermostatSimulator, adapter.DeviceRef) error, shows func(climate.Observed) bool,
) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	if err != nil {
		return err
	}
	room, ok := sim.(adapter.ThermostatSimulator)
	if !ok || d.Capabilities.Thermostat == nil {
		return device.NotFound(deviceID)
	}
	if err := checkObservable(d); err != nil {
		return err
	}
	start := r.access.Devices.Now()
	if err := do(ctx, room, adapter.DeviceRef(d.Ref)); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, d.Ref, func(ctx context.Context) (bool, error) {
		now, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		if err != nil || now.Climate == nil || now.Climate.Observed == nil {
			return false, err
		}
		observed := *now.Climate.Observed
		lagged := r.access.Devices.Now().After(start.Add(simulateLag))
		return shows(observed) || lagged && observed.At.After(start), nil
	})
}

// TriggerNoise makes noise at a simulated noise sensor, and returns once the server has observed that. It fails like
// SetOnline, with NotFound for another kind of device, and with Invalid if the device is unmanaged or offline, or if
// none of its thresholds holds at this time of day.
func (r *Reconciler) TriggerNoise(ctx context.Context, p domain.Principal, deviceID string) error {
	d, sim, err := r.connectedSimulator(ctx, p, deviceID)
	switch {
	case err != nil:
		return err
	case d.Capabilities.NoiseSensor == nil:
		return device.NotFound(deviceID)
	}
	if err := checkObservable(d); err != nil {
		return err
	}
	if err := r.access.NoiseSensors.CheckHolding(ctx, p, d); err != nil {
		return err
	}
	noisy, ok := sim.(adapter.NoiseSimulator)
	if !ok {
		return device.NotFound(deviceID)
	}
	if err := noisy.TriggerNoise(ctx, adapter.DeviceRef(d.Ref)); err != nil {
		return toSimulationError(err)
	}
	return r.awaitObserved(ctx, d, "", func(ctx context.Context) (bool, error) {
		now, err := r.access.Devices.SimulatedDevice(ctx, p, deviceID)
		return now.Noise != nil && len(now.Noise.Triggering) > 0, err
	})
}
