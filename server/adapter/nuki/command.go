package nuki

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Actions of a lock.
const (
	actionUnlock           = 1
	actionLock             = 2
	actionUnlatch          = 3
	actionLockNGo          = 4
	actionLockNGoWithLatch = 5
)

// Bounds of the auto-lock delay, as in the vendor's Bluetooth API.
const (
	minAutoLock = 2 * time.Second
	maxAutoLock = 30 * time.Minute
)

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, actionLock)
}

// Unlock implements adapter.Locker. It turns the bolt and does not pull the latch.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, actionUnlock)
}

func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, action int) (adapter.State, error) {
	w, err := a.ready(ctx, device)
	if err != nil {
		return "", err
	}
	return a.command(ctx, vendorhttp.Call{Path: lockPath(w.ID) + "/action", JSON: map[string]int{"action": action}})
}

// command sends a command to a lock.
func (a *Adapter) command(ctx context.Context, call vendorhttp.Call) (adapter.State, error) {
	call.Method, call.Write = http.MethodPost, true
	defer a.devices.forget()
	if err := a.do(ctx, call, nil); err != nil {
		return "", err
	}
	return adapter.Accepted, nil
}

// ConfigureAutoLock implements adapter.AutoLocker. The vendor replaces the whole advanced configuration, so the adapter
// returns what it has read with two changes.
func (a *Adapter) ConfigureAutoLock(
	ctx context.Context, device adapter.DeviceRef, setting adapter.AutoLock,
) (adapter.State, error) {
	w, err := a.ready(ctx, device)
	if err != nil {
		return "", err
	}
	config := map[string]json.RawMessage{}
	if _, able := w.autoLock(); !able || json.Unmarshal(w.Advanced, &config) != nil {
		return "", adapter.Errorf(adapter.NotSupported, "the lock cannot lock itself")
	}
	config["autoLock"] = json.RawMessage("false")
	if setting.Enabled {
		if setting.Delay < minAutoLock || setting.Delay > maxAutoLock || setting.Delay%time.Second != 0 {
			return "", adapter.Errorf(adapter.Invalid, "the delay of a Nuki lock is 2 to 1800 full seconds")
		}
		seconds, err := json.Marshal(int(setting.Delay / time.Second))
		if err != nil {
			return "", adapter.Errorf(adapter.Invalid, "the delay is no number")
		}
		config["autoLock"], config["autoLockTimeout"] = json.RawMessage("true"), seconds
	}
	delete(config, "operationId")
	return a.command(ctx, vendorhttp.Call{Path: lockPath(w.ID) + "/advanced/config", JSON: config})
}
