package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) ListDevices(
	ctx context.Context, r openapi.ListDevicesRequestObject,
) (openapi.ListDevicesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	list, err := streamRows(
		ctx,
		page.Page,
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]device.Device, bool, error) {
			return h.access.Devices.ListDevices(ctx, p, deviceFilter(*r.Body), part)
		},
		devicePosition,
		toDevice,
		"devices",
	)
	return longPage{list, page}, err
}

func devicePosition(d device.Device) (time.Time, uuid.UUID) { return d.CreatedAt, d.ID }

func deviceFilter(r api.ListDevicesRequest) device.Filter {
	return device.Filter{
		IDs:           r.DeviceIds,
		AccountIDs:    intersect(r.ConnectedAccountID, r.ConnectedAccountIds),
		CreatedBefore: r.CreatedBefore,
		Types:         valuesOf(intersect(r.DeviceType, r.DeviceTypes)),
		Manufacturer:  r.Manufacturer,
		IncludeIf:     r.IncludeIf,
		ExcludeIf:     r.ExcludeIf,
		Metadata:      r.CustomMetadataHas,
		Search:        r.Search,
		CustomerKey:   r.CustomerKey,
		WebviewID:     r.ConnectWebviewID,
		// The server has no spaces or locations, so no device matches.
		Nothing: r.SpaceID+r.UnstableLocationID != "",
	}
}

func (h *handlers) GetDevice(
	ctx context.Context, r openapi.GetDeviceRequestObject,
) (openapi.GetDeviceResponseObject, error) {
	d, err := h.access.Devices.GetDevice(ctx, principal(ctx), r.Body.DeviceID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return openapi.GetDevice200JSONResponse{Ok: true, Device: toDevice(d)}, nil
}

func (h *handlers) ListDeviceProviders(
	ctx context.Context, r openapi.ListDeviceProvidersRequestObject,
) (openapi.ListDeviceProvidersResponseObject, error) {
	list, err := h.offeredProviders(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p api.DeviceProvider) bool {
		return r.Body.ProviderCategory != "" && !slices.Contains(p.ProviderCategories, string(r.Body.ProviderCategory))
	})
	return openapi.ListDeviceProviders200JSONResponse{Ok: true, DeviceProviders: list}, nil
}

