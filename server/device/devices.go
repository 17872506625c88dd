package device

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Device is a device and its capabilities.
type Device struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	AccountID   uuid.UUID
	// Ref is the vendor's identifier.
	Ref string
	// Type is the device_type of the API.
	Type string
	// Provider is the device_provider_name of the API.
	Provider     string
	Manufacturer string
	Model        string
	SerialNumber string
	// Name is the name in the workspace.
	Name       string
	VendorName string
	Managed    bool
	Online     bool
	// OfflineSince is meaningful unless Online.
	OfflineSince time.Time
	// FlakySince is zero for a stable connection.
	FlakySince time.Time
	Removed    bool
	Locked     *bool
	// AutoLock is nil if unknown.
	AutoLock *AutoLock
	// BatteryLevel is 0 to 1.
	BatteryLevel *float64
	// KeypadBattery is that of the connected accessory keypad; nil if there is none.
	KeypadBattery *float64
	// DoorOpen is nil if unknown.
	DoorOpen     *bool
	Capabilities capability.Set
	// Noise is the state of a noise sensor; nil for another kind of device, and before its vendor has reported it.
	Noise *noise.Document
	// Climate is the state of a thermostat; nil for another kind of device, and before a vendor has reported it.
	Climate   *climate.State
	Metadata  map[string]any
	CreatedAt time.Time

	// HubDisconnected is true if the device is offline because of its hub.
	HubDisconnected bool
	// SubscriptionMissing is since when the vendor requires a subscription for codes; zero if it does not.
	SubscriptionMissing time.Time
	// TimeZone is the IANA time zone that a client reported.
	TimeZone string

	BackupPool    lockstate.BackupPool
	AccountErrors []domain.Problem
}

// Errors returns the problems that prevent the device, or its account, from working.
func (d Device) Errors() []domain.Problem { return append(d.ownErrors(), d.AccountErrors...) }

func (d Device) ownErrors() []domain.Problem {
	return slices.Concat(
		d.connectionErrors(),
		d.subscriptionErrors(),
		d.BackupPool.Errors(),
		d.thermostatErrors(),
	)
}

func (d Device) connectionErrors() []domain.Problem {
	switch {
	case d.Removed:
		return []domain.Problem{{
			Code:    "device_removed",
			Scope:   domain.OfDevice,
			At:      d.OfflineSince,
			Message: "The device was removed from its vendor account.",
		}}
	case !d.Online && d.HubDisconnected:
		return []domain.Problem{{
			Code:  hubDisconnected,
			Scope: domain.OfDevice,
			At:    d.OfflineSince,
			Message: "The hub of the device is offline, so the device is unreachable. " +
				"The server applies pending changes when the hub is back.",
		}}
	case !d.Online:
		return []domain.Problem{{
			Code:    "device_offline",
			Scope:   domain.OfDevice,
			At:      d.OfflineSince,
			Message: "The device is offline. The server applies pending changes when it is back.",
		}}
	}
	return nil
}

// partialDevice returns the fields of a device that the rows of its codes contain: connection, account, and
// capabilities.
func partialDevice(r dbsqlc.CodeDevice) Device {
	return Device{
		ID:                  r.DeviceID,
		WorkspaceID:         r.WorkspaceID,
		AccountID:           r.ConnectedAccountID,
		Online:              r.Online,
		OfflineSince:        r.OnlineChangedAt,
		Removed:             r.RemovedAt != nil,
		Capabilities:        toCapabilities(r.Capabilities, r.ReportedCodeLengths),
		AccountErrors:       account.ReadAccountError(r.AccountError),
		HubDisconnected:     r.HubDisconnected,
		SubscriptionMissing: domain.Value(r.SubscriptionMissingAt),
		BackupPool:          toPool(r.BackupPool),
	}
}

