package zwavejs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// node is one lock of the network.
type node struct {
	id     int
	ref    adapter.DeviceRef
	busy   chan struct{} // held by whoever reads or writes codes: one radio conversation at a time
	traits atomic.Pointer[traits]

	// The rest is guarded by Adapter.mu.
	status      int
	operated    operation
	locked      *bool
	battery     *float64
	masked      bool // it has shown stars
	serialAsked *session
	codes       memory
	refused     refusal
}

// traits are what a lock is. They are replaced, never changed.
type traits struct {
	name, maker, model       string
	ready                    bool        // what is known of it can be relied on, and it is the lock that it was
	commandClasses           map[int]int // of endpoint 0, with their versions
	slots, shortest, longest int         // for codes, of digits
	length                   int         // the one that all PINs of the lock must have; 0: any
	lengthProperty           text        // the parameter that says so
	nameMax                  int         // longest name that the lock keeps, in bytes; 0: it keeps none
	asked                    bool        // User Credential: the gateway was asked for the numbers
	serial                   string      // empty: it has none, or has not told it yet
}

// node is the lock that w describes, nil when it is none that can be told apart yet. What was known of the same
// piece of hardware is kept, also where it shows no lock for now: an interview without the lock's keys shows little of it.
// A node identifier is given again after its node was excluded, so that what was made and sold as something else is
// another device.
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
	if ref == "" || !lock && !same {
		return nil
	}
	if !same {
		n = &node{id: w.NodeID, ref: ref, busy: make(chan struct{}, 1)}
		n.codes.doubtAll()
		if a.inMemory() < mostTold {
			n.codes.seed(w.Values)
		}
	}
	t := traits{maker: brief(cmp.Or(w.Manufacturer, w.DeviceConfig.Manufacturer), mostText), model: brief(cmp.Or(w.Label, w.DeviceConfig.Label), mostText),
		ready: w.Ready && lock, commandClasses: classes, shortest: 4, longest: 10}
	t.name = cmp.Or(brief(w.Name, mostText), strings.TrimSpace(t.maker+" "+t.model), fmt.Sprintf("Z-Wave lock %d", w.NodeID))
	n.status = w.Status
	for _, v := range w.Values {
		v.NewValue = v.Value
		n.note(v)
		t.measure(v)
		if _, isPIN := v.userCode(); isPIN {
			if pin, ok := pinIn(v.Value); ok && isMasked(pin) {
				n.masked = true
			}
		}
	}
	if was := n.traits.Load(); was != nil {
		t.keep(was)
	}
	n.traits.Store(&t)
	return n
}

// ref is what a node is called if it is a lock; empty where the gateway does not know yet who has made it.
func (w *wireNode) ref(s *session) adapter.DeviceRef {
	if w.ManufacturerID == nil {
		return ""
	}
	return adapter.DeviceRef(fmt.Sprintf("%08x/%d/%04x-%04x-%04x", s.home, w.NodeID, *w.ManufacturerID, w.ProductType, w.ProductID)) // whose reads it
}

// keep takes over what codes the same lock took before, where that is not told now: a gateway that has started tells nothing
// of a lock until that has answered, and an interview leaves out what the lock did not answer.
func (t *traits) keep(was *traits) {
	if was.slots == 0 || t.ready && t.takesCodes() && t.slots > 0 {
		return
	}
	if !t.ready || !t.takesCodes() {
		t.ready, t.commandClasses, t.length, t.lengthProperty = false, was.commandClasses, was.length, was.lengthProperty
	}
	t.slots, t.shortest, t.longest, t.nameMax = was.slots, was.shortest, was.longest, was.nameMax
}

// takesCodes says whether the lock has one of the command classes for codes.
func (t *traits) takesCodes() bool {
	_, userCode := t.commandClasses[ccUserCode]
	_, userCredential := t.commandClasses[ccUserCredential]
	return userCode || userCredential
}