func (h *handlers) SimulateConnectDevice(
	ctx context.Context, r openapi.SimulateConnectDeviceRequestObject,
) (openapi.SimulateConnectDeviceResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.SetOnline(ctx, p, r.Body.DeviceID, true) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateConnectDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateDisconnectDevice(
	ctx context.Context, r openapi.SimulateDisconnectDeviceRequestObject,
) (openapi.SimulateDisconnectDeviceResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.SetOnline(ctx, p, r.Body.DeviceID, false) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateDisconnectDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateRemoveDevice(
	ctx context.Context, r openapi.SimulateRemoveDeviceRequestObject,
) (openapi.SimulateRemoveDeviceResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.RemoveDevice(ctx, p, r.Body.DeviceID) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateRemoveDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateConnectToHub(
	ctx context.Context, r openapi.SimulateConnectToHubRequestObject,
) (openapi.SimulateConnectToHubResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.SetHub(ctx, p, r.Body.DeviceID, true) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateConnectToHub200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateDisconnectFromHub(
	ctx context.Context, r openapi.SimulateDisconnectFromHubRequestObject,
) (openapi.SimulateDisconnectFromHubResponseObject, error) {
	err := h.simulatedUpon(
		ctx,
		r.Body.DeviceID,
		func(p domain.Principal) error { return h.simulator.SetHub(ctx, p, r.Body.DeviceID, false) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.SimulateDisconnectFromHub200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulatePaidSubscription(
	ctx context.Context, r openapi.SimulatePaidSubscriptionRequestObject,
) (openapi.SimulatePaidSubscriptionResponseObject, error) {
	err := h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) error {
		return h.simulator.SetSubscription(ctx, p, r.Body.DeviceID, r.Body.IsExpired)
	})
	if err != nil {
		return nil, err
	}
	return openapi.SimulatePaidSubscription200JSONResponse{Ok: true}, nil
}

func (h *handlers) ReportProviderMetadata(
	ctx context.Context, r openapi.ReportProviderMetadataRequestObject,
) (openapi.ReportProviderMetadataResponseObject, error) {
	zones := make([]device.TimeZone, len(r.Body.Devices))
	for i, d := range r.Body.Devices {
		zones[i] = device.TimeZone{DeviceID: d.DeviceID, Zone: d.TimeZone, ByProvider: map[string]string{
			"omnitec":  d.OmnitecMetadata.TimeZone,
			"schlage":  d.SchlageMetadata.TimeZone,
			"ultraloq": d.UltraloqMetadata.TimeZone,
		}}
	}
	if err := h.access.Devices.ReportTimeZones(ctx, principal(ctx), zones); err != nil {
		return nil, err
	}
	return openapi.ReportProviderMetadata200JSONResponse{Ok: true}, nil
}

func toDevice(d device.Device) api.Device {
	can := canFlags(d.Capabilities)
	return api.Device{
		DeviceID:              d.ID.String(),
		WorkspaceID:           d.WorkspaceID.String(),
		ConnectedAccountID:    d.AccountID.String(),
		DeviceType:            d.Type,
		DisplayName:           d.Name,
		Nickname:              nickname(d),
		CreatedAt:             d.CreatedAt,
		IsManaged:             true,
		CapabilitiesSupported: capabilitiesOf(d),
		CustomMetadata:        d.Metadata,
		SpaceIds:              []string{},
		Errors:                toErrors(d.Errors()),
		Warnings:              toWarnings(d.Warnings()),
		Properties:            toProperties(d),
		DeviceManufacturer: api.DeviceManufacturer{
			Manufacturer: stableName(d.Manufacturer),
			DisplayName:  d.Manufacturer,
		},
		DeviceProvider: toProvider(d.Provider, d.Capabilities.Kind()),
		Location:       api.DeviceLocation{TimeZone: d.TimeZone, Timezone: d.TimeZone},

		CanRemotelyLock:              can("can_remotely_lock"),
		CanRemotelyUnlock:            can("can_remotely_unlock"),
		CanProgramOnlineAccessCodes:  can("can_program_online_access_codes"),
		CanProgramOfflineAccessCodes: can("can_program_offline_access_codes"),
		CanUnlockWithCode:            can("can_unlock_with_code"),
		CanSimulateConnection:        can("can_simulate_connection"),
		CanSimulateDisconnection:     can("can_simulate_disconnection"),
		CanSimulateRemoval:           can("can_simulate_removal"),
		CanConfigureAutoLock:         can("can_configure_auto_lock"),
		CanSimulateHubConnection:     can("can_simulate_hub_connection"),
		CanSimulateHubDisconnection:  can("can_simulate_hub_disconnection"),
		CanSimulatePaidSubscription:  can("can_simulate_paid_subscription"),

		CanHvacHeat:              can("can_hvac_heat"),
		CanHvacCool:              can("can_hvac_cool"),
		CanHvacHeatCool:          can("can_hvac_heat_cool"),
		CanTurnOffHvac:           can("can_turn_off_hvac"),
		CanRunThermostatPrograms: can("can_run_thermostat_programs"),
		CanProgramThermostatProgramsAsDifferentEachDay: can("can_program_thermostat_programs_as_different_each_day"),
		CanProgramThermostatProgramsAsSameEachDay:      can("can_program_thermostat_programs_as_same_each_day"),
		CanProgramThermostatProgramsAsWeekdayWeekend:   can("can_program_thermostat_programs_as_weekday_weekend"),
	}
}

// canFlags returns a function that reports whether a capability flag of the API is true.
func canFlags(caps capability.Set) func(flag string) *bool {
	flags := caps.Flags()
	return func(flag string) *bool { return new(slices.Contains(flags, flag)) }
}

// nickname returns the name of the device in the workspace, if it has one.
func nickname(d device.Device) string {
	if d.Name == d.VendorName {
		return ""
	}
	return d.Name
}

// capabilitiesOf returns the capabilities_supported of a device.
func capabilitiesOf(d device.Device) []string {
	out := make([]string, 0, 3)
	if d.Capabilities.OnlineCodes || d.Capabilities.OfflineCodes {
		out = append(out, "access_code")
	}
	if d.Capabilities.Lock || d.Capabilities.Unlock {
		out = append(out, "lock")
	}
	if kind := d.Capabilities.Kind(); kind != "lock" {
		out = append(out, kind)
	}
	if d.BatteryLevel != nil {
		out = append(out, "battery")
	}
	return out
}

// Pictures of devices by kind. Pictures of manufacturers are not available.
const (
	lockPicture = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E" +
		"%3Cpath d='M5 11h14v11H5zM8 11V7a4 4 0 0 1 8 0v4M12 15v3' fill='none' stroke='%23444'/%3E%3C/svg%3E"
	thermostatPicture = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E" +
		"%3Cpath d='M2 12a10 10 0 1 0 20 0a10 10 0 1 0-20 0M12 12l4-4M6 12a6 6 0 0 1 6-6' fill='none' " +
		"stroke='%23444'/%3E%3C/svg%3E"
	noiseSensorPicture = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E" +
		"%3Cpath d='M4 9v6h4l5 4V5L8 9zM16 9q2 3 0 6M19 6q4 6 0 12' fill='none' stroke='%23444'/%3E%3C/svg%3E"
)

// pictureOf returns the picture of a kind of device, and its text for people who cannot see it.
func pictureOf(kind string) (url, altText string) {
	switch kind {
	case "thermostat":
		return thermostatPicture, "A thermostat"
	case "noise_detection":
		return noiseSensorPicture, "A noise sensor"
	}
	return lockPicture, "A lock"
}

func toProperties(d device.Device) api.DeviceProperties {
	caps := d.Capabilities
	picture, altText := pictureOf(caps.Kind())
	p := api.DeviceProperties{
		Online:     d.Online,
		Name:       d.Name,
		Appearance: api.DeviceAppearance{Name: d.VendorName},
		Model: api.DeviceModel{
			DisplayName:                 d.Model,
			ManufacturerDisplayName:     d.Manufacturer,
			HasBuiltInKeypad:            caps.BuiltInKeypad,
			CanConnectAccessoryKeypad:   caps.AccessoryKeypad,
			AccessoryKeypadSupported:    caps.AccessoryKeypad,
			OnlineAccessCodesSupported:  &caps.OnlineCodes,
			OfflineAccessCodesSupported: &caps.OfflineCodes,
		},
		ImageURL:                     picture,
		ImageAltText:                 altText,
		HasDirectPower:               caps.DirectPower,
		HasNativeEntryEvents:         caps.EntryEvents,
		SupportsAccessoryKeypad:      caps.AccessoryKeypad,
		DoorOpen:                     d.DoorOpen,
		Manufacturer:                 d.Manufacturer,
		SerialNumber:                 d.SerialNumber,
		Locked:                       d.Locked,
		BatteryLevel:                 d.BatteryLevel,
		OnlineAccessCodesEnabled:     &caps.OnlineCodes,
		OfflineAccessCodesEnabled:    &caps.OfflineCodes,
		SupportsOfflineAccessCodes:   &caps.OfflineCodes,
		SupportsBackupAccessCodePool: new(caps.HasBackupPool()),
		BackupAccessCodePoolEnabled:  &d.BackupPool.Enabled,
		SupportedCodeLengths:         caps.CodeLengths,
		MaxActiveCodesSupported:      caps.MaxCodes,
		CodeConstraints: each(caps.Constraints, func(c capability.Constraint) api.CodeConstraint {
			return api.CodeConstraint{ConstraintType: c.Type, MinLength: c.MinLength, MaxLength: c.MaxLength}
		}),
	}
	addThermostatProperties(&p, d)
	if d.AutoLock != nil {
		p.AutoLockEnabled = &d.AutoLock.Enabled
		if d.AutoLock.Delay > 0 {
			p.AutoLockDelaySeconds = &d.AutoLock.Delay
		}
	}
	addNoise(&p, d)
	if d.KeypadBattery != nil {
		p.KeypadBattery = &api.KeypadBattery{Level: *d.KeypadBattery}
		p.AccessoryKeypad = &api.AccessoryKeypad{IsConnected: true, Battery: p.KeypadBattery}
	}
	if d.BatteryLevel != nil {
		p.Battery = api.DeviceBattery{
			Level:  *d.BatteryLevel,
			Status: api.DeviceBatteryStatus(device.BatteryStatus(*d.BatteryLevel)),
		}
	}
	return p
}

// stableName converts the name of a manufacturer or a provider to the form of the API.
func stableName(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "_") }
