package zwavejs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// node is one lock or thermostat of the network.
type node struct {
	id     int
	ref    adapter.DeviceRef
	busy   chan struct{} // semaphore for reads and writes: one radio dialog at a time
	traits atomic.Pointer[traits]
	// climate is the state of a thermostat, which Adapter.mu guards; nil for a lock.
	climate *climate

	// Adapter.mu guards the remaining fields.
	status    int
	operated  operation
	locked    *bool
	battery   *float64
	doorOpen  *bool
	uncovered bool // the lock reports that its cover is removed
	// doorLockVersion is the version of Door Lock; 0 if unknown.
	doorLockVersion int
	masked          bool // the lock has returned asterisks
	serialAsked     *session
	codes           memory
	refused         duplicateReport
}

// traits are the properties of a device. They are replaced, never modified.
type traits struct {
	name, maker, model string
	// listening means that the radio of the device never sleeps, which takes more power than a battery has.
	listening bool
	// ready means that the interview is complete and shows the device.
	ready bool
	// commandClasses holds the versions of the command classes of endpoint 0.
	commandClasses map[int]int
	// slots is the number of slots; shortest and longest are the lengths of PINs.
	slots, shortest, longest int
	// length is the length that all PINs of the lock must have; 0 if any.
	length int
	// lengthProperty is the configuration parameter of length.
	lengthProperty text
	// nameMax is the maximum size of a name in bytes; 0 if the lock stores none.
	nameMax int
	// asked means that the capabilities of User Credential were read from the gateway.
	asked bool
	// serial is empty if unknown.
	serial string
}

// node returns the lock or thermostat that w describes, or nil if it is not an identifiable one. The state of the same
// hardware is kept, even if it currently shows neither: an interview without the security keys shows few command
// classes. A node identifier is reused after an exclusion, so a node of another manufacturer or product is another
// device.
func (a *Adapter) node(s *session, known *node, w *wireNode) *node {
	classes := map[int]int{}
	for _, e := range w.Endpoints {
		for _, c := range e.CommandClasses {
			if e.Index == 0 && 0 <= c.ID && c.ID <= 0xff {
				classes[c.ID] = c.Version
			}
		}
	}
	ref, n := w.ref(s), known
	same := n != nil && n.ref == ref
	_, lock := classes[ccDoorLock]
	thermostat := !lock && w.isThermostat()
	if ref == "" || !lock && !thermostat && !same {
		return nil
	}
	if !same {
		n = &node{id: w.NodeID, ref: ref, busy: make(chan struct{}, 1)}
		if thermostat {
			n.climate = &climate{}
		}
		n.codes.markAllUncertain()
		if a.storedCodes() < maxSeededCodes {
			n.codes.seed(w.Values)
		}
	}
	t := traits{
		maker:          brief(cmp.Or(w.Manufacturer, w.DeviceConfig.Manufacturer), maxTextSize),
		model:          brief(cmp.Or(w.Label, w.DeviceConfig.Label), maxTextSize),
		listening:      w.Listening,
		ready:          w.Ready && (lock || thermostat) && thermostat == (n.climate != nil),
		commandClasses: classes,
		shortest:       4,
		longest:        10,
	}
	t.name = cmp.Or(brief(w.Name, maxTextSize), strings.TrimSpace(t.maker+" "+t.model),
		fmt.Sprintf("Z-Wave %s %d", n.kind(), w.NodeID))
	n.status = w.Status
	n.doorLockVersion = max(n.doorLockVersion, classes[ccDoorLock])
	if n.climate != nil {
		n.climate.list(w)
	}
	for _, v := range w.Values {
		v.NewValue = v.Value
		n.applyValue(v)
		t.applyLimits(v)
		if _, isPIN := v.userCode(); isPIN {
			if pin, ok := pinIn(v.Value); ok && isMasked(pin) {
				n.masked = true
			}
		}
	}
	if was := n.traits.Load(); was != nil {
		t.inherit(was)
	}
	n.traits.Store(&t)
	return n
}

// kind returns what the device is, in words.
func (n *node) kind() string {
	if n.climate != nil {
		return "thermostat"
	}
	return "lock"
}

