package zwavejs

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Events of the notification type Access Control (6), from the Z-Wave notification registry (@zwave-js/core,
// registries/Notifications.js).
const (
	accessControl = 6

	manualLock, manualUnlock = 1, 2
	remoteLock, remoteUnlock = 3, 4
	keypadLock, keypadUnlock = 5, 6
	notLockedByHand          = 7 // "not fully locked operation"
	notLockedByRF            = 8
	autoLock, notAutoLocked  = 9, 10
	lockJammed               = 11
	allCodesDeleted          = 12
	codeDeleted, codeAdded   = 13, 14
	codeDuplicate            = 15
	keypadOff, tooManyTries  = 16, 19 // "Keypad temporary disabled", "Manual code exceeds code limit"
	badRemoteUnlock          = 20     // "Unlock by RF with invalid user code"
	badRemoteLock            = 21

	codeLock, codeUnlock             = 33, 34 // "with User Code"
	credentialLock, credentialUnlock = 35, 36
	// "Valid credential access denied": its user is disabled, its schedule inactive.
	deniedDisabled, deniedNotNow = 47, 48
	deniedNotEnough              = 49 // more credentials are required
	deniedUnknown                = 50 // "Invalid credential used"
)

// Events of the notification type Home Security (7), from the same registry.
const (
	homeSecurity = 7

	coverRemoved             = 3 // zwave-js reports it as a value, because it is a lasting state
	invalidCode, lockIsMoved = 4, 9
)

// handleEvent processes an event of the gateway; events arrive in order. Unknown events are ignored.
func (a *Adapter) handleEvent(s *session, e *wireEvent) {
	switch {
	case e.Source == "driver" && e.Name == "driver ready": // the gateway has restarted: the list is outdated
		_ = s.conn.CloseNow()
	case e.Source == "controller" && e.Name == "node removed" && e.Node != nil:
		a.handleRemoved(e.Node.NodeID)
	case e.Source == "controller" && e.Name == "node added" && e.Node != nil:
		a.handleListed(s, e.Node)
	case e.Source == "node" && e.Name == "ready" && e.NodeState != nil:
		a.handleListed(s, e.NodeState)
	case e.Source == "node":
		a.mu.Lock()
		n := a.nodes[e.NodeID]
		a.mu.Unlock()
		if n != nil {
			a.handleNodeEvent(n, e)
		}
	}
}

// handleRemoved processes that a node was excluded or replaced.
func (a *Adapter) handleRemoved(id int) {
	a.mu.Lock()
	n := a.nodes[id]
	delete(a.nodes, id)
	delete(a.otherNodes, id)
	a.mu.Unlock()
	if n != nil {
		a.reportRemoved(n)
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed})
	}
}

func (a *Adapter) reportRemoved(n *node) {
	a.hints.Send(adapter.Event{Kind: adapter.DeviceRemoved, Device: n.ref, At: time.Now()})
}

// handleListed processes a node that is new or was interviewed again.
func (a *Adapter) handleListed(s *session, w *wireNode) {
	a.mu.Lock()
	was := a.nodes[w.NodeID]
	n := a.adoptNode(s, was, w)
	is := a.otherNodes[w.NodeID]
	if n != nil {
		is = n.ref
	}
	other := was != nil && is != "" && is != was.ref
	if other && n == nil {
		delete(a.nodes, w.NodeID)
	}
	a.mu.Unlock()
	if other {
		a.reportRemoved(was)
	}
	if n != nil || other {
		a.hints.Send(adapter.Event{Kind: adapter.DeviceListed})
	}
	if n != nil {
		a.hints.Send(n.relisted())
	}
}

// relisted is the event of a device whose changes may have been missed.
func (n *node) relisted() adapter.Event {
	if n.climate != nil {
		return adapter.Event{Kind: adapter.StatusChanged, Device: n.ref}
	}
	return adapter.Event{Kind: adapter.CodesChanged, Device: n.ref}
}

