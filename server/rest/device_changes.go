package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) UpdateDevice(
	ctx context.Context, r openapi.UpdateDeviceRequestObject,
) (openapi.UpdateDeviceResponseObject, error) {
	err := h.access.Devices.UpdateDevice(ctx, principal(ctx), r.Body.DeviceID, device.Change{
		Name:       newName(ctx, r.Body),
		Metadata:   r.Body.CustomMetadata,
		Managed:    r.Body.IsManaged,
		BackupPool: r.Body.BackupAccessCodePoolEnabled,
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateDevice200JSONResponse{Ok: true}, nil
}

// newName returns the requested name from either parameter: nil if absent, empty if null.
func newName(ctx context.Context, r *api.UpdateDeviceRequest) *string {
	given := exchangeOf(ctx).params
	older, _ := given["properties"].(map[string]any)
	for _, form := range []struct {
		in   map[string]any
		name *string
	}{{given, r.Name}, {older, r.Properties.Name}} {
		if value, ok := form.in["name"]; ok && value == nil {
			return new("")
		}
		if form.name != nil {
			return form.name
		}
	}
	return nil
}

func (h *handlers) DeleteDevice(
	ctx context.Context, r openapi.DeleteDeviceRequestObject,
) (openapi.DeleteDeviceResponseObject, error) {
	if err := h.access.Devices.DeleteDevice(ctx, principal(ctx), r.Body.DeviceID); err != nil {
		return nil, err
	}
	return openapi.DeleteDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) ListUnmanagedDevices(
	ctx context.Context, r openapi.ListUnmanagedDevicesRequestObject,
) (openapi.ListUnmanagedDevicesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	filter := deviceFilter(api.ListDevicesRequest(*r.Body)) // same filters
	filter.Unmanaged = true
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	list, err := streamRows(
		ctx,
		page.Page,
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]device.Device, bool, error) {
			return h.access.Devices.ListDevices(ctx, p, filter, part)
		},
		devicePosition,
		toUnmanagedDevice,
		"devices",
	)
	return longPage{list, page}, err
}

func (h *handlers) GetUnmanagedDevice(
	ctx context.Context, r openapi.GetUnmanagedDeviceRequestObject,
) (openapi.GetUnmanagedDeviceResponseObject, error) {
	d, err := h.access.Devices.GetUnmanagedDevice(ctx, principal(ctx), r.Body.DeviceID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return openapi.GetUnmanagedDevice200JSONResponse{Ok: true, Device: toUnmanagedDevice(d)}, nil
}

func (h *handlers) UpdateUnmanagedDevice(
	ctx context.Context, r openapi.UpdateUnmanagedDeviceRequestObject,
) (openapi.UpdateUnmanagedDeviceResponseObject, error) {
	if managed := r.Body.IsManaged; managed != nil && !*managed {
		return nil, invalid([]issue{{
			path:    []string{"is_managed"},
			message: "The device is unmanaged already; give true to manage it",
		}})
	}
	err := h.access.Devices.UpdateUnmanagedDevice(ctx, principal(ctx), r.Body.DeviceID, device.Change{
		Metadata: r.Body.CustomMetadata,
		Managed:  r.Body.IsManaged,
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateUnmanagedDevice200JSONResponse{Ok: true}, nil
}

func toUnmanagedDevice(d device.Device) api.UnmanagedDevice {
	full := toDevice(d)
	p := full.Properties
	return api.UnmanagedDevice{
		DeviceID:              full.DeviceID,
		WorkspaceID:           full.WorkspaceID,
		ConnectedAccountID:    full.ConnectedAccountID,
		DeviceType:            full.DeviceType,
		DisplayName:           full.DisplayName,
		CreatedAt:             full.CreatedAt,
		CapabilitiesSupported: full.CapabilitiesSupported,
		CustomMetadata:        full.CustomMetadata,
		Errors:                full.Errors,
		Warnings:              full.Warnings,
		Properties: api.UnmanagedDeviceProperties{
			Online:                    p.Online,
			Name:                      p.Name,
			Model:                     p.Model,
			Manufacturer:              p.Manufacturer,
			ImageURL:                  p.ImageURL,
			ImageAltText:              p.ImageAltText,
			AccessoryKeypad:           p.AccessoryKeypad,
			OnlineAccessCodesEnabled:  p.OnlineAccessCodesEnabled,
			OfflineAccessCodesEnabled: p.OfflineAccessCodesEnabled,
			BatteryLevel:              p.BatteryLevel,
			Battery:                   p.Battery,
		},
		Location: full.Location,

		CanRemotelyLock:              full.CanRemotelyLock,
		CanRemotelyUnlock:            full.CanRemotelyUnlock,
		CanProgramOnlineAccessCodes:  full.CanProgramOnlineAccessCodes,
		CanProgramOfflineAccessCodes: full.CanProgramOfflineAccessCodes,
		CanUnlockWithCode:            full.CanUnlockWithCode,
		CanConfigureAutoLock:         full.CanConfigureAutoLock,
		CanSimulateConnection:        full.CanSimulateConnection,
		CanSimulateDisconnection:     full.CanSimulateDisconnection,
		CanSimulateRemoval:           full.CanSimulateRemoval,
		CanSimulateHubConnection:     full.CanSimulateHubConnection,
		CanSimulateHubDisconnection:  full.CanSimulateHubDisconnection,
		CanSimulatePaidSubscription:  full.CanSimulatePaidSubscription,

		CanHvacHeat:              full.CanHvacHeat,
		CanHvacCool:              full.CanHvacCool,
		CanHvacHeatCool:          full.CanHvacHeatCool,
		CanTurnOffHvac:           full.CanTurnOffHvac,
		CanRunThermostatPrograms: full.CanRunThermostatPrograms,
		CanProgramThermostatProgramsAsDifferentEachDay: full.CanProgramThermostatProgramsAsDifferentEachDay,
		CanProgramThermostatProgramsAsSameEachDay:      full.CanProgramThermostatProgramsAsSameEachDay,
		CanProgramThermostatProgramsAsWeekdayWeekend:   full.CanProgramThermostatProgramsAsWeekdayWeekend,
	}
}
