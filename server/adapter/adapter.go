// Package adapter is the one interface through which every vendor's devices are reached: what a device
// is and can do, the codes that are on it, and the errors a vendor can answer with. It must not know who
// owns a code ("managed" and "unmanaged" are words of package access), nor that a database exists.
//
// One folder below this one holds one vendor protocol; package adaptertest holds the suite that each of
// them has to pass.
package adapter

import (
	"context"
	"math"
	"time"
)

// DeviceRef is the vendor's own identifier of a device, unique within one account and stable for as long
// as the device is the same piece of hardware.
type DeviceRef string

// CodeRef is the vendor's own identifier of a code on one device: a cloud's identifier or a slot number.
type CodeRef string

// Adapter reaches the devices of one connected account. All methods may be called concurrently and end
// with their context; every error is, or wraps, an *Error; reads may fail with ErrCrowded, too.
type Adapter interface {
	// Devices lists all devices of the account.
	// It fails with Transient, GatewayDown or AuthRevoked.
	Devices(ctx context.Context) ([]Device, error)

	// Device reads one device. It fails like Devices, and with NotFound when the account no longer has it.
	Device(ctx context.Context, device DeviceRef) (Device, error)

	// Codes reads what is on the device. Fresh asks the device itself where the vendor keeps a copy;
	// the answer says whether it came from such a copy (Stale).
	// It fails like Device, with Offline, and with NotSupported when the device cannot list its codes.
	Codes(ctx context.Context, device DeviceRef, fresh bool) (Codes, error)

	// PutCode creates the code, or overwrites the one named by spec.Ref. Repeating it with the same
	// spec.Key has no further effect. It fails like Device, with Offline, and with Duplicate, Full,
	// Invalid or Unconfirmed. Where the code turns out to be there otherwise than it is to be, the result
	// has its Ref beside the error. Of a device that cannot list its codes Offline, GatewayDown and
	// AuthRevoked without that say that nothing was put.
	PutCode(ctx context.Context, device DeviceRef, spec CodeSpec) (PutResult, error)

	// DeleteCode removes a code; an absent code is no error. The result says whether the device has
	// already confirmed. It fails like Device, with Offline, NotSupported or Unconfirmed.
	DeleteCode(ctx context.Context, device DeviceRef, code CodeRef) (State, error)

	// Events carries hints of what has changed. They may be lost, doubled and late: they only say where
	// to look. The channel is closed by Close.
	Events() <-chan Event

	Close() error
}

// Locker is the further ability of an account with devices that can be locked or unlocked from afar (Caps.Lock,
// Caps.Unlock). Accepted means that the bolt has still to move: Device shows when it has, and LockOperated or
// Jammed tells, where the vendor tells anything. Repeating either has no further effect on the bolt.
// Both fail like Device, with Offline, with NotSupported where the device lacks the capability, and with
// Unconfirmed where nobody knows whether the command got through; with any other error it did not.
type Locker interface {
	Lock(ctx context.Context, device DeviceRef) (State, error)
	Unlock(ctx context.Context, device DeviceRef) (State, error)
}

// AutoLocker is the further ability of an account with devices that can be told to lock themselves a while after they
// were unlocked (Caps.AutoLock). Accepted means that the device has still to take that: Device shows when it has.
// Repeating it has no further effect. It fails like Device, with Offline, with Invalid where the device does not take
// that delay, with NotSupported where it lacks the capability, and with Unconfirmed where nobody knows whether it got
// through.
type AutoLocker interface {
	ConfigureAutoLock(ctx context.Context, device DeviceRef, setting AutoLock) (State, error)
}

// AutoLock says whether a device locks itself, and how long after it was unlocked.
type AutoLock struct {
	Enabled bool
	Delay   time.Duration // where it is enabled
}

// Seconds is a time that is told in seconds, to the nearest nanosecond: converting it would cut, and 8.2 be less.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// OfflineIssuer is the further ability of an account whose vendor makes codes that a device accepts without being told of
// them (Caps.OfflineCodes). Such a code is in no list, and can be neither changed nor taken back.
type OfflineIssuer interface {
	// IssueCode has the vendor make a code. The device need not be reached. Repeating it with the same spec.Key gives
	// the same code. It fails like Device, with Full, with Invalid where the vendor makes none for such a time, and with
	// NotSupported where the device lacks the capability.
	IssueCode(ctx context.Context, device DeviceRef, spec OfflineSpec) (IssuedCode, error)
}

