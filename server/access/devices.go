package access

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Device is a device and what it can do.
type Device struct {
	ID           uuid.UUID
	WorkspaceID  uuid.UUID
	AccountID    uuid.UUID
	Ref          string // the vendor's identifier
	Type         string // device_type of the API
	Provider     string // device_provider_name of the API
	Manufacturer string
	Model        string
	SerialNumber string
	Name         string // what it goes by in the workspace
	VendorName   string
	Managed      bool
	Online       bool
	OfflineSince time.Time // meaningful unless Online
	FlakySince   time.Time // zero: its connection is not flaky
	Removed      bool
	Locked       *bool
	AutoLock     *AutoLock // nil where unknown
	BatteryLevel *float64  // 0 to 1
	Capabilities Capabilities
	Metadata     map[string]any
	CreatedAt    time.Time

	HubDisconnected     bool      // it is its hub that makes it offline
	SubscriptionMissing time.Time // since when its vendor wants to be paid for codes; zero: it does not
	TimeZone            string    // as somebody has reported it

	BackupPool    BackupPool
	AccountErrors []Problem
}

// Capabilities is what one device can do, as its adapter has found out.
type Capabilities struct {
	Lock            bool          `json:"lock,omitempty"`
	Unlock          bool          `json:"unlock,omitempty"`
	AutoLock        bool          `json:"auto_lock,omitempty"`
	Hub             bool          `json:"hub,omitempty"`          // it is reached through a hub
	Subscription    bool          `json:"subscription,omitempty"` // its vendor may want to be paid for codes
	OnlineCodes     bool          `json:"online_codes,omitempty"`
	OfflineCodes    bool          `json:"offline_codes,omitempty"`
	ListCodes       bool          `json:"list_codes,omitempty"`
	DeleteUnmanaged bool          `json:"delete_unmanaged,omitempty"`
	PutAnew         bool          `json:"put_anew,omitempty"` // a code on it is changed by taking it off and putting another
	PINVisible      bool          `json:"pin_visible,omitempty"`
	ProviderPIN     bool          `json:"provider_pin,omitempty"` // the vendor chooses the PIN
	NativeSchedule  bool          `json:"native_schedule,omitempty"`
	Convertible     bool          `json:"convertible,omitempty"` // codes found on it can be taken over
	Simulated       bool          `json:"simulated,omitempty"`
	WriteGap        time.Duration `json:"write_gap,omitempty"`    // the least time between two writes
	CodeLengths     []int         `json:"code_lengths,omitempty"` // ascending
	Constraints     []Constraint  `json:"constraints,omitempty"`
	MaxCodes        int           `json:"max_codes,omitempty"` // 0: unknown
}

// Constraint narrows the PINs or names that a device takes: a constraint_type of the API.
type Constraint struct {
	Type      string `json:"type"`
	MinLength int    `json:"min_length,omitempty"` // name_length
	MaxLength int    `json:"max_length,omitempty"` // name_length; 0: unbounded
}

// startsInFuture says whether the device takes no time frame that has begun.
func (c Capabilities) startsInFuture() bool {
	return slices.ContainsFunc(c.Constraints, func(k Constraint) bool { return k.Type == "start_date_in_future" })
}