// toAnnouncedDevice returns the public columns of a complete device row.
func toAnnouncedDevice(d dbsqlc.Device) dbsqlc.DeviceSummary {
	return dbsqlc.DeviceSummary{
		DeviceID:              d.DeviceID,
		WorkspaceID:           d.WorkspaceID,
		ConnectedAccountID:    d.ConnectedAccountID,
		VendorRef:             d.VendorRef,
		DeviceType:            d.DeviceType,
		Provider:              d.Provider,
		Manufacturer:          d.Manufacturer,
		Model:                 d.Model,
		SerialNumber:          d.SerialNumber,
		Name:                  d.Name,
		Nickname:              d.Nickname,
		IsManaged:             d.IsManaged,
		Online:                d.Online,
		OnlineChangedAt:       d.OnlineChangedAt,
		FlakySince:            d.FlakySince,
		RemovedAt:             d.RemovedAt,
		Locked:                d.Locked,
		BatteryLevel:          d.BatteryLevel,
		KeypadBattery:         d.KeypadBattery,
		DoorOpen:              d.DoorOpen,
		Capabilities:          d.Capabilities,
		ReportedCodeLengths:   d.ReportedCodeLengths,
		CustomMetadata:        d.CustomMetadata,
		AccountError:          d.AccountError,
		HubDisconnected:       d.HubDisconnected,
		SubscriptionMissingAt: d.SubscriptionMissingAt,
		ReportedTimeZone:      d.ReportedTimeZone,
		AutoLockEnabled:       d.AutoLockEnabled,
		AutoLockDelaySeconds:  d.AutoLockDelaySeconds,
		BackupPool:            d.BackupPool,
		Climate:               d.Climate,
		Noise:                 d.Noise,
		CreatedAt:             d.CreatedAt,
	}
}

// deviceOfCode returns the device columns that the rows of codes contain.
func deviceOfCode(d dbsqlc.DeviceSummary) dbsqlc.CodeDevice {
	return dbsqlc.CodeDevice{
		DeviceID:              d.DeviceID,
		WorkspaceID:           d.WorkspaceID,
		ConnectedAccountID:    d.ConnectedAccountID,
		Online:                d.Online,
		OnlineChangedAt:       d.OnlineChangedAt,
		RemovedAt:             d.RemovedAt,
		HubDisconnected:       d.HubDisconnected,
		SubscriptionMissingAt: d.SubscriptionMissingAt,
		Capabilities:          d.Capabilities,
		ReportedCodeLengths:   d.ReportedCodeLengths,
		AccountError:          d.AccountError,
		BackupPool:            d.BackupPool,
	}
}

func toDevice(r dbsqlc.DeviceSummary) Device {
	d := partialDevice(deviceOfCode(r))
	d.Ref, d.Type, d.Provider = r.VendorRef, r.DeviceType, r.Provider
	d.Manufacturer, d.Model, d.SerialNumber = r.Manufacturer, r.Model, r.SerialNumber
	d.Name, d.VendorName, d.Managed, d.CreatedAt = r.Name, r.Name, r.IsManaged, r.CreatedAt
	d.Locked, d.BatteryLevel = r.Locked, r.BatteryLevel
	d.DoorOpen, d.KeypadBattery = r.DoorOpen, r.KeypadBattery
	d.FlakySince, d.TimeZone = domain.Value(r.FlakySince), domain.Value(r.ReportedTimeZone)
	d.Metadata, d.AutoLock = domain.ReadMetadata(
		r.CustomMetadata,
	), toAutoLock(
		r.AutoLockEnabled,
		r.AutoLockDelaySeconds,
	)
	if r.Nickname != nil {
		d.Name = *r.Nickname
	}
	d.Noise = toNoise(r.Noise)
	d.Climate = toClimate(r.Climate)
	return d
}

func deviceNotFound(what, value string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "device_not_found",
		Message: "Could not find a device with this " + what + ".",
		Data:    map[string]any{what: value},
	}
}

