package sandbox

import "time"

// wireLock is a device in a response: the guide's fields, and capabilities.
type wireLock struct {
	LockID       string       `json:"lock_id"`
	DeviceID     string       `json:"device_id"`
	DeviceType   string       `json:"device_type"`
	Name         string       `json:"name"`
	Model        string       `json:"model"`
	DeviceModel  string       `json:"device_model"`
	Manufacturer string       `json:"manufacturer"`
	SerialNumber string       `json:"serial_number"`
	Address      string       `json:"address"`
	Online       bool         `json:"online"`
	BatteryLevel *int         `json:"battery_level,omitempty"`        // only with a battery
	KeypadLevel  *int         `json:"keypad_battery_level,omitempty"` // only with an accessory keypad
	LockState    string       `json:"lock_state,omitempty"`           // only of locks
	AutoLock     *autoLock    `json:"auto_lock,omitempty"`            // only if supported
	HubOnline    *bool        `json:"hub_online,omitempty"`           // only with a hub
	Subscription *bool        `json:"subscription_active,omitempty"`  // only if codes require a subscription
	Timezone     string       `json:"timezone"`
	DeviceTime   time.Time    `json:"device_time"`
	Capabilities capabilities `json:"capabilities"`

	Thermostat  *wireThermostat `json:"thermostat,omitempty"`   // only of thermostats
	NoiseSensor *wireNoise      `json:"noise_sensor,omitempty"` // only of noise sensors
}

// capabilities holds the capabilities of a device, which the guide does not transmit.
type capabilities struct {
	Provider        string       `json:"provider"`    // device_provider_name of the API
	DeviceType      string       `json:"device_type"` // device_type of the API
	Lock            bool         `json:"remote_lock"`
	Unlock          bool         `json:"remote_unlock"`
	OnlineCodes     bool         `json:"online_codes"`    // codes can be written remotely
	OfflineCodes    bool         `json:"offline_codes"`   // codes can be issued without a connection
	ListCodes       bool         `json:"list_codes"`      // codes can be read
	DeleteUnmanaged bool         `json:"delete_any_code"` // codes created elsewhere can be deleted
	ModifyInPlace   bool         `json:"modify_codes"`    // PATCH is supported
	PINVisible      bool         `json:"pin_visible"`     // lists contain "code"
	ProviderPIN     bool         `json:"provider_pin"`    // the vendor chooses the PIN
	NativeSchedule  bool         `json:"native_schedule"` // the lock applies time frames
	Convert         string       `json:"convert"`         // adopt, rewrite, or never
	CodeLengths     []int        `json:"code_lengths"`    // ascending
	MaxCodes        int          `json:"max_codes"`
	Constraints     []constraint `json:"constraints"`
	NameCharacters  string       `json:"name_characters,omitempty"` // of codes: alphanumeric (ASCII, with spaces), or all
	AutoLock        bool         `json:"auto_lock"`                 // PUT auto_lock is supported
	Confirm         string       `json:"confirm"`                   // sync or read_back
	MinGapMS        int          `json:"min_write_gap_ms"`          // minimum between two writes
	DirectPower     bool         `json:"direct_power"`              // has another power supply than its battery
	BuiltInKeypad   bool         `json:"built_in_keypad"`
	AccessoryKeypad bool         `json:"accessory_keypad"` // a separate keypad can be connected
	EntryEvents     bool         `json:"entry_events"`     // reports which code opened the door

	Thermostat  *thermostatLimits `json:"thermostat,omitempty"`   // only of thermostats
	NoiseSensor *noiseLimits      `json:"noise_sensor,omitempty"` // only of noise sensors
}

// autoLock is the auto-lock setting of a lock.
type autoLock struct {
	Enabled bool    `json:"enabled"`
	Delay   float64 `json:"delay_seconds"`
}

type constraint struct {
	Type      constraintKind `json:"constraint_type"`
	MinLength int            `json:"min_length,omitempty"`
	MaxLength int            `json:"max_length,omitempty"`
}

// wireCode is an access code in a response.
type wireCode struct {
	AccessCodeID string `json:"access_code_id"`
	LockID       string `json:"lock_id"`
	CustomID     string `json:"custom_id,omitempty"`
	Name         string `json:"name"`
	Code         string `json:"code,omitempty"`
	window
	Status    status `json:"status"`
	ErrorCode string `json:"error_code,omitempty"`
	Message   string `json:"message,omitempty"`
	Conflict  string `json:"conflicting_access_code_id,omitempty"`
}

type wireWebhook struct {
	ID     string   `json:"webhook_id"`
	URL    string   `json:"url"`
	Events []string `json:"events"`
	Status string   `json:"status"`
}

// keypadLevel is the battery level of all accessory keypads in percent.
const keypadLevel = 90

// capabilities returns the device's capabilities; l.mu is held.
func (l *lock) capabilities() capabilities {
	if t := l.prof.Thermostat; t != nil {
		return l.thermostatCapabilities(t)
	}
	if p := l.prof.Noise; p != nil {
		return l.noiseCapabilities(p)
	}
	c := capabilities{
		Provider:        l.prof.Provider,
		DeviceType:      l.prof.DeviceType,
		Lock:            true,
		Unlock:          true,
		OnlineCodes:     true,
		ListCodes:       true,
		DeleteUnmanaged: true,
		ModifyInPlace:   true,
		PINVisible:      l.pinVisible(),
		ProviderPIN:     l.prof.ProviderPIN,
		NativeSchedule:  l.prof.NativeSchedule,
		Convert:         l.prof.Convert,
		AutoLock:        l.prof.AutoLock,
		OfflineCodes:    l.prof.Offline,
		CodeLengths:     l.prof.CodeLengths,
		MaxCodes:        l.prof.MaxCodes,
		Constraints:     []constraint{},
		Confirm:         "read_back",
		BuiltInKeypad:   !l.prof.AccessoryKeypad,
		AccessoryKeypad: l.prof.AccessoryKeypad,
		EntryEvents:     true,
		MinGapMS:        int(l.box.scaled(l.prof.MinGap).Milliseconds()),
	}
	if !c.PINVisible {
		c.Convert = "never"
	}
	if l.prof.NameAlphanumeric {
		c.NameCharacters = "alphanumeric"
	}
	for _, kind := range l.prof.Constraints {
		c.Constraints = append(c.Constraints, constraint{Type: kind})
	}
	if l.prof.NameMax > 0 {
		name := constraint{Type: nameLength, MinLength: l.prof.NameMin, MaxLength: l.prof.NameMax}
		c.Constraints = append(c.Constraints, name)
	}
	return c
}

func (l *lock) pinVisible() bool { return l.prof.PINVisible && !l.faults.Masked }

// wireCode returns the code as shown by the cloud.
func (l *lock) wireCode(c listed) wireCode {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := wireCode{
		AccessCodeID: c.ID,
		LockID:       l.id,
		CustomID:     c.CustomID,
		Name:         c.Name,
		window:       c.window,
		Status:       c.Status,
	}
	if l.pinVisible() {
		shown.Code = c.PIN
	}
	if c.problem != nil {
		shown.ErrorCode, shown.Message, shown.Conflict = c.problem.kind.code, c.problem.message, c.problem.conflict
	}
	return shown
}
