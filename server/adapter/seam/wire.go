package seam

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Limits of what is accepted from a server.
const (
	// maxIDSize is the maximum length of an identifier in bytes.
	maxIDSize = 200
	// maxCodes is the maximum number of codes of a device.
	maxCodes         = 5000
	maxPINLength     = 32
	maxLengths       = 32
	maxConstraints   = 32
	maxKindSize      = 100
	maxAutoLockDelay = 24 * time.Hour
)

// wireDevice is a device in a response. Servers may omit any field.
type wireDevice struct {
	ID             string                    `json:"device_id"`
	Type           string                    `json:"device_type"`
	Name           string                    `json:"display_name"`
	Errors         adapter.List[wireProblem] `json:"errors"`
	Properties     wireProperties            `json:"properties"`
	DeviceProvider struct {
		Name string `json:"device_provider_name"`
	} `json:"device_provider"`

	CanLock          *bool `json:"can_remotely_lock"`
	CanUnlock        *bool `json:"can_remotely_unlock"`
	CanOnlineCodes   *bool `json:"can_program_online_access_codes"`
	CanOfflineCodes  *bool `json:"can_program_offline_access_codes"`
	CanConfigureAuto *bool `json:"can_configure_auto_lock"`
}

// wireProblem is an element of errors.
type wireProblem struct {
	Code            string `json:"error_code"`
	Message         string `json:"message"`
	ManagedCodeID   string `json:"managed_access_code_id"`
	UnmanagedCodeID string `json:"unmanaged_access_code_id"`
}

type wireProperties struct {
	Online       *bool    `json:"online"`
	Name         string   `json:"name"`
	Locked       *bool    `json:"locked"`
	DoorOpen     *bool    `json:"door_open"`
	BatteryLevel *float64 `json:"battery_level"` // between 0 and 1
	Manufacturer string   `json:"manufacturer"`
	SerialNumber string   `json:"serial_number"`
	Battery      struct {
		Level *float64 `json:"level"`
	} `json:"battery"`
	KeypadBattery struct {
		Level *float64 `json:"level"`
	} `json:"keypad_battery"`
	Model struct {
		DisplayName  string `json:"display_name"`
		Manufacturer string `json:"manufacturer_display_name"`
		Keypad       *bool  `json:"has_built_in_keypad"`
		Accessory    *bool  `json:"can_connect_accessory_keypad"`
	} `json:"model"`
	DirectPower          *bool           `json:"has_direct_power"`
	EntryEvents          *bool           `json:"has_native_entry_events"`
	OnlineCodes          *bool           `json:"online_access_codes_enabled"`
	OfflineCodes         *bool           `json:"offline_access_codes_enabled"`
	SupportsOfflineCodes *bool           `json:"supports_offline_access_codes"`
	CodeLengths          []float64       `json:"supported_code_lengths"`
	MaxCodes             *float64        `json:"max_active_codes_supported"`
	Constraints          wireConstraints `json:"code_constraints"`
	AutoLock             *bool           `json:"auto_lock_enabled"`
	AutoLockDelay        *float64        `json:"auto_lock_delay_seconds"`
}

type wireConstraints = adapter.List[wireConstraint]

type wireConstraint struct {
	Type string `json:"constraint_type"`
}

// providers lists what the API does not say about the codes of a provider: docs.seam.co, "access codes", on 2026-08-26.
var providers = map[string]struct {
	// neverManaged means that codes from outside cannot become managed.
	neverManaged bool
	// pinHidden means that the PINs of codes from outside are not shown.
	pinHidden bool
}{
	"igloohome":   {neverManaged: true},
	"kwikset":     {neverManaged: true},
	"smartthings": {neverManaged: true, pinHidden: true},
}

// defaultCodeLengths are the lengths of a device that reports none. Access codes of the API have 4 to 8 digits.
var defaultCodeLengths = []int{4, 5, 6, 7, 8}

// isLock reports whether the device has a bolt or access codes. The vendor's test server claims both for each device in
// capabilities_supported.
func (d wireDevice) isLock() bool {
	for _, can := range []*bool{d.CanLock, d.CanUnlock, d.CanOnlineCodes, d.CanOfflineCodes} {
		if isTrue(can) {
			return true
		}
	}
	return strings.HasSuffix(d.Type, "_lock")
}

// device converts a device. What is absent is unknown.
func (a *Adapter) device(w wireDevice) adapter.Device {
	p := w.Properties
	d := adapter.Device{
		Ref:           adapter.DeviceRef(w.ID),
		Name:          cmp.Or(w.Name, p.Name, "Lock"),
		Type:          w.Type,
		Provider:      cmp.Or(w.DeviceProvider.Name, strings.TrimSuffix(w.Type, "_lock")),
		Manufacturer:  cmp.Or(p.Model.Manufacturer, p.Manufacturer),
		Model:         p.Model.DisplayName,
		SerialNumber:  p.SerialNumber,
		Online:        p.Online == nil || *p.Online,
		Locked:        p.Locked,
		DoorOpen:      p.DoorOpen,
		BatteryLevel:  fraction(cmp.Or(p.BatteryLevel, p.Battery.Level)),
		KeypadBattery: fraction(p.KeypadBattery.Level),
		LossyEvents:   true,
	}
	d.Capabilities = w.caps(d.Provider)
	for _, e := range w.Errors {
		switch e.Code {
		case "hub_disconnected", "bridge_disconnected":
			d.Online, d.HubOffline, d.Capabilities.Hub = false, true, true
		case "subscription_required":
			d.SubscriptionMissing, d.Capabilities.Subscription = true, true
		case "device_offline", "device_disconnected", "account_disconnected", "device_removed":
			d.Online = false
		}
	}
	if p.AutoLock != nil {
		d.AutoLock = &adapter.AutoLock{Enabled: *p.AutoLock}
		if p.AutoLockDelay != nil {
			d.AutoLock.Delay = adapter.Seconds(min(max(*p.AutoLockDelay, 0), maxAutoLockDelay.Seconds()))
		}
	}
	return d
}