// GetDevice returns a managed device by its identifier or, if that is empty, by its name (the oldest of that name).
// It fails with Invalid unless exactly one is given, and with NotFound.
func (s *Service) GetDevice(ctx context.Context, p domain.Principal, id, name string) (Device, error) {
	return s.getDevice(ctx, p, true, id, name)
}

// findDevice returns the account of a device. It fails with NotFound.
func (s *Service) findDevice(ctx context.Context, p domain.Principal, id string) (d dbsqlc.FindDeviceRow, err error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return d, deviceNotFound("device_id", id)
	}
	d, err = s.db.FindDevice(ctx, dbsqlc.FindDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed})
	switch {
	case store.IsNoRows(err) || err == nil && !p.CanSeeDevice(d.ConnectedAccountID, d.DeviceID):
		return d, deviceNotFound("device_id", id)
	case err != nil:
		return d, fmt.Errorf("find the device: %w", err)
	}
	return d, nil
}

// GetUnmanagedDevice is GetDevice for an unmanaged device.
func (s *Service) GetUnmanagedDevice(ctx context.Context, p domain.Principal, id, name string) (Device, error) {
	return s.getDevice(ctx, p, false, id, name)
}

func (s *Service) getDevice(ctx context.Context, p domain.Principal, managed bool, id, name string) (Device, error) {
	if (id == "") == (name == "") {
		return Device{}, domain.Invalidf("", "Must specify either device_id or name")
	}
	var r dbsqlc.DeviceSummary
	var err error
	if id != "" {
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return Device{}, deviceNotFound("device_id", id)
		}
		r, err = s.db.GetDevice(ctx, dbsqlc.GetDeviceParams{
			WorkspaceID: p.WorkspaceID,
			DeviceID:    parsed,
			IsManaged:   managed,
		})
		if err == nil && !p.CanSeeDevice(r.ConnectedAccountID, r.DeviceID) {
			return Device{}, deviceNotFound("device_id", id)
		}
	} else {
		r, err = s.db.GetDeviceByName(ctx, dbsqlc.GetDeviceByNameParams{
			WorkspaceID: p.WorkspaceID,
			Name:        name,
			IsManaged:   managed,
			Scope:       p.Scope,
		})
	}
	switch {
	case store.IsNoRows(err) && id != "":
		return Device{}, deviceNotFound("device_id", id)
	case store.IsNoRows(err):
		return Device{}, deviceNotFound("name", name)
	case err != nil:
		return Device{}, fmt.Errorf("read the device: %w", err)
	}
	return toDevice(r), nil
}

// Filter is a set of conditions that must all hold. Nil and zero fields are no conditions.
type Filter struct {
	IDs, AccountIDs *[]string
	CreatedBefore   *time.Time
	// Types are the allowed device types; nil allows any.
	Types        []string
	Manufacturer string
	// IncludeIf and ExcludeIf are names of capability flags.
	IncludeIf, ExcludeIf *[]string
	Metadata             map[string]any
	Search               string
	// CustomerKey is that of the account.
	CustomerKey string
	// WebviewID is the Connect Webview that connected the account.
	WebviewID string
	// Unmanaged selects unmanaged devices instead of managed ones.
	Unmanaged bool
	// Kind is a capability.Set.Kind; empty allows any.
	Kind string
	// Nothing is a condition that no device meets, such as one on spaces, which do not exist.
	Nothing bool
}