// inMemory counts the codes of all locks. The caller holds a.mu.
func (a *Adapter) inMemory() (codes int) {
	for _, n := range a.nodes {
		codes += len(n.codes.slots)
	}
	return codes
}

// whose is the network and the node that a reference names.
func whose(device adapter.DeviceRef) (home uint32, id int, ok bool) {
	_, err := fmt.Sscanf(string(device), "%08x/%d/", &home, &id)
	return home, id, err == nil
}

// note takes in a value that a device shows, and says whether it has changed.
func (n *node) note(v wireValue) bool {
	var number float64
	if v.Endpoint != 0 || json.Unmarshal(v.NewValue, &number) != nil {
		return false
	}
	switch {
	case v.CC == ccDoorLock && v.Property == "currentMode" && number == modeUnknown:
		changed := n.locked != nil
		n.locked = nil
		return changed
	case v.CC == ccDoorLock && v.Property == "currentMode": // others than secured are open in some way
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

// measure takes in the values that say what codes the lock takes: one for each of its slots, and on locks that
// want all PINs to be of one length the parameter that says which (16 of Schlage's, "User Code PIN Length";
// zwave-js device file 0x003b/be469zp.json).
func (t *traits) measure(v wireValue) {
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
	if v.CC == ccConfiguration && oneLength(v.Metadata.Label) && json.Unmarshal(v.NewValue, &length) == nil && length >= 4 && length <= 10 && len(v.Property) <= mostText {
		t.length, t.lengthProperty = length, v.Property
	}
}

// userCode is the slot of a value that is a PIN.
func (v wireValue) userCode() (slot int, ok bool) {
	slot, ok = v.PropertyKey.number()
	return slot, ok && v.CC == ccUserCode && v.Endpoint == 0 && v.Property == "userCode" && slotIn(slot)
}

func oneLength(label string) bool {
	label = strings.ToLower(label)
	return strings.Contains(label, "code") && strings.Contains(label, "pin length")
}

// isMasked says whether a lock has shown stars in place of a PIN.
func isMasked(pin string) bool { return pin != "" && strings.Trim(pin, "*") == "" }

func (n *node) has(commandClass int) bool {
	_, ok := n.traits.Load().commandClasses[commandClass]
	return ok
}

// named says whether the lock keeps users with names, and codes apart from them.
func (n *node) named() bool { return n.has(ccUserCredential) }

// tells says whether the lock reports what is done at its keypad.
func (n *node) tells() bool { return n.has(ccNotification) || n.named() }

// device is the lock in the words of package adapter.
func (a *Adapter) device(n *node) adapter.Device {
	t := n.traits.Load()
	a.mu.Lock()
	status, locked, battery, masked := n.status, n.locked, n.battery, n.masked
	a.mu.Unlock()
	d := adapter.Device{Ref: n.ref, Name: t.name, Type: "zwave_lock", Provider: "zwave_js", Manufacturer: t.maker, Model: t.model,
		SerialNumber: t.serial, Online: status != nodeDead, Locked: locked, BatteryLevel: battery,
		Caps: adapter.Caps{Lock: true, Unlock: true, Convert: adapter.ConvertNever, Confirm: adapter.ConfirmSync}}
	if t.slots == 0 || !t.takesCodes() {
		d.CapsUnknown = !t.ready || t.takesCodes()
		return d
	}
	c := &d.Caps
	c.OnlineCodes, c.ListCodes, c.DeleteUnmanaged, c.ModifyInPlace = true, true, true, true
	c.MaxCodes, c.NativeSchedule = t.slots, n.keepsTime(a.gateway)
	c.PINVisible = !masked
	if c.PINVisible {
		c.Convert = adapter.ConvertAdopt
	}
	for length := max(t.shortest, 1); length <= min(t.longest, mostPIN); length++ {
		if t.length == 0 || t.length == length {
			c.CodeLengths = append(c.CodeLengths, length)
		}
	}
	return d
}
