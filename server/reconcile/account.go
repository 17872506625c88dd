package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// drainAccount lists the devices of an account.
func (r *Reconciler) drainAccount(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	account, err := r.access.GetAccount(ctx, id)
	if err != nil {
		return 0, err
	}
	if r.elsewhere(account.Adapter) || r.opt.Elsewhere != nil && account.Deleted { // of what is erased nobody knows whose it was
		pause, err := r.opt.Elsewhere.DrainAccount(ctx, lease, account)
		if err != nil || !account.Deleted {
			return pause, err
		}
	}
	if account.Deleted {
		r.adapters.drop(id, whichever)
		return 0, r.access.AccountRests(ctx, id)
	}
	if wait := min(r.access.Owing(id), r.opt.AccountEvery); wait > 0 && !account.Failing {
		return wait, r.access.ScheduleAccount(ctx, id, account.Seq, wait)
	}
	a, err := r.adapters.Get(ctx, id)
	if errors.Is(err, errDisconnected) { // since it was looked at, which has woken it
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	held, release := adapter.Hold(ctx) // until they are written down
	defer release()
	devices, err := a.Devices(held)
	e := adapter.AsError(err)
	switch {
	case err == nil:
		r.down.over(id)
		found := make([]access.FoundDevice, len(devices))
		for i, d := range devices {
			found[i] = describe(d, account.Adapter == access.SandboxAdapter)
		}
		if err := r.access.RecordDevices(ctx, lease, id, found); err != nil {
			return 0, err
		}
	case errors.Is(err, adapter.ErrCrowded) && ctx.Err() == nil:
		pause := crowded()
		return pause, r.access.ScheduleAccount(ctx, id, account.Seq, pause)
	case e == nil || ctx.Err() != nil:
		return 0, err
	case e.Class == adapter.AuthRevoked:
		if err := r.access.RecordAccountRefused(ctx, lease, id, e.Message); err != nil {
			return 0, err
		}
		r.opt.Log.Warn("the vendor refuses the account's credentials", "account", id)
	case e.Class == adapter.GatewayDown && account.Adapter != access.SandboxAdapter: // what is simulated is down only while we stop
		if down := r.down.lasts(id, time.Now(), r.opt.DownAfter+2*r.opt.AccountEvery); down < r.opt.DownAfter { // it may be restarting
			return r.opt.DownAfter - down, r.access.ScheduleAccount(ctx, id, account.Seq, r.opt.DownAfter-down)
		}
		r.opt.Log.Warn("the account's gateway cannot be reached; it is tried further", "account", id, "error", err)
		if err := r.access.RecordAccountUnreachable(ctx, lease, id, e.Message); err != nil {
			return 0, err
		}
	default:
		r.opt.Log.Warn("the account's devices could not be listed; it is repeated", "account", id, "error", err)
	}
	pause := r.opt.AccountEvery*3/4 + rand.N(r.opt.AccountEvery/2)
	if e != nil {
		pause = max(pause, e.RetryAfter)
	}
	return pause, r.access.ScheduleAccount(ctx, id, account.Seq, pause)
}

// describe puts an adapter's device into the words of package access.
func describe(d adapter.Device, simulated bool) access.FoundDevice {
	c := access.Capabilities{Lock: d.Caps.Lock, Unlock: d.Caps.Unlock, AutoLock: d.Caps.AutoLock, Hub: d.Caps.Hub, Subscription: d.Caps.Subscription, OnlineCodes: d.Caps.OnlineCodes, OfflineCodes: d.Caps.OfflineCodes,
		ListCodes: d.Caps.ListCodes, DeleteUnmanaged: d.Caps.DeleteUnmanaged, PutAnew: d.Caps.OnlineCodes && !d.Caps.ModifyInPlace, PINVisible: d.Caps.PINVisible,
		ProviderPIN: d.Caps.ProviderPIN, NativeSchedule: d.Caps.NativeSchedule, Convertible: d.Caps.Convert == adapter.ConvertAdopt,
		CodeLengths: d.Caps.CodeLengths, MaxCodes: d.Caps.MaxCodes, Simulated: simulated, WriteGap: d.Caps.MinGap}
	for _, k := range d.Caps.Constraints {
		c.Constraints = append(c.Constraints, access.Constraint{Type: k.Kind, MinLength: k.MinLength, MaxLength: k.MaxLength})
	}
	var automatic *access.AutoLock
	if d.AutoLock != nil {
		automatic = &access.AutoLock{Enabled: d.AutoLock.Enabled, Delay: d.AutoLock.Delay.Seconds()}
	}
	return access.FoundDevice{AutoLock: automatic, HubDisconnected: d.HubOffline, SubscriptionMissing: d.SubscriptionMissing, Lossy: d.Lossy, Ref: string(d.Ref), Name: d.Name, Type: d.Type, Provider: d.Provider, Manufacturer: d.Manufacturer,
		Model: d.Model, SerialNumber: d.SerialNumber, Online: d.Online, Locked: d.Locked, BatteryLevel: d.BatteryLevel, Capabilities: c, CapabilitiesUnknown: d.CapsUnknown}
}