// ref returns the reference of a node if it is a lock or a thermostat; empty while its manufacturer is unknown. parseRef decodes it.
func (w *wireNode) ref(s *session) adapter.DeviceRef {
	if w.ManufacturerID == nil {
		return ""
	}
	return adapter.DeviceRef(fmt.Sprintf("%08x/%d/%04x-%04x-%04x",
		s.home, w.NodeID, *w.ManufacturerID, w.ProductType, w.ProductID))
}

// inherit adopts the previous code capabilities if they are missing: a gateway that has just started reports nothing
// about a lock until the lock has answered, and an interview omits what the lock did not answer.
func (t *traits) inherit(was *traits) {
	if was.slots == 0 || t.ready && t.takesCodes() && t.slots > 0 {
		return
	}
	if !t.ready || !t.takesCodes() {
		t.ready, t.commandClasses, t.length, t.lengthProperty = false, was.commandClasses, was.length,
			was.lengthProperty
	}
	t.slots, t.shortest, t.longest, t.nameMax = was.slots, was.shortest, was.longest, was.nameMax
}

// takesCodes reports whether the lock has a command class for codes.
func (t *traits) takesCodes() bool {
	_, userCode := t.commandClasses[ccUserCode]
	_, userCredential := t.commandClasses[ccUserCredential]
	return userCode || userCredential
}

// storedCodes returns the number of stored codes of all locks; a.mu is held.
func (a *Adapter) storedCodes() (codes int) {
	for _, n := range a.nodes {
		codes += len(n.codes.slots)
	}
	return codes
}

// parseRef returns the network and the node of a reference.
func parseRef(device adapter.DeviceRef) (home uint32, id int, ok bool) {
	_, err := fmt.Sscanf(string(device), "%08x/%d/", &home, &id)
	return home, id, err == nil
}

// applyValue applies a value of a device, and reports whether the device has changed.
func (n *node) applyValue(v wireValue) bool {
	if n.climate != nil {
		if changed, ok := n.climate.apply(v); ok {
			return changed
		}
	}
	if open, ok := n.doorIn(v); ok {
		changed := n.doorOpen == nil || *n.doorOpen != open
		n.doorOpen = &open
		return changed
	}
	var number float64
	if v.Endpoint != 0 || json.Unmarshal(v.NewValue, &number) != nil {
		return false
	}
	switch {
	case v.CC == ccNotification && v.Property == "Home Security" && v.PropertyKey == "Cover status":
		n.uncovered = number == coverRemoved
	case v.CC == ccDoorLock && v.Property == "currentMode" && number == modeUnknown:
		changed := n.locked != nil
		n.locked = nil
		return changed
	case v.CC == ccDoorLock && v.Property == "currentMode": // modes other than secured are unlocked
		locked := number == modeSecured
		changed := n.locked == nil || *n.locked != locked
		n.locked = &locked
		return changed
	case v.CC == ccBattery && v.Property == "level":
		level := min(max(number/100, 0), 1)
		changed := n.battery == nil || *n.battery != level
		n.battery = &level
		return changed
	}
	return false
}

// doorStatusVersion is the version of Door Lock from which a lock reports whether it has a sensor at the door. Others
// report a status without one.
const doorStatusVersion = 4

// Door states of Access Control. The two ways in which a window is open extend the first: their number is doorIsOpen in
// the second byte.
const doorIsOpen, doorIsClosed = 22, 23

// doorIn returns the state of the door if the value shows it.
func (n *node) doorIn(v wireValue) (open, ok bool) {
	switch {
	case v.Endpoint != 0:
	case v.CC == ccDoorLock && v.Property == "doorStatus" && n.doorLockVersion >= doorStatusVersion:
		var status string
		_ = json.Unmarshal(v.NewValue, &status) // another type is no status
		return status == "open", status == "open" || status == "closed"
	case v.CC == ccNotification && v.Property == "Access Control" && v.PropertyKey == "Door state":
		var state int
		_ = json.Unmarshal(v.NewValue, &state)
		open = state == doorIsOpen || state>>8 == doorIsOpen
		return open, open || state == doorIsClosed
	}
	return false, false
}

