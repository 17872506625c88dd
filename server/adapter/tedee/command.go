package tedee

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// wireOperation is a command to a lock (datastructures/device-operation).
type wireOperation struct {
	ID     string `json:"operationId"`
	Status string `json:"status"` // PENDING or COMPLETED
	Result int    `json:"result"` // 0 is success
}

const operationCompleted = "COMPLETED"

// Reads of an operation, which takes up to three seconds.
const (
	firstOperationPause = 250 * time.Millisecond
	lastOperationPause  = 2 * time.Second
	operationTime       = 10 * time.Second
)

// Lock implements adapter.Locker.
func (a *Adapter) Lock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, true)
}

// Unlock implements adapter.Locker. Whether the lock also pulls the spring is a setting of the lock.
func (a *Adapter) Unlock(ctx context.Context, device adapter.DeviceRef) (adapter.State, error) {
	return a.move(ctx, device, false)
}

func (a *Adapter) move(ctx context.Context, device adapter.DeviceRef, lock bool) (state adapter.State, err error) {
	ctx = adapter.WithPriority(ctx, adapter.PriorityCommand)
	err = a.onLock(ctx, device, func(known knownLock) (err error) {
		state, err = a.moveKnown(ctx, device, known, lock)
		return err
	})
	return state, settled(err)
}

func (a *Adapter) moveKnown(
	ctx context.Context, device adapter.DeviceRef, known knownLock, lock bool,
) (adapter.State, error) {
	path, can := known.path()+"/operation/unlock", func(c capability.Set) bool { return c.Unlock }
	if lock {
		path, can = known.path()+"/operation/lock", func(c capability.Set) bool { return c.Lock }
	}
	if !can(known.caps) {
		return "", adapter.Errorf(adapter.NotSupported,
			"the lock cannot be moved remotely; it needs a bridge, and a user with remote access")
	}
	var op wireOperation
	refused := a.do(ctx, vendorhttp.Call{Method: http.MethodPost, Path: path, Write: true}, &op)
	if refused != nil && !isRepeat(refused) {
		return "", refused
	}
	if refused == nil {
		op = a.await(ctx, op)
	}
	var now wireSync
	if err := a.do(ctx, vendorhttp.Call{Path: known.path() + "/sync"}, &now); err != nil {
		now.State = nil // a later read shows the result
	}
	switch at := now.State.locked(); {
	case at != nil && *at == lock && now.State.State != stateSemiLocked:
		return adapter.Confirmed, nil
	case refused != nil:
		return "", refused
	case now.State == nil:
		return adapter.Accepted, nil
	case now.State.State == stateUncalibrated || now.State.State == stateCalibrating:
		return "", adapter.Errorf(adapter.NotSupported, "the lock is not calibrated; calibrate it in the Tedee app")
	case op.Status == operationCompleted && (op.Result != 0 || now.State.Result != 0):
		a.events.Send(adapter.Event{
			Kind:      adapter.Jammed,
			Device:    device,
			Operation: adapter.Operation{Locked: lock},
		})
	}
	return adapter.Accepted, nil
}

// isRepeat reports whether a command may have been refused because the bolt is in its position already. The
// documentation says that a command needs a certain state, and not how it is refused otherwise.
func isRepeat(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusNotAcceptable, http.StatusConflict, http.StatusPreconditionFailed,
		http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

// await waits for the end of an operation, and returns its last known state.
func (a *Adapter) await(ctx context.Context, op wireOperation) wireOperation {
	if op.ID == "" || strings.Trim(op.ID, "0123456789") != "" {
		return op
	}
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	path := "/my/device/operation/" + op.ID
	for pause := firstOperationPause; ; pause = min(2*pause, lastOperationPause) {
		var now wireOperation
		err := a.do(ctx, vendorhttp.Call{Path: path}, &now)
		if err != nil || now.ID != op.ID || now.Status == operationCompleted {
			return now
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return now
		}
	}
}

// ConfigureAutoLock implements adapter.AutoLocker. The vendor wants the revision of the settings, so it reads the lock
// first, and once more if the settings changed meanwhile.
func (a *Adapter) ConfigureAutoLock(
	ctx context.Context, device adapter.DeviceRef, setting adapter.AutoLock,
) (adapter.State, error) {
	ctx = adapter.WithPriority(ctx, adapter.PriorityCommand)
	settings := map[string]any{"autoLockEnabled": setting.Enabled}
	if setting.Enabled {
		if setting.Delay < time.Second || setting.Delay > maxAutoLockDelay || setting.Delay%time.Second != 0 {
			return "", adapter.Errorf(
				adapter.Invalid,
				"the auto-lock delay of this lock is in whole seconds, from 1 to 86400",
			)
		}
		settings["autoLockDelay"] = int64(setting.Delay / time.Second)
	}
	for attempt := 0; ; attempt++ {
		l, err := a.readLock(ctx, device)
		switch {
		case err != nil:
			return "", settled(err)
		case !l.capabilities().AutoLock:
			return "", adapter.Errorf(
				adapter.NotSupported,
				"the user must be owner or admin of the lock to change its settings",
			)
		case !isTrue(l.IsConnected):
			return "", adapter.Errorf(adapter.Offline, "the lock is not connected to its bridge")
		}
		call := vendorhttp.Call{
			Method: http.MethodPatch,
			Path:   "/my/lock",
			JSON:   map[string]any{"id": l.ID, "revision": l.Revision, "deviceSettings": settings},
			Write:  true,
		}
		err = a.do(ctx, call, nil)
		switch {
		case err == nil:
			return adapter.Accepted, nil
		case statusOf(err) != http.StatusConflict || attempt > 0:
			return "", err
		}
	}
}