// OfflineSpec is a code to be made. It starts and ends on the hour.
type OfflineSpec struct {
	Key              string // ours, at most 64 characters
	Kind             OfflineKind
	StartsAt, EndsAt time.Time
}

// OfflineKind says how long an offline code may last.
type OfflineKind string

const (
	OfflineHourly  OfflineKind = "hourly"
	OfflineDaily   OfflineKind = "daily"
	OfflineOneTime OfflineKind = "one_time" // it opens once
)

// IssuedCode is a code that the vendor has made.
type IssuedCode struct {
	Ref CodeRef // by which the vendor tells of its use
	PIN string
}

// Simulator is the further ability of an account whose devices are simulated: what a person would do to
// the hardware by hand. It fails with NotSupported on an account of real devices.
type Simulator interface {
	SetOnline(ctx context.Context, device DeviceRef, online bool) error
	RemoveDevice(ctx context.Context, device DeviceRef) error
	// AddCode types a code in at the keypad, and names it. The same request gives the same code, as long as that is there; empty:
	// each time another one. It fails with Duplicate, Full or Invalid.
	AddCode(ctx context.Context, device DeviceRef, name, pin, request string) (CodeRef, error)
	// EnterCode types a PIN in at the door, and says whether that has opened it.
	EnterCode(ctx context.Context, device DeviceRef, pin string) (opened bool, err error)
	// LockByHand locks the door with the keypad's own button. It fails with Transient where the bolt is jammed.
	LockByHand(ctx context.Context, device DeviceRef) error
	// SetHub takes the hub that the device is behind off its network, or brings it back. It fails with NotSupported where there is none.
	SetHub(ctx context.Context, device DeviceRef, online bool) error
	// SetSubscription ends or renews what has to be paid for codes. It fails with NotSupported where nothing has.
	SetSubscription(ctx context.Context, device DeviceRef, expired bool) error
	// Disconnect has the vendor refuse the account's credentials from now on.
	Disconnect(ctx context.Context) error
}

// Device is one device as its vendor describes it.
type Device struct {
	Ref          DeviceRef
	Name         string
	Type         string // device_type of the API, such as "august_lock"
	Provider     string // device_provider_name of the API, such as "august"
	Manufacturer string
	Model        string
	SerialNumber string
	Online       bool
	Locked       *bool    // nil where unknown
	BatteryLevel *float64 // 0 to 1, nil where unknown
	Caps         Caps
	CapsUnknown  bool // Caps does not say yet what codes it takes: what was known of that before still holds

	AutoLock            *AutoLock // nil where unknown
	HubOffline          bool      // it cannot be reached because its hub cannot
	SubscriptionMissing bool      // its vendor puts no codes on it until it is paid for that
	Lossy               bool      // what Events has to tell of it may get lost unnoticed, and reading it now and then costs it little
}

// Caps is what one device can do. Capabilities belong to a device, not to a vendor.
type Caps struct {
	Lock, Unlock    bool // can be locked, unlocked from afar
	AutoLock        bool // can be told to lock itself after a while
	Hub             bool // is reached through a hub
	Subscription    bool // its vendor may want to be paid for codes
	OnlineCodes     bool // codes can be put on it from afar
	OfflineCodes    bool // the vendor can issue codes that the device accepts without a connection
	ListCodes       bool // existing codes can be read back
	DeleteUnmanaged bool // a code that we did not put there can be deleted
	ModifyInPlace   bool // PutCode with a Ref changes the code; otherwise delete, then create
	PINVisible      bool // Codes carries PINs
	ProviderPIN     bool // the vendor chooses the PIN, PutResult carries it; CodeSpec.PIN must be empty
	NativeSchedule  bool // StartsAt and EndsAt are kept by the device itself
	Convert         Convert
	CodeLengths     []int // ascending
	Constraints     []Constraint
	MaxCodes        int // 0: unknown
	Confirm         Confirm
	MinGap          time.Duration // the least time between two writes
}

// Convert says how a code that is already on the device can be taken over.
type Convert string

const (
	ConvertNever   Convert = "never"
	ConvertAdopt   Convert = "adopt"   // the PIN is readable: ownership is taken without a write
	ConvertRewrite Convert = "rewrite" // the PIN is hidden: its owner must supply a new one
)

// Confirm says how the effect of a write becomes known.
type Confirm string

const (
	ConfirmSync     Confirm = "sync"      // the answer to the write is the device's own
	ConfirmReadBack Confirm = "read_back" // the write was accepted; Codes tells later whether it took effect
)