// handleNodeEvent processes an event of one device.
func (a *Adapter) handleNodeEvent(n *node, e *wireEvent) {
	switch e.Name {
	case "dead":
		a.setStatus(n, nodeDead, adapter.DeviceOffline)
	case "sleep":
		a.setStatus(n, nodeAsleep, adapter.DeviceOnline)
	case "alive", "wake up":
		a.setStatus(n, nodeAlive, adapter.DeviceOnline)
	case "value updated", "value added":
		var v wireValue
		if json.Unmarshal(e.Args, &v) == nil {
			a.handleValue(n, v)
		}
	case "metadata updated":
		var v wireValue
		if json.Unmarshal(e.Args, &v) == nil {
			a.handleMetadata(n, v)
		}
	case "credential added", "credential modified", "credential deleted":
		a.handleCredential(n, e)
	case "user added", "user modified", "user deleted":
		a.handleUser(n, e)
	case "notification":
		a.handleNotification(n, e)
	}
}

// setStatus processes that a device became reachable or unreachable. Changes may have been missed meanwhile.
func (a *Adapter) setStatus(n *node, status int, kind adapter.EventKind) {
	a.mu.Lock()
	was := n.status
	n.status = status
	changed := (was == nodeDead) != (status == nodeDead)
	if changed {
		n.codes.markAllUncertain()
		if n.climate != nil {
			n.climate.missed = true
		}
	}
	a.mu.Unlock()
	if changed {
		a.hints.Send(adapter.Event{Kind: kind, Device: n.ref})
	}
}

// handleMetadata processes changed ranges, units, and modes of a thermostat.
func (a *Adapter) handleMetadata(n *node, v wireValue) {
	if n.climate == nil {
		return
	}
	a.mu.Lock()
	before := n.climate.limits()
	n.climate.describe(v)
	changed := !reflect.DeepEqual(before, n.climate.limits())
	a.mu.Unlock()
	if changed {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
}

func (a *Adapter) handleValue(n *node, v wireValue) {
	c, ok := v.change()
	a.mu.Lock()
	news := ok && n.codes.applyChange(c)
	was, wasUncovered := n.locked, n.uncovered
	status := n.applyValue(v)
	uncovered := n.uncovered && !wasUncovered
	if was != nil && n.locked != nil && *was != *n.locked {
		a.reportUnexplainedMove(n, *n.locked)
	}
	a.mu.Unlock()
	if news {
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref, Code: codeRef(c.slot)})
	}
	// Lasting states are reported as values: Cover status, Lock state, Keypad state.
	if uncovered {
		a.reportTampering(n)
	}
	if v.CC == ccNotification && v.Property == "Access Control" {
		var state int
		if json.Unmarshal(v.NewValue, &state) == nil {
			a.handleTrouble(n, notification{Event: state})
		}
	}
	length := a.handlePINLength(n, v)
	if status || length {
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: n.ref})
	}
	if length { // some locks delete all codes without a report
		a.mu.Lock()
		n.codes.markAllUncertain()
		a.mu.Unlock()
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref})
	}
}

// handlePINLength processes a change of the required PIN length; the event has no label.
func (a *Adapter) handlePINLength(n *node, v wireValue) bool {
	was := n.traits.Load()
	var length int
	if v.CC != ccConfiguration || v.Property != was.lengthProperty || json.Unmarshal(v.NewValue, &length) != nil ||
		length < 4 || length > 10 {
		return false
	}
	t := *was
	t.length = length
	return length != was.length && n.traits.CompareAndSwap(was, &t)
}

// change decodes a value of User Code.
func (v wireValue) change() (c change, ok bool) {
	slot, isSlot := v.PropertyKey.number()
	if v.CC != ccUserCode || v.Endpoint != 0 || !isSlot || !slotIn(slot) {
		return c, false
	}
	c.slot = slot
	switch v.Property {
	case "userIdStatus":
		var status int
		if json.Unmarshal(v.NewValue, &status) != nil {
			return c, false
		}
		occupied, disabled := status != slotAvailable && status != slotNotAvailable, slotDisabled(status)
		c.occupied, c.disabled = &occupied, &disabled
	case "userCode":
		pin, ok := pinIn(v.NewValue)
		if !ok {
			return c, false
		}
		c.pin = &pin
	default:
		return c, false
	}
	return c, true
}