// Flags are the capability flags of the API that are true, as filters and answers name them.
func (c Capabilities) Flags() []string {
	flags := make([]string, 0, 12)
	for _, f := range [...]struct {
		name string
		on   bool
	}{
		{"can_remotely_lock", c.Lock},
		{"can_remotely_unlock", c.Unlock},
		{"can_program_online_access_codes", c.OnlineCodes},
		{"can_program_offline_access_codes", c.OfflineCodes},
		{"can_unlock_with_code", c.OnlineCodes || c.OfflineCodes},
		{"can_configure_auto_lock", c.AutoLock},
		{"can_simulate_hub_connection", c.Simulated && c.Hub},
		{"can_simulate_hub_disconnection", c.Simulated && c.Hub},
		{"can_simulate_paid_subscription", c.Simulated && c.Subscription},
		{"can_simulate_connection", c.Simulated},
		{"can_simulate_disconnection", c.Simulated},
		{"can_simulate_removal", c.Simulated},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// Errors are what keeps the device, or its account, from working.
func (d Device) Errors() []Problem { return append(d.ownErrors(), d.AccountErrors...) }

func (d Device) ownErrors() []Problem {
	return append(append(d.connectionErrors(), d.subscriptionErrors()...), d.BackupPool.errors()...)
}

func (d Device) connectionErrors() []Problem {
	switch {
	case d.Removed:
		return []Problem{{Code: "device_removed", Scope: OfDevice, At: d.OfflineSince, Message: "The device was removed from its vendor account."}}
	case !d.Online && d.HubDisconnected:
		return []Problem{{Code: hubDisconnected, Scope: OfDevice, At: d.OfflineSince, Message: "The hub of the device is offline, so the device cannot be reached; what is to be done on it is done when the hub returns."}}
	case !d.Online:
		return []Problem{{Code: "device_offline", Scope: OfDevice, At: d.OfflineSince, Message: "The device is offline; what is to be done on it is done when it returns."}}
	}
	return nil
}

// standing is as much of a device as its codes tell: whether it, and its account, can be reached, and what it can do.
func standing(r dbsqlc.CodeDevice) Device {
	return Device{ID: r.DeviceID, WorkspaceID: r.WorkspaceID, AccountID: r.ConnectedAccountID, Online: r.Online, OfflineSince: r.OnlineChangedAt, Removed: r.RemovedAt != nil,
		Capabilities: toCapabilities(r.Capabilities, r.ReportedCodeLengths), AccountErrors: readAccountError(r.AccountError), HubDisconnected: r.HubDisconnected,
		SubscriptionMissing: at(r.SubscriptionMissingAt), BackupPool: toPool(r.BackupPool)}
}

// told is what is told of a device whose row was read as a whole.
func told(d dbsqlc.Device) dbsqlc.DeviceSummary {
	return dbsqlc.DeviceSummary{DeviceID: d.DeviceID, WorkspaceID: d.WorkspaceID, ConnectedAccountID: d.ConnectedAccountID, VendorRef: d.VendorRef, DeviceType: d.DeviceType,
		Provider: d.Provider, Manufacturer: d.Manufacturer, Model: d.Model, SerialNumber: d.SerialNumber, Name: d.Name, Nickname: d.Nickname, IsManaged: d.IsManaged,
		Online: d.Online, OnlineChangedAt: d.OnlineChangedAt, FlakySince: d.FlakySince, RemovedAt: d.RemovedAt, Locked: d.Locked, BatteryLevel: d.BatteryLevel,
		Capabilities: d.Capabilities, ReportedCodeLengths: d.ReportedCodeLengths, CustomMetadata: d.CustomMetadata, AccountError: d.AccountError,
		HubDisconnected: d.HubDisconnected, SubscriptionMissingAt: d.SubscriptionMissingAt, ReportedTimeZone: d.ReportedTimeZone,
		AutoLockEnabled: d.AutoLockEnabled, AutoLockDelaySeconds: d.AutoLockDelaySeconds, BackupPool: d.BackupPool, CreatedAt: d.CreatedAt}
}

// beside is what a code tells of its device.
func beside(d dbsqlc.DeviceSummary) dbsqlc.CodeDevice {
	return dbsqlc.CodeDevice{DeviceID: d.DeviceID, WorkspaceID: d.WorkspaceID, ConnectedAccountID: d.ConnectedAccountID, Online: d.Online,
		OnlineChangedAt: d.OnlineChangedAt, RemovedAt: d.RemovedAt, HubDisconnected: d.HubDisconnected, SubscriptionMissingAt: d.SubscriptionMissingAt,
		Capabilities: d.Capabilities, ReportedCodeLengths: d.ReportedCodeLengths, AccountError: d.AccountError, BackupPool: d.BackupPool}
}

func toDevice(r dbsqlc.DeviceSummary) Device {
	d := standing(beside(r))
	d.Ref, d.Type, d.Provider, d.Manufacturer, d.Model, d.SerialNumber = r.VendorRef, r.DeviceType, r.Provider, r.Manufacturer, r.Model, r.SerialNumber
	d.Name, d.VendorName, d.Managed, d.Locked, d.BatteryLevel, d.CreatedAt = r.Name, r.Name, r.IsManaged, r.Locked, r.BatteryLevel, r.CreatedAt
	d.FlakySince, d.Metadata, d.TimeZone, d.AutoLock = at(r.FlakySince), metadata(r.CustomMetadata), text(r.ReportedTimeZone), toAutoLock(r.AutoLockEnabled, r.AutoLockDelaySeconds)
	if r.Nickname != nil {
		d.Name = *r.Nickname
	}
	return d
}

func deviceNotFound(what, value string) *Error {
	return &Error{Kind: NotFound, Type: "device_not_found", Message: "Could not find a device with this " + what + ".", Data: map[string]any{what: value}}
}

// GetDevice reads a managed device by its identifier or, if that is empty, by its name (the oldest of that name).
// It fails with Invalid unless exactly one is given, and with NotFound.
func (s *Service) GetDevice(ctx context.Context, p Principal, id, name string) (Device, error) {
	return s.getDevice(ctx, p, true, id, name)
}

// findDevice is GetDevice for those who want to know only that the device is there, and whose it is.
func (s *Service) findDevice(ctx context.Context, p Principal, id string) (d dbsqlc.FindDeviceRow, err error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return d, deviceNotFound("device_id", id)
	}
	d, err = s.db.FindDevice(ctx, dbsqlc.FindDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed})
	switch {
	case store.IsNoRows(err) || err == nil && !p.reaches(d.ConnectedAccountID):
		return d, deviceNotFound("device_id", id)
	case err != nil:
		return d, fmt.Errorf("look for the device: %w", err)
	}
	return d, nil
}

