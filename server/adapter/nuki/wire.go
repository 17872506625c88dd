package nuki

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// keypadCode is the type of authorizations that are keypad codes.
const keypadCode = 13

// Types of devices.
const (
	typeOpener    = 2
	typeSmartDoor = 3
	typeThird     = 4 // Smart Lock 3 and 4
	typeUltra     = 5
)

// models names devices by their type.
var models = map[int]string{
	0:             "Smart Lock",
	typeSmartDoor: "Smart Door",
	typeThird:     "Smart Lock (3rd or 4th generation)",
	typeUltra:     "Smart Lock Ultra",
}

// Values of serverState. The list of others is incomplete.
const (
	serverOnline  = 0
	serverOffline = 4
)

// Bounds of codes.
const (
	pinLength     = 6
	maxNameLength = 20
	maxCodes      = 100
	maxCodesNew   = 200 // of the types 4 and 5
)

// wireLock is a device in a response.
type wireLock struct {
	ID        int64  `json:"smartlockId"`
	AccountID int64  `json:"accountId"`
	Type      int    `json:"type"`
	Name      string `json:"name"`
	Config    struct {
		Keypad  bool `json:"keypadPaired"`
		Keypad2 bool `json:"keypad2Paired"`
	} `json:"config"`
	Advanced json.RawMessage `json:"advancedConfig"`
	State    wireState       `json:"state"`
	Server   *int            `json:"serverState"`
	Virtual  bool            `json:"virtualDevice"`
}

type wireState struct {
	State         int      `json:"state"`
	BatteryCharge *float64 `json:"batteryCharge"` // 0 to 100
	DoorState     int      `json:"doorState"`
}

// isListed reports whether the device is a lock.
func (w wireLock) isListed() bool { return w.ID > 0 && w.Type != typeOpener && !w.Virtual }

func (w wireLock) hasKeypad() bool { return w.Config.Keypad || w.Config.Keypad2 }

func (w wireLock) isOnline() bool { return w.Server == nil || *w.Server == serverOnline }

func (w wireLock) ref() adapter.DeviceRef { return adapter.DeviceRef(strconv.FormatInt(w.ID, 10)) }

// serial returns the number that is printed on the device: the id without the prefix of the type.
func (w wireLock) serial() string { return fmt.Sprintf("%08X", uint32(w.ID&0xFFFFFFFF)) }

// offline returns the error of a lock that cannot be reached.
func (w wireLock) offline() *adapter.Error {
	if w.Server != nil && *w.Server != serverOffline {
		return adapter.Errorf(
			adapter.Offline,
			"Nuki Web cannot use the lock: its owner must activate Nuki Web again in "+
				"the Nuki app",
		)
	}
	return adapter.Errorf(adapter.Offline, "the lock is offline: check its bridge or its WiFi")
}

func errNoKeypad() *adapter.Error {
	return adapter.Errorf(adapter.NotSupported, "the lock has no keypad: pair a Nuki Keypad in the Nuki app")
}

// locked returns the position of the bolt; nil while it moves or is unknown.
func (s wireState) locked() *bool {
	switch s.State {
	case 1:
		return new(true)
	case 3, 5, 6: // unlocked, unlatched, unlocked by lock'n'go
		return new(false)
	}
	return nil
}

func (s wireState) doorOpen() *bool {
	switch s.DoorState {
	case 2:
		return new(false)
	case 3:
		return new(true)
	}
	return nil
}

func (w wireLock) device() adapter.Device {
	d := adapter.Device{
		Ref:          w.ref(),
		Name:         cmp.Or(w.Name, "Nuki"),
		Type:         "nuki_lock",
		Provider:     Name,
		Manufacturer: "Nuki",
		Model:        models[w.Type],
		SerialNumber: w.serial(),
		Online:       w.isOnline(),
		Locked:       w.State.locked(),
		DoorOpen:     w.State.doorOpen(),
		Capabilities: w.caps(),
		LossyEvents:  true,
	}
	if charge := w.State.BatteryCharge; charge != nil {
		d.BatteryLevel = new(min(max(*charge/100, 0), 1))
	}
	if auto, ok := w.autoLock(); ok {
		d.AutoLock = &auto
	}
	return d
}

// autoLock returns the auto-lock setting, if the device reports one.
func (w wireLock) autoLock() (adapter.AutoLock, bool) {
	var advanced struct {
		AutoLock *bool   `json:"autoLock"`
		Timeout  float64 `json:"autoLockTimeout"` // seconds
	}
	if json.Unmarshal(w.Advanced, &advanced) != nil || advanced.AutoLock == nil {
		return adapter.AutoLock{}, false
	}
	delay := adapter.Seconds(min(max(advanced.Timeout, 0), maxAutoLock.Seconds()))
	return adapter.AutoLock{Enabled: *advanced.AutoLock, Delay: delay}, true
}

