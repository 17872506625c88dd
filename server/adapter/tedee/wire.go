package tedee

import (
	"cmp"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// wireLock is a lock in a response (datastructures/lock).
type wireLock struct {
	ID           int64  `json:"id"`
	Serial       string `json:"serialNumber"`
	Name         string `json:"name"`
	Type         int    `json:"type"`
	AccessLevel  int    `json:"accessLevel"`
	UserIdentity string `json:"userIdentity"`
	Share        *struct {
		RemoteAccessDisabled bool `json:"remoteAccessDisabled"`
	} `json:"shareDetails"`
	Revision       int64      `json:"revision"`
	DeviceRevision int64      `json:"deviceRevision"`
	TargetRevision int64      `json:"targetDeviceRevision"`
	Bridge         *int64     `json:"connectedToId"`
	IsConnected    *bool      `json:"isConnected"`
	State          *wireState `json:"deviceState"`
	Settings       struct {
		AutoLock      *bool  `json:"autoLockEnabled"`
		AutoLockDelay *int64 `json:"autoLockDelay"`
		IsAsync       bool   `json:"isAsync"`
	} `json:"deviceSettings"`
	Accessories adapter.List[struct {
		Type int `json:"deviceType"`
	}] `json:"accessories"`
}

// wireSync is the state of a lock (datastructures/lock-sync).
type wireSync struct {
	ID          int64      `json:"id"`
	IsConnected *bool      `json:"isConnected"`
	State       *wireState `json:"deviceState"`
}

// wireState is null while a lock is not connected.
type wireState struct {
	State   int      `json:"state"`
	Door    int      `json:"doorState"`
	Battery *float64 `json:"batteryLevel"` // percent
	Result  int      `json:"stateChangeResult"`
	Changed string   `json:"lastStateChangedDate"`
}

// States of a lock (enums/lock-state).
const (
	stateUncalibrated = 0
	stateCalibrating  = 1
	stateUnlocked     = 2
	stateSemiLocked   = 3
	stateLocked       = 6
	statePulled       = 7
)

// locked returns the position of the bolt; nil while it is unknown or moves.
func (s *wireState) locked() *bool {
	if s == nil {
		return nil
	}
	switch s.State {
	case stateLocked:
		return new(true)
	case stateUnlocked, stateSemiLocked, statePulled:
		return new(false)
	default:
		return nil
	}
}

// doorOpen returns whether the door is open (enums/door-state); nil without a sensor.
func (s *wireState) doorOpen() *bool {
	switch {
	case s != nil && s.Door == 2:
		return new(true)
	case s != nil && s.Door == 3:
		return new(false)
	default:
		return nil
	}
}

// Types of devices (enums/device-type).
const (
	typeKeypad    = 3
	typeKeypadPRO = 10
)

var models = map[int]string{2: "Lock PRO", 4: "Lock GO"}

// maxSerial is the maximum length of a serial number.
const maxSerial = 64

func (l wireLock) valid() bool {
	return l.ID > 0 && l.Serial != "" && len(l.Serial) <= maxSerial && !strings.ContainsAny(l.Serial, "\x00\r\n")
}

// maxAutoLockDelay bounds what a lock may report.
const maxAutoLockDelay = 24 * time.Hour

func (l wireLock) device() adapter.Device {
	d := adapter.Device{
		Ref:          adapter.DeviceRef(l.Serial),
		Name:         cmp.Or(l.Name, "Tedee lock"),
		Type:         "tedee_lock",
		Provider:     Name,
		Manufacturer: "Tedee",
		Model:        cmp.Or(models[l.Type], "Lock"),
		SerialNumber: l.Serial,
		Online:       isTrue(l.IsConnected),
		Locked:       l.State.locked(),
		DoorOpen:     l.State.doorOpen(),
		Capabilities: l.capabilities(),
		LossyEvents:  true,
	}
	if l.State != nil && l.State.Battery != nil {
		d.BatteryLevel = new(min(max(*l.State.Battery/100, 0), 1))
	}
	if l.Settings.AutoLock != nil && l.DeviceRevision >= l.TargetRevision {
		d.AutoLock = &adapter.AutoLock{Enabled: *l.Settings.AutoLock}
		if delay := l.Settings.AutoLockDelay; delay != nil {
			seconds := min(max(*delay, 0), int64(maxAutoLockDelay/time.Second))
			d.AutoLock.Delay = time.Duration(seconds) * time.Second
		}
	}
	return d
}

// Limits of codes. The length of names is not documented.
const (
	minPINLength  = 5
	maxPINLength  = 8
	maxNameLength = 32
	// maxCodes bounds what a lock may report.
	maxCodes = 1000
)

// capabilities returns what the user can do with the lock remotely.
func (l wireLock) capabilities() capability.Set {
	const admin = 1
	reachable := l.Bridge != nil || l.IsConnected != nil
	remote := reachable && (l.Share == nil || !l.Share.RemoteAccessDisabled)
	c := capability.Set{
		Lock:            remote,
		Unlock:          remote,
		AutoLock:        reachable && l.AccessLevel >= admin,
		Hub:             true,
		Convert:         capability.ConvertNever,
		Confirm:         capability.ConfirmSync,
		BuiltInKeypad:   new(false),
		AccessoryKeypad: new(true),
	}
	if reachable && l.hasKeypad() && l.AccessLevel >= admin && !l.Settings.IsAsync {
		addCodes(&c)
	}
	return c
}

func (l wireLock) hasKeypad() bool {
	for _, accessory := range l.Accessories {
		if accessory.Type == typeKeypad || accessory.Type == typeKeypadPRO {
			return true
		}
	}
	return false
}

// addCodes adds the capabilities of a lock with a keypad.
func addCodes(c *capability.Set) {
	c.OnlineCodes = true
	c.ListCodes = true
	c.DeleteUnmanaged = true
	c.ModifyInPlace = true
	c.PINVisible = true
	c.NativeSchedule = true
	c.Convert = capability.ConvertAdopt
	for n := minPINLength; n <= maxPINLength; n++ {
		c.CodeLengths = append(c.CodeLengths, n)
	}
	c.Constraints = []capability.Constraint{
		{Type: "at_least_three_unique_digits"},
		{Type: "no_ascending_or_descending_sequence"},
		{Type: "name_length", MinLength: 1, MaxLength: maxNameLength},
	}
}

func isTrue(v *bool) bool { return v != nil && *v }

// parseTime reads a time of the vendor, which is in UTC and may lack the zone.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}