// GetUnmanagedDevice is GetDevice for a device that is not managed.
func (s *Service) GetUnmanagedDevice(ctx context.Context, p Principal, id, name string) (Device, error) {
	return s.getDevice(ctx, p, false, id, name)
}

func (s *Service) getDevice(ctx context.Context, p Principal, managed bool, id, name string) (Device, error) {
	if (id == "") == (name == "") {
		return Device{}, invalid("", "Must specify either device_id or name")
	}
	var r dbsqlc.DeviceSummary
	var err error
	if id != "" {
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return Device{}, deviceNotFound("device_id", id)
		}
		r, err = s.db.GetDevice(ctx, dbsqlc.GetDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed, IsManaged: managed})
		if err == nil && !p.reaches(r.ConnectedAccountID) {
			return Device{}, deviceNotFound("device_id", id)
		}
	} else {
		r, err = s.db.GetDeviceByName(ctx, dbsqlc.GetDeviceByNameParams{WorkspaceID: p.WorkspaceID, Name: name, IsManaged: managed, Scope: p.Reach})
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

// DeviceFilter is a set of conditions that must all hold; nil and zero ones are none.
type DeviceFilter struct {
	IDs, AccountIDs      *[]string
	CreatedBefore        *time.Time
	Types                []string // one of; nil: any
	Manufacturer         string
	IncludeIf, ExcludeIf *[]string
	Metadata             map[string]any
	Search               string
	CustomerKey          string // of the account
	WebviewID            string // on which the account was logged in to
	Unmanaged            bool   // those that are not managed, instead of those that are
	Nothing              bool   // a condition that no device meets, such as on spaces, which do not exist
}

// ListDevices lists devices, oldest first, and says whether more follow the page.
func (s *Service) ListDevices(ctx context.Context, p Principal, f DeviceFilter, page Page) ([]Device, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	rows, err := s.findDevices(ctx, p, f, page)
	if err != nil {
		return nil, false, fmt.Errorf("list the devices: %w", err)
	}
	rows, more := cut(page, rows)
	out := make([]Device, len(rows))
	for i, r := range rows {
		out[i] = toDevice(r)
	}
	return out, more, nil
}

func (s *Service) findDevices(ctx context.Context, p Principal, f DeviceFilter, page Page) ([]dbsqlc.DeviceSummary, error) {
	if p.Reach == nil && reflect.DeepEqual(f, DeviceFilter{}) {
		return s.db.ListDevices(ctx, dbsqlc.ListDevicesParams{WorkspaceID: p.WorkspaceID, AfterAt: page.After.At, AfterID: page.After.ID, MaxRows: page.rows()})
	}
	arg := dbsqlc.FindDevicesParams{WorkspaceID: p.WorkspaceID, AfterAt: page.After.At, AfterID: page.After.ID, MaxRows: page.rows(),
		DeviceIds: parseIDs(f.IDs), AccountIds: parseIDs(f.AccountIDs), CreatedBefore: f.CreatedBefore, DeviceTypes: f.Types,
		Manufacturer: nonEmpty(f.Manufacturer), IncludeIf: list(f.IncludeIf), ExcludeIf: list(f.ExcludeIf), Search: nonEmpty(f.Search),
		CustomerKey: nonEmpty(f.CustomerKey), IsManaged: !f.Unmanaged, Scope: p.Reach}
	var err error
	if arg.Metadata, arg.WithoutMetadata, err = metadataConditions(f.Metadata); err != nil {
		return nil, err
	}
	if f.WebviewID != "" {
		ids := parseIDs(&[]string{f.WebviewID})
		if len(ids) == 0 {
			return nil, nil // what is no identifier names no webview
		}
		arg.ConnectWebviewID = &ids[0]
	}
	rows, err := s.db.PlannedAnew.FindDevices(ctx, arg)
	out := make([]dbsqlc.DeviceSummary, len(rows))
	for i, r := range rows {
		out[i] = told(r)
	}
	return out, err
}

// wakeDevice asks for a look at the device once tx is committed; read says that what is on it may have changed.
func (s *Service) wakeDevice(ctx context.Context, tx store.Tx, id uuid.UUID, read bool) error {
	if err := tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: id, ReadNeeded: read}); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, DeviceLane, id)
}