// ListDevices lists devices, oldest first, and reports whether more follow the page.
func (s *Service) ListDevices(
	ctx context.Context,
	p domain.Principal,
	f Filter,
	page domain.Page,
) ([]Device, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	rows, err := s.findDevices(ctx, p, f, page)
	if err != nil {
		return nil, false, fmt.Errorf("list the devices: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out := make([]Device, len(rows))
	for i, r := range rows {
		out[i] = toDevice(r)
	}
	return out, more, nil
}

func (s *Service) findDevices(
	ctx context.Context,
	p domain.Principal,
	f Filter,
	page domain.Page,
) ([]dbsqlc.DeviceSummary, error) {
	if p.Scope == nil && reflect.DeepEqual(f, Filter{}) {
		return s.db.ListDevices(ctx, dbsqlc.ListDevicesParams{
			WorkspaceID: p.WorkspaceID,
			AfterAt:     page.After.At,
			AfterID:     page.After.ID,
			MaxRows:     page.Rows(),
		})
	}
	arg := dbsqlc.FindDevicesParams{
		WorkspaceID:   p.WorkspaceID,
		AfterAt:       page.After.At,
		AfterID:       page.After.ID,
		MaxRows:       page.Rows(),
		DeviceIds:     domain.ParseIDs(f.IDs),
		AccountIds:    domain.ParseIDs(f.AccountIDs),
		CreatedBefore: f.CreatedBefore,
		DeviceTypes:   f.Types,
		Manufacturer:  domain.NonEmpty(f.Manufacturer),
		Kind:          domain.NonEmpty(f.Kind),
		IncludeIf:     domain.ListOf(f.IncludeIf),
		ExcludeIf:     domain.ListOf(f.ExcludeIf),
		Pattern:       store.SearchPattern(f.Search),
		CustomerKey:   domain.NonEmpty(f.CustomerKey),
		IsManaged:     !f.Unmanaged,
		Scope:         p.Scope,
	}
	var err error
	if arg.Metadata, arg.WithoutMetadata, err = domain.MetadataConditions(f.Metadata); err != nil {
		return nil, err
	}
	if f.WebviewID != "" {
		ids := domain.ParseIDs(&[]string{f.WebviewID})
		if len(ids) == 0 {
			return nil, nil // an invalid identifier matches no webview
		}
		arg.ConnectWebviewID = &ids[0]
	}
	rows, err := s.db.UnpreparedQueries.FindDevices(ctx, arg)
	out := make([]dbsqlc.DeviceSummary, len(rows))
	for i, r := range rows {
		out[i] = toAnnouncedDevice(r)
	}
	return out, err
}

// SimulatedDevice returns a simulated device, managed or not, for a simulation request.
// It fails with NotFound, and with Invalid if the device is real.
func (s *Service) SimulatedDevice(ctx context.Context, p domain.Principal, id string) (Device, error) {
	d, err := s.GetDevice(ctx, p, id, "")
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		d, err = s.GetUnmanagedDevice(ctx, p, id, "")
	}
	if err != nil {
		return d, err
	}
	if !d.Capabilities.Simulated {
		return d, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "workspace_not_sandbox",
			Message: "Only devices of a sandbox workspace can be simulated. This one is real.",
			Data:    map[string]any{"device_id": id},
		}
	}
	return d, nil
}

// BeginSimulation creates the attempt of a simulated action on a device.
func (s *Service) BeginSimulation(ctx context.Context, device uuid.UUID, action string) (a Attempt, err error) {
	err = s.onDevice(ctx, noFence{}, device, "begin a simulation", func(t *deviceTx) error {
		r, err := s.newDeviceAttempt(ctx, t.tx, t.d, action, s.opt.LockCommandTimeout)
		if err != nil {
			return err
		}
		a = toAttempt(r)
		// The work on the device expires the attempt if it never ends.
		return s.accounts.WakeDevice(ctx, t.tx, t.d.DeviceID, false)
	})
	return a, err
}

// EndSimulation ends the attempt of a simulation: it fails with a non-empty refusal and succeeds otherwise.
func (s *Service) EndSimulation(ctx context.Context, device uuid.UUID, a Attempt, refusal string) (Attempt, error) {
	a.Status = Succeeded
	if refusal != "" {
		a.Status, a.ErrorType, a.Message = Failed, "device_refused", refusal
	}
	return a, s.onDevice(ctx, noFence{}, device, "end a simulation", func(t *deviceTx) error {
		t.lock.End(a.ID, a.Status, a.ErrorType, a.Message)
		return nil
	})
}
