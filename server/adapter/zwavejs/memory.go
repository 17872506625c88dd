package zwavejs

import (
	"maps"
	"slices"
	"time"
)

// entry is the content of a slot.
type entry struct {
	pin          string // empty if hidden
	user         int    // User Credential: the owner
	name         string
	starts, ends *time.Time
	disabled     bool // does not open
}

func (e entry) shows(pin string) bool { return e.pin == "" || e.pin == pin }

// memory is the known state of a lock's slots: what was read from the lock, updated by the events of the lock and the
// gateway. The zero value knows nothing. Adapter.mu guards it.
type memory struct {
	// allUncertain means that every slot is uncertain.
	allUncertain bool
	// uncertain holds the uncertain slots.
	uncertain map[int]bool
	// slots holds the occupied slots.
	slots map[int]entry
	// otherNodes holds unusable slots. User Credential: users without a PIN or with other credentials. User Code:
	// slots that do not exist.
	blocked map[int]bool
	// created holds users that this adapter has created or tried to create, and that have shown no PIN yet.
	created map[int]bool
	// keys holds the written codes by idempotency key.
	keys map[string]put
	// pending holds the running writes; an empty entry clears the slot.
	pending map[int]entry
	// writes holds the times of the last writes by slot.
	writes map[int]time.Time
	// touched holds the times of later changes at the keypad by slot.
	touched map[int]time.Time
	// reading holds the slots that are being read; 0 means all.
	reading map[int]bool
	// heard holds the last change of each part that was reported during the read.
	heard map[part]change
}

// put is a code that was sent to a lock.
type put struct {
	slot int
	pin  string
}

// change is a reported change of a slot: occupied, empty, or its PIN.
type change struct {
	slot     int
	occupied *bool
	disabled *bool   // of an occupied one
	pin      *string // asterisks if hidden
}

// part is the part of a slot that a change concerns.
type part struct {
	slot int
	pin  bool
}

// agrees reports whether the change is already reflected in e or the empty slot.
func (c change) agrees(e entry, occupied bool) bool {
	if c.occupied != nil {
		return *c.occupied == occupied && (!occupied || c.disabled == nil || *c.disabled == e.disabled)
	}
	switch {
	case *c.pin == "":
		return !occupied
	case isMasked(*c.pin):
		return occupied
	default:
		return occupied && e.pin == *c.pin
	}
}

func (m *memory) markAllUncertain() { m.allUncertain = true }

func (m *memory) markUncertain(slot int) {
	if m.uncertain == nil {
		m.uncertain = map[int]bool{}
	}
	m.uncertain[slot] = true
}

// applyChange applies a change, and reports whether it is new.
func (m *memory) applyChange(c change) bool {
	if m.reading[0] || m.reading[c.slot] { // probably caused by the read; applied when it ends
		if m.heard == nil {
			m.heard = map[part]change{}
		}
		m.heard[part{c.slot, c.pin != nil}] = c
		return false
	}
	if e, writing := m.pending[c.slot]; writing && (c.agrees(e, true) || c.pin != nil && *c.pin == e.pin) {
		return false
	}
	e, occupied := m.slots[c.slot]
	if c.agrees(e, occupied) || m.allUncertain {
		return false
	}
	m.markUncertain(c.slot)
	return true
}

// beginRead records the start of a read of a slot (0: all).
func (m *memory) beginRead(slot int) {
	if m.reading == nil {
		m.reading = map[int]bool{}
	}
	m.reading[slot] = true
	if slot == 0 {
		m.allUncertain, m.uncertain, m.blocked = false, nil, nil // later reports set them again
		return
	}
	delete(m.uncertain, slot)
}

// storeSlot stores the content of a slot as read from the lock.
func (m *memory) storeSlot(slot int, e entry, occupied bool) {
	if m.slots == nil {
		m.slots = map[int]entry{}
	}
	delete(m.slots, slot)
	if occupied {
		m.slots[slot] = e
		delete(m.created, e.user)
	} else if !m.mayBeEcho(slot) { // a recent write may appear later
		m.forgetKey(slot)
	}
}

// finishRead records the end of a read; complete means that the lock has answered all of it.
func (m *memory) finishRead(slot int, complete bool) {
	delete(m.reading, slot)
	heard := m.heard
	m.heard = nil
	for _, c := range heard {
		m.applyChange(c)
	}
	switch {
	case complete:
	case slot == 0:
		m.markAllUncertain()
	default:
		m.markUncertain(slot)
	}
}

