package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// drainAccount lists the devices of an account, records them, and schedules the next listing.
func (r *Reconciler) drainAccount(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	acct, err := r.access.Accounts.GetAccount(ctx, id)
	if err != nil {
		return 0, err
	}
	// An erased account has no adapter name, so both sides receive its end.
	if r.delegated(acct.Adapter) || r.opt.AccessSystems != nil && acct.Deleted {
		pause, err := r.opt.AccessSystems.DrainAccount(ctx, lease, acct)
		if err != nil || !acct.Deleted {
			return pause, err
		}
	}
	if acct.Deleted {
		r.adapters.drop(id, anyAdapter)
		return 0, r.access.Devices.RecordAccountIdle(ctx, id)
	}
	if wait := min(r.access.Devices.InventoryDelay(id), r.opt.AccountInterval); wait > 0 && !acct.Failing {
		return wait, r.access.Accounts.ScheduleAccount(ctx, id, acct.Seq, wait)
	}
	a, err := r.adapters.Get(ctx, id)
	// The account was disconnected after it was read. The disconnect has woken it.
	if errors.Is(err, errDisconnected) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// Hold the memory of the answer until the devices are recorded.
	held, release := adapter.WithMemoryPermit(ctx)
	defer release()
	asked := r.access.Devices.Now()
	devices, err := a.Devices(held)
	e := adapter.AsError(err)
	switch {
	case err == nil:
		r.down.markUp(id)
		r.problems.End(r.accountLog(acct), accountKey(id), "the account works again")
		found := make([]device.FoundDevice, len(devices))
		known := capability.Set{
			Simulated:  acct.Adapter == account.SandboxAdapter,
			Unverified: r.opt.Unverified[acct.Adapter],
		}
		for i, d := range devices {
			found[i] = toFoundDevice(d, known, asked)
			found[i].RereadInterval = r.opt.Paces[acct.Adapter].Read
		}
		if err := r.access.Devices.RecordDevices(ctx, lease, id, found); err != nil {
			return 0, err
		}
		if err := r.recordWarnings(ctx, lease, id, a); err != nil {
			return 0, err
		}
	case errors.Is(err, adapter.ErrSaturated) && ctx.Err() == nil:
		pause := overloadPause()
		return pause, r.access.Accounts.ScheduleAccount(ctx, id, acct.Seq, pause)
	case e == nil || ctx.Err() != nil:
		return 0, err
	case e.Class == adapter.AuthRevoked:
		if err := r.access.Accounts.RecordAccountRefused(ctx, lease, id, e.Message); err != nil {
			return 0, err
		}
		r.problems.Warn(
			r.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(id),
			"the vendor refuses the account's credentials",
		)
	// Simulated vendors are down only while the server stops.
	case e.Class == adapter.GatewayDown && acct.Adapter != account.SandboxAdapter:
		// The gateway may be restarting.
		if down := r.down.markDown(id, time.Now(), r.opt.DownAfter+2*r.opt.AccountInterval); down < r.opt.DownAfter {
			return r.opt.DownAfter - down, r.access.Accounts.ScheduleAccount(ctx, id, acct.Seq, r.opt.DownAfter-down)
		}
		r.problems.Warn(
			r.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(id),
			"the account's gateway is unreachable; the server keeps retrying",
		)
		if err := r.access.Accounts.RecordAccountUnreachable(ctx, lease, id, e.Message); err != nil {
			return 0, err
		}
	default:
		r.problems.Warn(
			r.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(id),
			"failed to list the account's devices; the server retries",
		)
	}
	interval := cmp.Or(r.opt.Paces[acct.Adapter].List, r.opt.AccountInterval)
	pause := interval*3/4 + rand.N(interval/2)
	if e != nil {
		pause = max(pause, e.RetryAfter)
	}
	return pause, r.access.Accounts.ScheduleAccount(ctx, id, acct.Seq, pause)
}

// accountLog returns the log for lines about an account.
func (r *Reconciler) accountLog(a account.Account) *slog.Logger {
	return r.opt.Log.With("connected_account_id", a.ID, "account", a.DisplayName, "vendor", a.Adapter)
}

// accountKey is the key of the problems of an account in the log.
func accountKey(id uuid.UUID) string { return "account:" + id.String() }

// recordWarnings records the warnings of an adapter that has some.
func (r *Reconciler) recordWarnings(ctx context.Context, lease *worker.Lease, id uuid.UUID, a adapter.Adapter) error {
	w, ok := a.(adapter.Warner)
	if !ok {
		return nil
	}
	var found []domain.Problem
	for _, one := range w.Warnings() {
		found = append(found, domain.Problem{Code: one.Code, Message: one.Message})
	}
	return r.access.Accounts.RecordAccountWarnings(ctx, lease, id, found)
}

// toFoundDevice converts an adapter's device to the type of package device. known are the capabilities that adapters do
// not know. asked is when the vendor was asked.
func toFoundDevice(d adapter.Device, known capability.Set, asked time.Time) device.FoundDevice {
	capabilities := d.Capabilities
	capabilities.Simulated, capabilities.Unverified = known.Simulated, known.Unverified
	var automatic *device.AutoLock
	if d.AutoLock != nil {
		automatic = &device.AutoLock{Enabled: d.AutoLock.Enabled, Delay: d.AutoLock.Delay.Seconds()}
	}
	return device.FoundDevice{
		AutoLock:            automatic,
		HubDisconnected:     d.HubOffline,
		SubscriptionMissing: d.SubscriptionMissing,
		Lossy:               d.LossyEvents,
		Ref:                 string(d.Ref),
		Name:                d.Name,
		Type:                d.Type,
		Provider:            d.Provider,
		Manufacturer:        d.Manufacturer,
		Model:               d.Model,
		SerialNumber:        d.SerialNumber,
		Online:              d.Online,
		Locked:              d.Locked,
		BatteryLevel:        d.BatteryLevel,
		KeypadBattery:       d.KeypadBattery,
		DoorOpen:            d.DoorOpen,
		Capabilities:        capabilities,
		CapabilitiesUnknown: d.CapabilitiesUnknown,
		Asked:               asked,
		Thermostat:          toObservedClimate(d.Thermostat),
		NoiseSensor:         toObservedNoise(d.NoiseSensor),
	}
}
