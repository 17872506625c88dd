// Package adapter defines the interface between the server and the devices of every vendor: the properties and
// capabilities of a device, the codes on it, and the classes of vendor errors. It must not know who owns a code
// ("managed" and "unmanaged" are terms of package device), and it must not know the database.
//
// Each package below this one implements one vendor protocol. Package adaptertest holds the conformance suite that
// every adapter must pass.
package adapter

import (
	"context"
	"math"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// DeviceRef is the vendor's identifier of a device. It is unique within one account and stable while the device
// remains the same piece of hardware.
type DeviceRef string

// CodeRef is the vendor's identifier of a code on one device: an identifier of the cloud, or a slot number.
type CodeRef string

// Adapter accesses the devices of one connected account. All methods may be called concurrently and return when their
// context ends. Every error is or wraps an *Error; reads may also fail with ErrSaturated.
type Adapter interface {
	// Devices lists all devices of the account.
	// It fails with Transient, GatewayDown or AuthRevoked.
	Devices(ctx context.Context) ([]Device, error)

	// Device reads one device. It fails like Devices, and with NotFound when the account does not have it.
	Device(ctx context.Context, device DeviceRef) (Device, error)

	// Codes reads the codes on the device. With fresh, it queries the device instead of the vendor's copy.
	// Codes.Stale reports whether the answer comes from such a copy. It fails like Device, with Offline, and with
	// NotSupported when the device cannot list its codes.
	Codes(ctx context.Context, device DeviceRef, fresh bool) (Codes, error)

	// PutCode creates the code, or overwrites the code spec.Ref. Repeating a call with the same spec.Key has no
	// further effect. It fails like Device, with Offline, and with Duplicate, Full, Invalid, or Unconfirmed. If the
	// code exists but differs from spec, the result holds its Ref in addition to the error. For a device that cannot
	// list its codes, Offline, GatewayDown, and AuthRevoked without a Ref mean that nothing was written.
	PutCode(ctx context.Context, device DeviceRef, spec CodeSpec) (PutResult, error)

	// DeleteCode deletes a code. Deleting an absent code is not an error. The returned state is Confirmed when the
	// device has confirmed the deletion. It fails like Device, with Offline, NotSupported, or Unconfirmed.
	DeleteCode(ctx context.Context, device DeviceRef, code CodeRef) (State, error)

	// Events returns the channel of events. An event only says where to look: it may be lost, duplicated, or late.
	// Close closes the channel.
	Events() <-chan Event

	// Close disconnects the adapter and closes the channel of events.
	Close() error
}

// Locker is implemented by adapters whose devices can be locked or unlocked remotely (Capabilities.Lock, Capabilities.Unlock).
// Accepted means that the bolt has not moved yet. Device shows when it has; vendors that send events also send
// LockOperated or Jammed. Repeating a call has no further effect on the bolt. Both methods fail like Device, with
// Offline, and with NotSupported when the device lacks the capability. They fail with Unconfirmed when the outcome is
// unknown; after any other error the command had no effect.
type Locker interface {
	// Lock locks the device.
	Lock(ctx context.Context, device DeviceRef) (State, error)
	// Unlock unlocks the device.
	Unlock(ctx context.Context, device DeviceRef) (State, error)
}

// AutoLocker is implemented by adapters whose devices can lock themselves some time after an unlock (Capabilities.AutoLock).
// Accepted means that the device has not applied the setting yet; Device shows when it has. Repeating a call has no
// further effect. It fails like Device, with Offline, with Invalid when the device does not support the delay, with
// NotSupported when the device lacks the capability, and with Unconfirmed when the outcome is unknown.
type AutoLocker interface {
	// ConfigureAutoLock writes the auto-lock setting of the device.
	ConfigureAutoLock(ctx context.Context, device DeviceRef, setting AutoLock) (State, error)
}

// AutoLock is the auto-lock setting of a device.
type AutoLock struct {
	Enabled bool
	// Delay is the time between the unlock and the automatic lock; meaningful only when Enabled.
	Delay time.Duration
}

// Seconds converts seconds to a Duration, rounded to the nearest nanosecond. A plain conversion would truncate 8.2.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// Warner is implemented by adapters that find something that the owner of an account should change at the vendor.
type Warner interface {
	// Warnings returns what the last call of Devices found, at most one of each code.
	Warnings() []Warning
}

// Warning is a warning of an account.
type Warning struct {
	// Code is the warning_code of the API.
	Code string
	// Message says what to do.
	Message string
}

// Converter is implemented by adapters whose vendor has unmanaged codes of its own (Code.Unconverted).
type Converter interface {
	// ConvertCode asks the vendor to take over a code. Accepted means that a later list shows the code as converted.
	// It fails like Device, with Offline, with NotSupported when the vendor never takes the code over, and with
	// Unconfirmed.
	ConvertCode(ctx context.Context, device DeviceRef, code CodeRef) (State, error)
}

// OfflineIssuer is implemented by adapters whose vendor issues codes that a device accepts without a connection
// (Capabilities.OfflineCodes). Such codes are not listed and cannot be changed or deleted.
type OfflineIssuer interface {
	// IssueCode asks the vendor for an offline code. The device can be offline. Repeated calls with the same spec.Key
	// return the same code. It fails like Device, with Full, with Invalid when the vendor issues no code for such a
	// time, and with NotSupported when the device lacks the capability.
	IssueCode(ctx context.Context, device DeviceRef, spec OfflineSpec) (IssuedCode, error)
}

// OfflineSpec describes an offline code to issue. StartsAt and EndsAt must be full hours.
type OfflineSpec struct {
	// Key is the server's idempotency key, at most 64 characters.
	Key              string
	Kind             OfflineKind
	StartsAt, EndsAt time.Time
}

// OfflineKind is the duration class of an offline code.
type OfflineKind string

// Kinds of offline codes. An OfflineOneTime code opens once.
const (
	OfflineHourly  OfflineKind = "hourly"
	OfflineDaily   OfflineKind = "daily"
	OfflineOneTime OfflineKind = "one_time"
)

// IssuedCode is an offline code that the vendor has issued.
type IssuedCode struct {
	// Ref identifies the code in the vendor's events about its use.
	Ref CodeRef
	PIN string
}

// Simulator is implemented by adapters of simulated devices. Its methods do what a person would do at the hardware.
// They fail with NotSupported for an account of real devices.
type Simulator interface {
	// SetOnline disconnects the device from its network, or reconnects it.
	SetOnline(ctx context.Context, device DeviceRef, online bool) error
	// RemoveDevice removes the device from the account.
	RemoveDevice(ctx context.Context, device DeviceRef) error
	// AddCode enters a new code with a name at the keypad. The same request returns the same code while that code
	// exists; with an empty request each call adds another code. It fails with Duplicate, Full, or Invalid.
	AddCode(ctx context.Context, device DeviceRef, name, pin, request string) (CodeRef, error)
	// EnterCode enters a PIN at the door and reports whether the door opened.
	EnterCode(ctx context.Context, device DeviceRef, pin string) (opened bool, err error)
	// LockByHand locks the door with the keypad's lock button. It fails with Transient when the bolt is jammed.
	LockByHand(ctx context.Context, device DeviceRef) error
	// SetHub disconnects the hub of the device from its network, or reconnects it. It fails with NotSupported when
	// the device has no hub.
	SetHub(ctx context.Context, device DeviceRef, online bool) error
	// SetSubscription expires or renews the paid plan that codes require. It fails with NotSupported when codes
	// require no plan.
	SetSubscription(ctx context.Context, device DeviceRef, expired bool) error
	// Disconnect revokes the account's credentials at the vendor.
	Disconnect(ctx context.Context) error
}

// Device describes one device as reported by its vendor.
type Device struct {
	Ref  DeviceRef
	Name string
	// Type is the device_type of the API, such as "august_lock".
	Type string
	// Provider is the device_provider_name of the API, such as "august".
	Provider     string
	Manufacturer string
	Model        string
	SerialNumber string
	Online       bool
	// Locked is nil when unknown.
	Locked *bool
	// BatteryLevel is between 0 and 1; nil when unknown.
	BatteryLevel *float64
	// KeypadBattery is the battery level of the connected accessory keypad; nil when there is none.
	KeypadBattery *float64
	// DoorOpen is nil when unknown.
	DoorOpen     *bool
	Capabilities capability.Set
	// CapabilitiesUnknown means that Capabilities does not contain the code capabilities yet. The previously known ones remain valid.
	CapabilitiesUnknown bool

	// AutoLock is nil when unknown.
	AutoLock *AutoLock
	// HubOffline means that the device is unreachable because its hub is.
	HubOffline bool
	// SubscriptionMissing means that the vendor accepts no codes for the device until a plan is paid.
	SubscriptionMissing bool
	// LossyEvents means that events of the device may get lost unnoticed and that reading it periodically is cheap.
	LossyEvents bool
	// Thermostat is set for thermostats that have reported their state.
	Thermostat *Thermostat
	// NoiseSensor is set for noise sensors that have reported their state.
	NoiseSensor *NoiseSensor
}

// Codes is the list of codes on one device.
type Codes struct {
	Codes []Code
	// SerialNumber identifies the device that answered; empty when unknown.
	SerialNumber string
	// Stale means that the list comes from a copy that the device has not confirmed since the last (re)connection.
	Stale bool
}

// Code is one code on a device.
type Code struct {
	Ref CodeRef
	// Key is the CodeSpec.Key of the creation, if the vendor stores it.
	Key string
	// KeyGuessed means that the vendor does not store keys. Key is then the one of the last write to this place,
	// which hides its PIN, so that another writer may have replaced the code.
	KeyGuessed bool
	// PIN is empty when hidden.
	PIN  string
	Name string
	// State is Accepted while the code is being written to the device.
	State            State
	StartsAt, EndsAt *time.Time
	// Failed is set when the vendor has given up writing the code to the device.
	Failed *Error
	// Removing means that a deletion was accepted and has not completed.
	Removing bool
	// ChangedAt is when the device last reported a change of a hidden PIN, by this machine's clock. Changes by this
	// adapter do not count; zero means never.
	ChangedAt time.Time
	// Disabled means that the device stores the code but denies access with it. PutCode with its Ref enables the
	// code.
	Disabled bool
	// Unconverted means that the vendor must take the code over before the server manages it. The adapter implements
	// Converter.
	Unconverted bool
}

// CodeSpec is the desired state of a code.
type CodeSpec struct {
	// Ref is the code to overwrite; empty to create one.
	Ref CodeRef
	// Key is the idempotency key of a creation, at most 64 characters.
	Key  string
	PIN  string
	Name string
	// StartsAt and EndsAt are both set or both nil. They require Capabilities.NativeSchedule.
	StartsAt, EndsAt *time.Time

	// OnPlace receives the Ref of a code before the code is written, when the adapter chooses the Ref. The caller
	// stores it, so that the Ref is known after a crash even if PINs are hidden and the vendor stores no Key. If the
	// place must be cleared first, OnPlace is called before the clearing. An error ends the write. OnPlace may be
	// nil.
	OnPlace func(ctx context.Context, code CodeRef) error
}

// NotifyPlace calls OnPlace, if set.
func (s CodeSpec) NotifyPlace(ctx context.Context, code CodeRef) error {
	if s.OnPlace == nil {
		return nil
	}
	return s.OnPlace(ctx, code)
}

// PutResult is the outcome of a PutCode.
type PutResult struct {
	Ref CodeRef
	// PIN is set when Capabilities.ProviderPIN.
	PIN   string
	State State
}

// State is the progress of a write.
type State string

const (
	// Accepted means that the vendor has accepted the write and the device has not confirmed it.
	Accepted State = "accepted"
	// Confirmed means that the device has applied the write.
	Confirmed State = "confirmed"
)

// Event says that something may have changed. Device is empty when the whole account must be read.
type Event struct {
	Kind   EventKind
	Device DeviceRef
	// Code is set for CodesChanged, LockOperated, and AccessDenied, if known.
	Code CodeRef
	// Operation is set for LockOperated, AccessDenied, Jammed, and Tampered.
	Operation Operation
	// At is when a DeviceRemoved was received, by this machine's clock.
	At time.Time
}

// EventKind is the kind of an Event.
type EventKind string

const (
	// Resync means that anything in the account may have changed.
	Resync EventKind = "resync"
	// DeviceOnline means that the device came online.
	DeviceOnline EventKind = "device_online"
	// DeviceOffline means that the device went offline.
	DeviceOffline EventKind = "device_offline"
	// DeviceListed means that devices were added to or removed from the account.
	DeviceListed EventKind = "device_listed"
	// DeviceRemoved means that the device was removed permanently: another device may reuse its Ref.
	// It is not lost while the program runs.
	DeviceRemoved EventKind = "device_removed"
	// CodesChanged means that codes were added, changed, or deleted, by this server or by others.
	CodesChanged EventKind = "codes_changed"
	// StatusChanged means that the battery level, the bolt, the door, the name, or the state of a thermostat or noise
	// sensor changed.
	StatusChanged EventKind = "status_changed"
	// AccountRevoked means that the account's credentials are invalid.
	AccountRevoked EventKind = "account_revoked"
	// LockOperated means that the bolt moved, commanded by this server or by others.
	LockOperated EventKind = "lock_operated"
	// AccessDenied means that a person was denied access.
	AccessDenied EventKind = "access_denied"
	// Jammed means that the bolt could not move.
	Jammed EventKind = "jammed"
	// Tampered means that the device detected tampering with itself.
	Tampered EventKind = "tampered"
)

// Operation is an action at a lock, completed or attempted. It contains no PIN.
type Operation struct {
	// ID is the vendor's identifier of the operation, equal in repeated events; empty when the vendor has none.
	ID string
	// Locked is the position of the bolt after a LockOperated, and the target position of a Jammed.
	Locked bool
	// Method is set for LockOperated.
	Method Method
	// At is the time by the vendor's clock; zero means now.
	At time.Time
}

// Method is how a bolt was moved: the method of the API's lock.locked and lock.unlocked events.
type Method string

const (
	// ByKeycode is a PIN at the keypad. Event.Code identifies the code, if known.
	ByKeycode Method = "keycode"
	// ByHand is a thumbturn, a key, or a button on the lock.
	ByHand Method = "manual"
	// Remotely is a command through the vendor, by this server or by an app.
	Remotely Method = "remote"
	// Automatically is the lock's own action, such as an auto-lock timer.
	Automatically Method = "automatic"
	// ByCard is a card or a tag.
	ByCard Method = "card"
	// ByUnknown is any other method.
	ByUnknown Method = "unknown"
)
