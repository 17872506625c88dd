package devicecloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// wireLock is a device in a response. The guide has two names for some fields.
type wireLock struct {
	LockID       string            `json:"lock_id"`
	DeviceID     string            `json:"device_id"`
	DeviceType   string            `json:"device_type"` // smart_lock, hub or bridge
	Name         string            `json:"name"`
	Model        string            `json:"model"`
	DeviceModel  string            `json:"device_model"`
	Manufacturer string            `json:"manufacturer"`
	SerialNumber string            `json:"serial_number"`
	Online       *bool             `json:"online"`
	BatteryLevel *float64          `json:"battery_level"`        // percent
	KeypadLevel  *float64          `json:"keypad_battery_level"` // percent, of a connected accessory keypad
	LockState    string            `json:"lock_state"`
	DoorState    string            `json:"door_state"` // open or closed
	AutoLock     *wireAutoLock     `json:"auto_lock"`
	HubOnline    *bool             `json:"hub_online"`
	Subscription *bool             `json:"subscription_active"`
	Capabilities *wireCapabilities `json:"capabilities"`
	Thermostat   *wireThermostat   `json:"thermostat"`
	NoiseSensor  *wireNoiseSensor  `json:"noise_sensor"`
}

func (l wireLock) ref() adapter.DeviceRef { return adapter.DeviceRef(cmp.Or(l.LockID, l.DeviceID)) }

// wireCapabilities may lack any of its fields; package sandbox documents them.
type wireCapabilities struct {
	Provider        string                       `json:"provider"`
	DeviceType      string                       `json:"device_type"`
	Lock            *bool                        `json:"remote_lock"`
	Unlock          *bool                        `json:"remote_unlock"`
	OnlineCodes     *bool                        `json:"online_codes"`
	OfflineCodes    *bool                        `json:"offline_codes"`
	ListCodes       *bool                        `json:"list_codes"`
	DeleteUnmanaged *bool                        `json:"delete_any_code"`
	ModifyInPlace   *bool                        `json:"modify_codes"`
	PINVisible      *bool                        `json:"pin_visible"`
	ProviderPIN     *bool                        `json:"provider_pin"`
	NativeSchedule  *bool                        `json:"native_schedule"`
	Convert         string                       `json:"convert"`
	CodeLengths     lengths                      `json:"code_lengths"`
	MaxCodes        int                          `json:"max_codes"`
	Constraints     adapter.List[wireConstraint] `json:"constraints"`
	NameCharacters  string                       `json:"name_characters"`
	AutoLock        *bool                        `json:"auto_lock"`
	Confirm         string                       `json:"confirm"`
	MinGapMS        int                          `json:"min_write_gap_ms"`
	DirectPower     *bool                        `json:"direct_power"`
	BuiltInKeypad   *bool                        `json:"built_in_keypad"`
	AccessoryKeypad *bool                        `json:"accessory_keypad"`
	EntryEvents     *bool                        `json:"entry_events"`
	Thermostat      *wireThermostatLimits        `json:"thermostat"`
	NoiseSensor     *wireNoiseLimits             `json:"noise_sensor"`
}

type wireConstraint struct {
	Type      string `json:"constraint_type"`
	MinLength int    `json:"min_length"`
	MaxLength int    `json:"max_length"`
}

// lengths lists the accepted lengths of PINs.
type lengths []int

// Limits of the capabilities that are accepted from a vendor.
const (
	maxLengths   = 32
	maxPINLength = 32
	// maxWriteGap bounds the time between writes: reading the lock waits for it.
	maxWriteGap = 10 * time.Second
	// maxAutoLockDelay bounds the delay of an automatic lock.
	maxAutoLockDelay = 24 * time.Hour
	// maxCodes is the maximum number of codes of a lock.
	maxCodes = 5000
	// maxKindSize is the maximum length of a constraint's name in bytes.
	maxKindSize = 100
)

// UnmarshalJSON implements json.Unmarshaler. It fails for too many lengths.
func (l *lengths) UnmarshalJSON(data []byte) error {
	if bytes.Count(data, []byte(",")) >= maxLengths {
		return errors.New("a lock has too many lengths of codes")
	}
	return json.Unmarshal(data, (*[]int)(l))
}

type wireAutoLock struct {
	Enabled bool    `json:"enabled"`
	Delay   float64 `json:"delay_seconds"`
}

// defaultCodeLengths are the lengths that the API's simulated locks accept.
var defaultCodeLengths = []int{4, 5, 6, 7, 8}