// handleCredential processes a credential event of User Credential.
func (a *Adapter) handleCredential(n *node, e *wireEvent) {
	var args struct {
		User int             `json:"userId"`
		Type int             `json:"credentialType"`
		Slot int             `json:"credentialSlot"`
		Data json.RawMessage `json:"data"`
	}
	if !n.hasUsers() || json.Unmarshal(e.Args, &args) != nil {
		return
	}
	deleted := e.Name == "credential deleted"
	if deleted {
		a.handleDeletion(n, args.Slot == 0) // slot 0: all credentials
	}
	if args.Type != credentialPIN || !slotIn(args.Slot) {
		if !deleted {
			a.mu.Lock()
			n.codes.noteOtherUser(args.User)
			a.mu.Unlock()
		}
		return
	}
	c := change{slot: args.Slot}
	pin, shown := pinIn(args.Data)
	switch {
	case deleted:
		occupied := false
		c.occupied = &occupied
	case shown && pin != "":
		c.pin = &pin
	default: // reported without the PIN
		occupied := true
		c.occupied = &occupied
	}
	a.mu.Lock()
	news := n.codes.applyChange(c)
	a.mu.Unlock()
	if news {
		a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref, Code: codeRef(c.slot)})
	}
}

// notification is a report of an operation at a lock.
type notification struct {
	Type       int             `json:"type"`
	Event      int             `json:"event"`
	Parameters json.RawMessage `json:"parameters"`
}

// slot returns the user of the notification, which is a slot of User Code, or 0.
func (t notification) slot() int {
	var parameters struct {
		UserID int `json:"userId"`
		Named  int `json:"user ID"` // of codeLock and codeUnlock
	}
	_ = json.Unmarshal(t.Parameters, &parameters) // other shapes exist
	return max(parameters.UserID, parameters.Named, 0)
}

func (a *Adapter) handleNotification(n *node, e *wireEvent) {
	var t notification
	if json.Unmarshal(e.Args, &t) != nil {
		return
	}
	if t.Type == homeSecurity && (t.Event == coverRemoved || t.Event == invalidCode || t.Event == lockIsMoved) {
		a.reportTampering(n)
	}
	if t.Type != accessControl {
		return
	}
	slot := t.slot()
	if _, moved := moves[t.Event]; moved {
		a.handleMove(n, t)
		return
	}
	a.handleTrouble(n, t)
	switch t.Event {
	case allCodesDeleted, codeDeleted, codeAdded:
		if t.Event == allCodesDeleted || n.hasUsers() { // the number of a user can differ from the slot of its code
			slot = 0
		}
		if slot > maxSlots {
			return
		}
		a.mu.Lock()
		n.codes.markTouched(slot)
		a.mu.Unlock()
		hint := adapter.Event{Kind: adapter.CodesChanged, Device: n.ref}
		if slot > 0 {
			hint.Code = codeRef(slot)
		}
		a.hints.Send(hint)
	case codeDuplicate:
		a.mu.Lock()
		n.refused.report(slot)
		a.mu.Unlock()
	}
}

func (a *Adapter) reportTampering(n *node) {
	a.hints.Send(adapter.Event{
		Kind:      adapter.Tampered,
		Device:    n.ref,
		Operation: adapter.Operation{At: time.Now()},
	})
}

// handleTrouble processes a report of a jam or of a denied access.
func (a *Adapter) handleTrouble(n *node, t notification) {
	switch t.Event {
	case lockJammed:
		a.handleJam(n, false)
	case notLockedByHand, notLockedByRF, notAutoLocked:
		a.handleJam(n, true)
	case keypadOff, tooManyTries, badRemoteUnlock, badRemoteLock, deniedDisabled, deniedNotNow, deniedNotEnough,
		deniedUnknown:
		_, code := t.used()
		a.hints.Send(adapter.Event{
			Kind:      adapter.AccessDenied,
			Device:    n.ref,
			Code:      code,
			Operation: adapter.Operation{At: time.Now()},
		})
	}
}