// caps returns the capabilities of a device. Codes need a keypad.
func (w wireLock) caps() capability.Set {
	_, auto := w.autoLock()
	c := capability.Set{
		Lock:            true,
		Unlock:          true,
		AutoLock:        auto,
		Convert:         capability.ConvertNever,
		Confirm:         capability.ConfirmReadBack,
		BuiltInKeypad:   new(false),
		AccessoryKeypad: new(true),
		EntryEvents:     new(w.hasKeypad()),
	}
	if !w.hasKeypad() {
		return c
	}
	c.OnlineCodes, c.ListCodes, c.DeleteUnmanaged, c.ModifyInPlace = true, true, true, true
	c.PINVisible, c.NativeSchedule = true, true
	c.Convert = capability.ConvertAdopt
	c.CodeLengths = []int{pinLength}
	c.Constraints = []capability.Constraint{
		{Type: "no_zeros"},
		{Type: "cannot_start_with_12"},
		{Type: "name_length", MinLength: 1, MaxLength: maxNameLength},
	}
	c.MaxCodes = w.maxCodes()
	return c
}

func (w wireLock) maxCodes() int {
	if w.Type == typeThird || w.Type == typeUltra {
		return maxCodesNew
	}
	return maxCodes
}

// wireAuth is an authorization in a response or a push. Its id is a string of 24 hexadecimal digits.
type wireAuth struct {
	ID          string          `json:"id"`
	SmartlockID int64           `json:"smartlockId"`
	Code        int             `json:"code"`
	Type        int             `json:"type"`
	Name        string          `json:"name"`
	Enabled     *bool           `json:"enabled"`
	Remote      bool            `json:"remoteAllowed"`
	From        *time.Time      `json:"allowedFromDate"`
	Until       *time.Time      `json:"allowedUntilDate"`
	WeekDays    *int            `json:"allowedWeekDays"`
	FromTime    int             `json:"allowedFromTime"`
	UntilTime   int             `json:"allowedUntilTime"`
	Operation   json.RawMessage `json:"operationId"`
}

// isID reports whether an identifier of an authorization can be part of a path.
func isID(id string) bool {
	return id != "" && len(id) <= 64 && strings.IndexFunc(id, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
}

// pin returns the digits of the code; empty if the response has none.
func (w wireAuth) pin() string {
	if w.Code <= 0 {
		return ""
	}
	return strconv.Itoa(w.Code)
}

// isBusy reports whether an operation is on its way to the lock.
func (w wireAuth) isBusy() bool { return len(w.Operation) > 0 && string(w.Operation) != "null" }

func (w wireAuth) isEnabled() bool { return w.Enabled == nil || *w.Enabled }

func (w wireAuth) code() adapter.Code {
	c := adapter.Code{
		Ref:      adapter.CodeRef(w.ID),
		PIN:      w.pin(),
		Name:     w.Name,
		State:    adapter.Confirmed,
		StartsAt: w.From,
		EndsAt:   w.Until,
		Disabled: !w.isEnabled(),
	}
	if w.isBusy() {
		c.State = adapter.Accepted
	}
	return c
}

// matches reports whether the code is as desired.
func (w wireAuth) matches(spec adapter.CodeSpec) bool {
	return w.pin() == spec.PIN && w.Name == spec.Name && w.isEnabled() &&
		sameTime(w.From, spec.StartsAt) && sameTime(w.Until, spec.EndsAt)
}

// sameTime compares times in seconds.
func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}

// dateFormat is the format of dates in requests.
const dateFormat = "2006-01-02T15:04:05.000Z"

func dateOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(dateFormat)
}

// authRequest is the body that creates or changes a keypad code. Dates that are missing are dropped.
type authRequest struct {
	Name      string `json:"name"`
	Type      int    `json:"type,omitempty"` // of creations
	Code      int    `json:"code"`
	Enabled   *bool  `json:"enabled,omitempty"` // of changes
	Remote    bool   `json:"remoteAllowed"`
	From      string `json:"allowedFromDate,omitempty"`
	Until     string `json:"allowedUntilDate,omitempty"`
	WeekDays  int    `json:"allowedWeekDays"`
	FromTime  int    `json:"allowedFromTime"`
	UntilTime int    `json:"allowedUntilTime"`
}

// allDays are the days from Monday (64) to Sunday (1).
const allDays = 127

func newRequest(spec adapter.CodeSpec) (authRequest, error) {
	pin, err := strconv.Atoi(spec.PIN)
	if err != nil { // the error quotes the PIN
		return authRequest{}, adapter.Errorf(adapter.Invalid, "the PIN is no number")
	}
	return authRequest{
		Name:     spec.Name,
		Code:     pin,
		From:     dateOf(spec.StartsAt),
		Until:    dateOf(spec.EndsAt),
		WeekDays: allDays,
	}, nil
}