func (a *Adapter) device(l wireLock) adapter.Device {
	w := wireCapabilities{}
	if l.Capabilities != nil {
		w = *l.Capabilities
	}
	d := adapter.Device{
		Ref:          l.ref(),
		Name:         l.Name,
		Provider:     cmp.Or(w.Provider, a.provider),
		Manufacturer: l.Manufacturer,
		Model:        cmp.Or(l.Model, l.DeviceModel),
		SerialNumber: l.SerialNumber,
		Online:       valueOr(l.Online, true),
		LossyEvents:  true,
		Capabilities: w.caps(),
	}
	if l.Thermostat != nil || w.Thermostat != nil {
		d.Type = cmp.Or(w.DeviceType, d.Provider+"_thermostat")
		d.Capabilities = w.thermostatCaps()
		d.Thermostat = l.Thermostat.observed()
		d.BatteryLevel = fraction(l.BatteryLevel)
		return d
	}
	if l.NoiseSensor != nil || w.NoiseSensor != nil {
		d.Type = cmp.Or(w.DeviceType, d.Provider+"_noise_sensor")
		d.Capabilities = w.noiseCaps()
		d.NoiseSensor = l.NoiseSensor.observed()
		d.BatteryLevel = fraction(l.BatteryLevel)
		return d
	}
	d.Type = cmp.Or(w.DeviceType, d.Provider+"_lock")
	if l.LockState == "locked" || l.LockState == "unlocked" {
		locked := l.LockState == "locked"
		d.Locked = &locked
	}
	d.Capabilities.Hub, d.Capabilities.Subscription = l.HubOnline != nil, l.Subscription != nil
	d.HubOffline, d.SubscriptionMissing = !valueOr(l.HubOnline, true), !valueOr(l.Subscription, true)
	if l.AutoLock != nil {
		d.AutoLock = &adapter.AutoLock{
			Enabled: l.AutoLock.Enabled,
			Delay:   adapter.Seconds(min(max(l.AutoLock.Delay, 0), maxAutoLockDelay.Seconds())),
		}
	}
	if l.DoorState == "open" || l.DoorState == "closed" {
		d.DoorOpen = new(l.DoorState == "open")
	}
	d.BatteryLevel, d.KeypadBattery = fraction(l.BatteryLevel), fraction(l.KeypadLevel)
	return d
}

// fraction converts percent to a number between 0 and 1.
func fraction(percent *float64) *float64 {
	if percent == nil {
		return nil
	}
	return new(min(max(*percent/100, 0), 1))
}

func (w wireCapabilities) caps() capability.Set {
	c := capability.Set{
		Lock:            valueOr(w.Lock, true),
		Unlock:          valueOr(w.Unlock, true),
		AutoLock:        valueOr(w.AutoLock, false),
		OnlineCodes:     valueOr(w.OnlineCodes, true),
		OfflineCodes:    valueOr(w.OfflineCodes, false),
		ListCodes:       valueOr(w.ListCodes, true),
		DeleteUnmanaged: valueOr(w.DeleteUnmanaged, true),
		ModifyInPlace:   valueOr(w.ModifyInPlace, false),
		PINVisible:      valueOr(w.PINVisible, true),
		ProviderPIN:     valueOr(w.ProviderPIN, false),
		NativeSchedule:  valueOr(w.NativeSchedule, false),
		Convert:         capability.Convert(w.Convert),
		CodeLengths:     defaultCodeLengths,
		DirectPower:     w.DirectPower,
		BuiltInKeypad:   w.BuiltInKeypad,
		AccessoryKeypad: w.AccessoryKeypad,
		EntryEvents:     w.EntryEvents,
		MaxCodes:        max(0, w.MaxCodes),
		Confirm:         capability.ConfirmReadBack,
		MinWriteGap:     time.Duration(min(max(w.MinGapMS, 0), int(maxWriteGap.Milliseconds()))) * time.Millisecond,
	}
	switch {
	case c.Convert == capability.ConvertAdopt,
		c.Convert == capability.ConvertRewrite,
		c.Convert == capability.ConvertNever:
	case c.PINVisible:
		c.Convert = capability.ConvertAdopt
	default:
		c.Convert = capability.ConvertNever
	}
	possible := slices.DeleteFunc(slices.Clone(w.CodeLengths), func(n int) bool { return n < 1 || n > maxPINLength })
	if len(possible) > 0 {
		c.CodeLengths = slices.Sorted(slices.Values(possible))
	}
	if w.NameCharacters == string(capability.NamesAlphanumeric) {
		c.NameCharacters = capability.NamesAlphanumeric
	}
	if w.Confirm == string(capability.ConfirmSync) {
		c.Confirm = capability.ConfirmSync
	}
	for _, k := range w.Constraints[:min(len(w.Constraints), maxLengths)] {
		if len(k.Type) > maxKindSize || strings.ContainsFunc(k.Type, unicode.IsControl) {
			continue
		}
		c.Constraints = append(c.Constraints,
			capability.Constraint{Type: k.Type, MinLength: k.MinLength, MaxLength: k.MaxLength})
	}
	return c
}

func valueOr(v *bool, missing bool) bool {
	if v == nil {
		return missing
	}
	return *v
}