// applyLimits applies the values that describe the code capabilities: one value per slot and, for locks whose PINs must
// have the same length, the configuration parameter (16 of Schlage's, "User Code PIN Length"; zwave-js device file
// 0x003b/be469zp.json).
func (t *traits) applyLimits(v wireValue) {
	if slot, ok := v.userCode(); ok {
		t.slots = max(t.slots, slot)
		if v.Metadata.MinLength > 0 {
			t.shortest, t.longest = v.Metadata.MinLength, v.Metadata.MaxLength
		}
	}
	if v.CC == ccManufacturer && v.Property == "deviceId" && v.PropertyKey == "SerialNumber" {
		t.serial = serialNumber(v.Value)
	}
	var length int
	if v.CC == ccConfiguration && oneLength(v.Metadata.Label) && json.Unmarshal(v.NewValue, &length) == nil &&
		length >= 4 && length <= 10 && len(v.Property) <= maxTextSize {
		t.length, t.lengthProperty = length, v.Property
	}
}

// userCode returns the slot of a value that is a PIN.
func (v wireValue) userCode() (slot int, ok bool) {
	slot, ok = v.PropertyKey.number()
	return slot, ok && v.CC == ccUserCode && v.Endpoint == 0 && v.Property == "userCode" && slotIn(slot)
}

func oneLength(label string) bool {
	label = strings.ToLower(label)
	return strings.Contains(label, "code") && strings.Contains(label, "pin length")
}

// isMasked reports whether a lock has returned asterisks instead of a PIN.
func isMasked(pin string) bool { return pin != "" && strings.Trim(pin, "*") == "" }

func (n *node) has(commandClass int) bool {
	_, ok := n.traits.Load().commandClasses[commandClass]
	return ok
}

// hasUsers reports whether the lock stores users with names, and codes separately.
func (n *node) hasUsers() bool { return n.has(ccUserCredential) }

// reportsChanges reports whether the lock reports changes at its keypad.
func (n *node) reportsChanges() bool { return n.has(ccNotification) || n.hasUsers() }

// thermostat returns the description of a thermostat.
func (a *Adapter) thermostat(n *node) adapter.Device {
	t := n.traits.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	limits := n.climate.limits()
	return adapter.Device{
		Ref:                 n.ref,
		Name:                t.name,
		Type:                "zwave_thermostat",
		Provider:            "zwave_js",
		Manufacturer:        t.maker,
		Model:               t.model,
		SerialNumber:        t.serial,
		Online:              n.status != nodeDead,
		BatteryLevel:        n.battery,
		Thermostat:          n.climate.shown(),
		CapabilitiesUnknown: len(limits.Modes) == 0,
		Capabilities: capability.Set{
			Thermostat:  limits,
			Convert:     capability.ConvertNever,
			Confirm:     capability.ConfirmSync,
			DirectPower: &t.listening,
		},
	}
}

// device returns the description of the device.
func (a *Adapter) device(n *node) adapter.Device {
	if n.climate != nil {
		return a.thermostat(n)
	}
	t := n.traits.Load()
	a.mu.Lock()
	status, locked, battery, masked, doorOpen := n.status, n.locked, n.battery, n.masked, n.doorOpen
	a.mu.Unlock()
	d := adapter.Device{
		Ref:          n.ref,
		Name:         t.name,
		Type:         "zwave_lock",
		Provider:     "zwave_js",
		Manufacturer: t.maker,
		Model:        t.model,
		SerialNumber: t.serial,
		Online:       status != nodeDead,
		Locked:       locked,
		BatteryLevel: battery,
		DoorOpen:     doorOpen,
		Capabilities: capability.Set{
			Lock:        true,
			Unlock:      true,
			Convert:     capability.ConvertNever,
			Confirm:     capability.ConfirmSync,
			DirectPower: &t.listening,
			EntryEvents: new(n.has(ccNotification)),
		},
	}
	if t.slots == 0 || !t.takesCodes() {
		d.CapabilitiesUnknown = !t.ready || t.takesCodes()
		return d
	}
	c := &d.Capabilities
	c.OnlineCodes, c.ListCodes, c.DeleteUnmanaged, c.ModifyInPlace = true, true, true, true
	c.MaxCodes, c.NativeSchedule = t.slots, n.supportsTimeFrames(a.gateway)
	c.PINVisible = !masked
	if c.PINVisible {
		c.Convert = capability.ConvertAdopt
	}
	for length := max(t.shortest, 1); length <= min(t.longest, maxPINSize); length++ {
		if t.length == 0 || t.length == length {
			c.CodeLengths = append(c.CodeLengths, length)
		}
	}
	return d
}