// caps returns the capabilities of a device. The server applies time frames and changes itself, whatever the device
// can do.
func (d wireDevice) caps(provider string) capability.Set {
	p, known := d.Properties, providers[provider]
	c := capability.Set{
		Lock:            isTrue(d.CanLock),
		Unlock:          isTrue(d.CanUnlock),
		AutoLock:        isTrue(d.CanConfigureAuto),
		OnlineCodes:     isTrue(cmp.Or(d.CanOnlineCodes, p.OnlineCodes)),
		OfflineCodes:    isTrue(cmp.Or(d.CanOfflineCodes, p.OfflineCodes)),
		ListCodes:       true,
		DeleteUnmanaged: true,
		ModifyInPlace:   true,
		NativeSchedule:  true,
		PINVisible:      !known.pinHidden,
		Convert:         capability.ConvertAdopt,
		Confirm:         capability.ConfirmReadBack,
		CodeLengths:     defaultCodeLengths,
		DirectPower:     p.DirectPower,
		BuiltInKeypad:   p.Model.Keypad,
		AccessoryKeypad: p.Model.Accessory,
		EntryEvents:     p.EntryEvents,
	}
	if known.neverManaged {
		c.Convert = capability.ConvertNever
	}
	var lengths []int
	for _, n := range p.CodeLengths[:min(len(p.CodeLengths), maxLengths)] {
		if n >= 1 && n <= maxPINLength {
			lengths = append(lengths, int(n))
		}
	}
	if len(lengths) > 0 {
		slices.Sort(lengths)
		c.CodeLengths = slices.Compact(lengths)
	}
	if p.MaxCodes != nil && *p.MaxCodes >= 1 {
		c.MaxCodes = int(min(*p.MaxCodes, maxCodes))
	}
	for _, k := range p.Constraints[:min(len(p.Constraints), maxConstraints)] {
		switch {
		// The server keeps the name of a code and shortens it for the device.
		case strings.HasPrefix(k.Type, "name_"), k.Type == "", len(k.Type) > maxKindSize,
			strings.ContainsFunc(k.Type, unicode.IsControl):
			continue
		case k.Type == "cannot_specify_pin_code":
			c.ProviderPIN = true
		}
		c.Constraints = append(c.Constraints, capability.Constraint{Type: k.Type})
	}
	return c
}

// isTrue reports whether a field is present and true.
func isTrue(v *bool) bool { return v != nil && *v }

func fraction(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(min(max(*v, 0), 1))
}

// wireCode is an access code in a response, managed or unmanaged upstream.
type wireCode struct {
	ID        string                     `json:"access_code_id"`
	DeviceID  string                     `json:"device_id"`
	Name      *string                    `json:"name"`
	Code      *string                    `json:"code"`
	Key       *string                    `json:"common_code_key"`
	Status    string                     `json:"status"`
	StartsAt  *time.Time                 `json:"starts_at"`
	EndsAt    *time.Time                 `json:"ends_at"`
	Managed   *bool                      `json:"is_managed"`
	Offline   bool                       `json:"is_offline_access_code"`
	Errors    adapter.List[wireProblem]  `json:"errors"`
	Mutations adapter.List[wireMutation] `json:"pending_mutations"`
}

type wireMutation struct {
	Code string `json:"mutation_code"`
}

// keyPrefix marks the common_code_key of codes that this program has created.
const keyPrefix = "deviceaccess-"

// code converts an access code. hidePINs is set for devices whose other codes hide their PINs.
func (a *Adapter) code(w wireCode, hidePINs bool, now time.Time) adapter.Code {
	c := adapter.Code{
		Ref:      adapter.CodeRef(w.ID),
		PIN:      value(w.Code),
		Name:     value(w.Name),
		State:    adapter.Confirmed,
		StartsAt: w.StartsAt,
		EndsAt:   w.EndsAt,
		Removing: w.Status == "removing",
	}
	if key, ok := strings.CutPrefix(value(w.Key), keyPrefix); ok {
		c.Key = key
	}
	if hidePINs || len(c.PIN) > maxPINLength {
		c.PIN = ""
	}
	if !isTrue(w.Managed) { // it is on the device
		c.Unconverted = true
		return c
	}
	changing := slices.ContainsFunc(w.Mutations, func(m wireMutation) bool {
		return m.Code == "creating" || strings.HasPrefix(m.Code, "updating_")
	})
	// The server programs a code shortly before it starts, and removes it when it ends.
	later := w.StartsAt != nil && w.StartsAt.After(now)
	scheduled := w.Status == "unset" && (later || w.EndsAt != nil && w.EndsAt.Before(now))
	if w.Status != "set" && !scheduled || changing {
		c.State = adapter.Accepted
	}
	if c.State == adapter.Accepted || scheduled {
		c.Failed = a.codeError(w.Errors)
	}
	if c.Failed != nil {
		c.State = adapter.Accepted
	}
	return c
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// wireAttempt is an action attempt in a response.
type wireAttempt struct {
	ID     string            `json:"action_attempt_id"`
	Status string            `json:"status"` // pending, success, or error
	Error  *wireAttemptError `json:"error"`
}

type wireAttemptError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// UnmarshalJSON implements json.Unmarshaler. The hosted API sends an empty error of other shapes with pending attempts.
func (e *wireAttemptError) UnmarshalJSON(data []byte) error {
	type plain wireAttemptError
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*e = wireAttemptError(p)
	}
	return nil
}