// SimulatedDevice reads a device that is about to be simulated upon, whether it is managed or not.
// It fails with NotFound, and with Invalid when the device is a real one.
func (s *Service) SimulatedDevice(ctx context.Context, p Principal, id string) (Device, error) {
	d, err := s.GetDevice(ctx, p, id, "")
	if e, ok := asError(err); ok && e.Kind == NotFound {
		d, err = s.GetUnmanagedDevice(ctx, p, id, "")
	}
	if err != nil {
		return d, err
	}
	if !d.Capabilities.Simulated {
		return d, &Error{Kind: Invalid, Type: "workspace_not_sandbox", Message: "Only the devices of a sandbox workspace can be simulated upon; this one is real.",
			Data: map[string]any{"device_id": id}}
	}
	return d, nil
}

// BeginSimulation writes the attempt of something that is about to be done to a simulated device by hand.
func (s *Service) BeginSimulation(ctx context.Context, device uuid.UUID, action string) (a Attempt, err error) {
	err = s.onDevice(ctx, anybody{}, device, "begin a simulation", func(t *deviceTx) error {
		r, err := s.newDeviceAttempt(ctx, t.tx, t.d, action, s.opt.BoltPatience)
		if err != nil {
			return err
		}
		a = toAttempt(r)
		return s.wakeDevice(ctx, t.tx, t.d.DeviceID, false) // which gives it up should it never end
	})
	return a, err
}

// EndSimulation ends the attempt: well, or with what the device has refused it with.
func (s *Service) EndSimulation(ctx context.Context, device uuid.UUID, a Attempt, refusal string) (Attempt, error) {
	a.Status = Succeeded
	if refusal != "" {
		a.Status, a.ErrorType, a.Message = Failed, "device_refused", refusal
	}
	return a, s.onDevice(ctx, anybody{}, device, "end a simulation", func(t *deviceTx) error {
		return t.end(ctx, func(r dbsqlc.ActionAttempt) bool { return r.ActionAttemptID == a.ID }, a.Status, a.ErrorType, a.Message)
	})
}