// noteWrite records the start of a write with a key.
func (m *memory) noteWrite(key string, slot int, e entry) {
	m.beginWrite(slot, e)
	m.forgetKey(slot)
	if key != "" {
		m.keys[key] = put{slot, e.pin}
	}
}

// noteClear records the start of the clearing of a slot.
func (m *memory) noteClear(slot int) { m.beginWrite(slot, entry{}) }

func (m *memory) beginWrite(slot int, e entry) {
	if m.pending == nil {
		m.pending, m.keys = map[int]entry{}, map[string]put{}
	}
	m.pending[slot] = e
}

// abandon removes the key of a slot.
func (m *memory) forgetKey(slot int) {
	maps.DeleteFunc(m.keys, func(_ string, p put) bool { return p.slot == slot })
}

// key returns the key of the write that created the code in a slot, or empty.
func (m *memory) key(slot int) string {
	for key, p := range m.keys {
		if e, ok := m.slots[slot]; ok && p.slot == slot && e.shows(p.pin) {
			return key
		}
	}
	return ""
}

// occupied returns the occupied slots in ascending order.
func (m *memory) occupied() []int { return slices.Sorted(maps.Keys(m.slots)) }

// taken reports whether a new code cannot use the slot: it is occupied, or the user with its number has other
// credentials.
func (m *memory) taken(slot int) bool {
	_, ok := m.slots[slot]
	return ok || m.blocked[slot] || m.hasPIN(slot)
}

// hasPIN reports whether a PIN of the user is known.
func (m *memory) hasPIN(user int) bool {
	for _, e := range m.slots {
		if e.user == user {
			return true
		}
	}
	return false
}

// noteCreation records the start of the creation of a user, and reports whether it was attempted earlier.
func (m *memory) noteCreation(user int) (before bool) {
	before = m.created[user]
	if m.created == nil {
		m.created = map[int]bool{}
	}
	m.created[user] = true
	return before
}

// noteUser records that a user exists or was deleted.
func (m *memory) noteUser(user int, there bool) {
	switch {
	case !slotIn(user):
	case !there:
		m.setBlocked(user, false)
		delete(m.created, user)
	case !m.created[user] && !m.hasPIN(user):
		m.setBlocked(user, true)
	}
}

// noteOtherUser records that a user has other credentials, or was created outside this adapter.
func (m *memory) noteOtherUser(user int) {
	if slotIn(user) {
		m.setBlocked(user, true)
		delete(m.created, user)
	}
}

// setBlocked records whether a slot is unusable.
func (m *memory) setBlocked(slot int, is bool) {
	if m.blocked == nil {
		m.blocked = map[int]bool{}
	}
	m.blocked[slot] = is
}

// echoWindow is how long after a write a lock may report it like a change at the keypad.
const echoWindow = 15 * time.Second

func (m *memory) finishWrite(slot int) {
	delete(m.pending, slot)
	if m.writes == nil {
		m.writes = map[int]time.Time{}
	}
	m.writes[slot] = time.Now()
	delete(m.touched, slot)
}

// mayBeEcho reports whether a report about the slot may be caused by a running or recent write of this adapter.
func (m *memory) mayBeEcho(slot int) bool {
	_, writing := m.pending[slot]
	return writing || time.Since(m.writes[slot]) < echoWindow
}

// markTouched records a change at the lock's keypad. Slot 0 means an unknown slot: all slots count as changed, unless a
// write runs or was recent, because some locks report writes without the slot.
func (m *memory) markTouched(slot int) {
	if slot == 0 {
		m.markAllUncertain()
		if len(m.pending) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(m.writes)), m.mayBeEcho) {
			return
		}
		for slot := range m.slots {
			m.markTouched(slot)
		}
		return
	}
	m.markUncertain(slot)
	if m.mayBeEcho(slot) {
		return
	}
	if m.touched == nil {
		m.touched = map[int]time.Time{}
	}
	m.touched[slot] = time.Now()
	m.forgetKey(slot)
}

// seed adopts the gateway's copy until the lock is read.
func (m *memory) seed(values []wireValue) {
	for _, v := range values {
		slot, ok := v.userCode()
		if !ok {
			continue
		}
		if pin, ok := pinIn(v.Value); ok && pin != "" {
			e := entry{pin: pin, user: slot}
			if isMasked(pin) {
				e.pin = ""
			}
			m.storeSlot(slot, e, true)
		}
	}
}