// Constraint narrows the PINs or names that a device takes. Kind is a constraint_type of the API, such as
// "no_zeros"; MinLength and MaxLength belong to "name_length", 0 where unbounded.
type Constraint struct {
	Kind                 string
	MinLength, MaxLength int
}

// Codes is the content of one device.
type Codes struct {
	Codes        []Code
	SerialNumber string // of the device that has answered; empty where it is not known
	Stale        bool   // read from a copy that the device has not confirmed since the last (re)connection
}

// Code is one code on a device.
type Code struct {
	Ref              CodeRef
	Key              string // the CodeSpec.Key it was created with, where the vendor keeps it
	KeyGuessed       bool   // it does not: Key is that of the last put to the place, which shows no PIN, and somebody else may have filled it since
	PIN              string // empty where hidden
	Name             string
	State            State // Accepted: on its way onto the device
	StartsAt, EndsAt *time.Time
	Failed           *Error    // the vendor gave up putting it on the device
	Removing         bool      // a deletion was accepted and is on its way
	ChangedAt        time.Time // PIN hidden: when the device told last that it was changed, by this machine's clock, unless that was of a put by this adapter; zero: never
	Disabled         bool      // the device keeps it, and lets nobody in with it; PutCode with its Ref enables it
}

// CodeSpec is a code as it should be.
type CodeSpec struct {
	Ref              CodeRef // the code to overwrite; empty to create
	Key              string  // idempotency key of a creation, at most 64 characters
	PIN              string
	Name             string
	StartsAt, EndsAt *time.Time // both or neither; only where Caps.NativeSchedule

	// Place is told the Ref of a code that is created where the adapter chooses it, before it is written: so it is known
	// after a crash, also where PINs are hidden and the vendor keeps no Key. It is told that of a code whose place is to be
	// emptied first, too, before that. Its error ends the put. It may be nil.
	Place func(ctx context.Context, code CodeRef) error
}

// TellPlace calls Place, where there is one.
func (s CodeSpec) TellPlace(ctx context.Context, code CodeRef) error {
	if s.Place == nil {
		return nil
	}
	return s.Place(ctx, code)
}

// PutResult is what became of a PutCode.
type PutResult struct {
	Ref   CodeRef
	PIN   string // where Caps.ProviderPIN
	State State
}

// State says how far a write has come.
type State string

const (
	Accepted  State = "accepted"  // the vendor took it; the device has not confirmed
	Confirmed State = "confirmed" // it is on the device
)

// Event is a hint. Device is empty where the whole account should be looked at again.
type Event struct {
	Kind      EventKind
	Device    DeviceRef
	Code      CodeRef   // CodesChanged, LockOperated, AccessDenied: the code, where known
	Operation Operation // LockOperated, AccessDenied, Jammed
	At        time.Time // DeviceRemoved: when that was heard, by this machine's clock
}

type EventKind string

const (
	Resync         EventKind = "resync"          // anything may have changed
	DeviceOnline   EventKind = "device_online"   //
	DeviceOffline  EventKind = "device_offline"  //
	DeviceListed   EventKind = "device_listed"   // devices were added to or removed from the account
	DeviceRemoved  EventKind = "device_removed"  // it has left for good: what has its Ref from then on is another device; not lost while the program runs
	CodesChanged   EventKind = "codes_changed"   // put, changed or deleted, by us or by others
	StatusChanged  EventKind = "status_changed"  // battery, bolt, name
	AccountRevoked EventKind = "account_revoked" // the credentials are no longer good
	LockOperated   EventKind = "lock_operated"   // the bolt was moved, by us or by others
	AccessDenied   EventKind = "access_denied"   // somebody was not let in
	Jammed         EventKind = "jammed"          // the bolt could not be moved
)

// Operation is what somebody did, or tried to do, at a lock. It carries no PIN.
type Operation struct {
	ID     string    // the vendor's identifier of it, the same when it is told twice; empty where it has none
	Locked bool      // LockOperated: where the bolt is now; Jammed: where it was to go
	Method Method    // LockOperated
	At     time.Time // by the vendor's clock; zero: now
}

// Method is how a bolt was moved: the method of the API's lock.locked and lock.unlocked.
type Method string

const (
	ByKeycode Method = "keycode"   // a PIN at the keypad; Event.Code says which, where known
	ByHand    Method = "manual"    // thumbturn, key or a button on the lock
	Remotely  Method = "remote"    // through the vendor, by us or by an app
	ByItself  Method = "automatic" // such as an auto-lock timer
	ByCard    Method = "card"      // a card or a tag
	ByUnknown Method = "unknown"   //
)
