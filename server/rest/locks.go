package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetLock(ctx context.Context, r openapi.GetLockRequestObject) (openapi.GetLockResponseObject, error) {
	d, err := h.access.Devices.GetDevice(ctx, principal(ctx), r.Body.DeviceID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	shown := toDevice(d)
	return openapi.GetLock200JSONResponse{Ok: true, Device: shown, Lock: shown}, nil
}

func (h *handlers) LockDoor(
	ctx context.Context, r openapi.LockDoorRequestObject,
) (openapi.LockDoorResponseObject, error) {
	answer, err := h.moveBolt(ctx, r.Body, true)
	if err != nil {
		return nil, err
	}
	return openapi.LockDoor200JSONResponse(answer), nil
}

func (h *handlers) UnlockDoor(
	ctx context.Context, r openapi.UnlockDoorRequestObject,
) (openapi.UnlockDoorResponseObject, error) {
	answer, err := h.moveBolt(ctx, r.Body, false)
	if err != nil {
		return nil, err
	}
	return openapi.UnlockDoor200JSONResponse(answer), nil
}

func (h *handlers) moveBolt(ctx context.Context, body *api.BoltRequest, lock bool) (api.ActionAttemptResponse, error) {
	attempt, err := h.access.Devices.RunLockCommand(ctx, principal(ctx), body.DeviceID, lock)
	return h.attemptResponse(ctx, attempt, err, body.Sync)
}

func (h *handlers) ConfigureAutoLock(
	ctx context.Context, r openapi.ConfigureAutoLockRequestObject,
) (openapi.ConfigureAutoLockResponseObject, error) {
	attempt, err := h.access.Devices.ConfigureAutoLock(
		ctx,
		principal(ctx),
		r.Body.DeviceID,
		r.Body.AutoLockEnabled,
		r.Body.AutoLockDelaySeconds,
	)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.ConfigureAutoLock200JSONResponse(answer), nil
}

func (h *handlers) SimulateKeypadCodeEntry(
	ctx context.Context, r openapi.SimulateKeypadCodeEntryRequestObject,
) (openapi.SimulateKeypadCodeEntryResponseObject, error) {
	var attempt device.Attempt
	err := h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) (err error) {
		attempt, err = h.simulator.EnterCode(ctx, p, r.Body.DeviceID, r.Body.Code)
		return err
	})
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateKeypadCodeEntry200JSONResponse(answer), nil
}

func (h *handlers) SimulateManualLockViaKeypad(
	ctx context.Context, r openapi.SimulateManualLockViaKeypadRequestObject,
) (openapi.SimulateManualLockViaKeypadResponseObject, error) {
	var attempt device.Attempt
	err := h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) (err error) {
		attempt, err = h.simulator.LockByHand(ctx, p, r.Body.DeviceID)
		return err
	})
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateManualLockViaKeypad200JSONResponse(answer), nil
}