// Statuses of a write. A code that is not active is not, or not only, on the lock.
const (
	statusActive   = "active"
	statusPending  = "pending"
	statusDeleting = "deleting"
	statusFailed   = "failed"
)

// wireCode is an access code in a response.
type wireCode struct {
	ID       string     `json:"access_code_id"`
	CustomID string     `json:"custom_id"`
	Name     string     `json:"name"`
	Code     string     `json:"code"`
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
	Status   string     `json:"status"`
	wireError
}

func (a *Adapter) code(w wireCode) adapter.Code {
	c := adapter.Code{
		Ref:      adapter.CodeRef(w.ID),
		Key:      w.CustomID,
		PIN:      w.Code,
		Name:     w.Name,
		State:    adapter.Confirmed,
		StartsAt: w.StartsAt,
		EndsAt:   w.EndsAt,
		Removing: w.Status == statusDeleting,
	}
	if len(c.PIN) > maxPINLength {
		c.PIN = "" // not a PIN: treat it as hidden
	}
	if w.Status == statusPending || w.Status == statusFailed {
		c.State = adapter.Accepted
	}
	// A pending code may still carry the error of the previous change.
	if w.Status == statusFailed || (w.ErrorCode != "" && w.Status != statusPending) {
		class, known := classes[w.ErrorCode]
		if !known {
			class = adapter.Transient
		}
		c.Failed = a.failure(class, cmp.Or(w.Message, "the lock did not take the code"))
		c.Failed.Conflict = adapter.CodeRef(w.Conflict)
	}
	return c
}

// codeRequest is the body that creates or changes a code. A change repeats the time frame, null if there is none,
// because some clouds clear omitted fields.
type codeRequest struct {
	Name     string `json:"name"`
	Code     string `json:"code,omitempty"`
	CustomID string `json:"custom_id,omitempty"`
	*timeFrame
}

type timeFrame struct {
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
}

// request returns the body for spec, or the reason why the device cannot accept it.
func request(caps capability.Set, spec adapter.CodeSpec) (codeRequest, error) {
	body := codeRequest{Name: spec.Name, Code: spec.PIN}
	timed := spec.StartsAt != nil || spec.EndsAt != nil
	switch {
	case caps.ProviderPIN && spec.PIN != "":
		return body, adapter.Errorf(adapter.Invalid, "the vendor chooses the PIN of this lock")
	case !caps.ProviderPIN && spec.PIN == "":
		return body, adapter.Errorf(adapter.Invalid, "this lock needs a PIN")
	case timed && !caps.NativeSchedule:
		return body, adapter.Errorf(adapter.NotSupported, "the lock does not support time frames")
	case timed && (spec.StartsAt == nil || spec.EndsAt == nil):
		return body, adapter.Errorf(adapter.Invalid, "a time frame needs a start and an end")
	case len(spec.Key) > 64:
		return body, adapter.Errorf(adapter.Invalid, "the key has more than 64 characters")
	case spec.Ref != "" && !caps.ModifyInPlace:
		return body, adapter.Errorf(adapter.NotSupported, "codes of this lock cannot be changed in place")
	}
	if spec.Ref == "" {
		body.CustomID = spec.Key
	}
	if caps.NativeSchedule {
		body.timeFrame = &timeFrame{utc(spec.StartsAt), utc(spec.EndsAt)}
	}
	return body, nil
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// pinDiffers reports whether the vendor responds with another PIN than requested. Asterisks are not a PIN.
func pinDiffers(caps capability.Set, spec adapter.CodeSpec, code adapter.Code) bool {
	digits := strings.Trim(code.PIN, "0123456789") == ""
	return !caps.ProviderPIN && code.PIN != "" && digits && code.PIN != spec.PIN
}

// likeness says whether the code in the response to a write is the requested one.
type likeness int

const (
	requested likeness = iota
	unclear
	// another means that the PIN or the time frame differs.
	another
)

func comparePut(caps capability.Set, spec adapter.CodeSpec, code adapter.Code) likeness {
	if pinDiffers(caps, spec, code) {
		return another
	}
	if !caps.NativeSchedule {
		return requested
	}
	asked, got := []*time.Time{spec.StartsAt, spec.EndsAt}, []*time.Time{code.StartsAt, code.EndsAt}
	now, like := time.Now(), requested
	for i := range asked {
		// Two starts in the past have the same effect.
		begun := i == 0 && asked[0] != nil && got[0] != nil && !asked[0].After(now) && !got[0].After(now)
		switch {
		case begun || asked[i] == nil && got[i] == nil:
		case got[i] == nil && caps.ListCodes: // reading will show whether only the response omits the time
			like = unclear
		case got[i] == nil:
		// Vendors store no fractions of seconds.
		case asked[i] == nil || !asked[i].Truncate(time.Second).Equal(got[i].Truncate(time.Second)):
			return another
		}
	}
	return like
}
