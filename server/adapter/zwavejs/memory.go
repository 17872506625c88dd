package zwavejs

import (
	"maps"
	"slices"
	"time"
)

// entry is what a slot of a lock holds.
type entry struct {
	pin          string // empty: hidden
	user         int    // User Credential: whose it is
	name         string
	starts, ends *time.Time
	disabled     bool // it opens nothing
}

func (e entry) shows(pin string) bool { return e.pin == "" || e.pin == pin }

// memory is what is known of a lock's slots: what the lock has shown, kept up by what it and the gateway tell.
// The zero value knows nothing. It is guarded by Adapter.mu.
type memory struct {
	all     bool              // every slot is in doubt
	doubts  map[int]bool      // slots that are
	slots   map[int]entry     // those that are occupied
	others  map[int]bool      // User Credential: users that have no PIN, or something else besides; User Code: slots that are none
	made    map[int]bool      // User Credential: users that were made from here, or may have been, and have shown no PIN yet
	keys    map[string]put    // codes that were put from here, by their idempotency key
	pending map[int]entry     // what is being written; nothing: the slot is being cleared
	writes  map[int]time.Time // when slots were last written from here
	touched map[int]time.Time // when slots were last changed at the keypad since
	reading map[int]bool      // slots that are being read; 0: all
	heard   map[part]change   // what was told of those meanwhile, the last of each part
}

// put is a code that was sent to a lock.
type put struct {
	slot int
	pin  string
}

// change is what the gateway tells of a slot: that it is occupied or empty, or its PIN.
type change struct {
	slot     int
	occupied *bool
	disabled *bool   // of an occupied one
	pin      *string // with stars where it is hidden
}

// part is what a change is of.
type part struct {
	slot int
	pin  bool
}

// agrees says whether the change is what e, or an empty slot, shows already.
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

func (m *memory) doubtAll() { m.all = true }

func (m *memory) doubt(slot int) {
	if m.doubts == nil {
		m.doubts = map[int]bool{}
	}
	m.doubts[slot] = true
}

// hear takes in a change, and says whether it is news.
func (m *memory) hear(c change) bool {
	if m.reading[0] || m.reading[c.slot] { // the read's own echo, most likely; looked at when it is over
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
	if c.agrees(e, occupied) || m.all {
		return false
	}
	m.doubt(c.slot)
	return true
}

// begin notes that a slot (0: all) is about to be read.
func (m *memory) begin(slot int) {
	if m.reading == nil {
		m.reading = map[int]bool{}
	}
	m.reading[slot] = true
	if slot == 0 {
		m.all, m.doubts, m.others = false, nil, nil // what is told from now on is told of what was not read yet
		return
	}
	delete(m.doubts, slot)
}

// shown takes in what a lock has shown of a slot.
func (m *memory) shown(slot int, e entry, occupied bool) {
	if m.slots == nil {
		m.slots = map[int]entry{}
	}
	delete(m.slots, slot)
	if occupied {
		m.slots[slot] = e
		delete(m.made, e.user)
	} else if !m.echoes(slot) { // what was sent just now may be shown later
		m.forget(slot)
	}
}

// finish ends what begin has begun; complete says that the lock has shown all of it.
func (m *memory) finish(slot int, complete bool) {
	delete(m.reading, slot)
	heard := m.heard
	m.heard = nil
	for _, c := range heard {
		m.hear(c)
	}
	switch {
	case complete:
	case slot == 0:
		m.doubtAll()
	default:
		m.doubt(slot)
	}
}

// write notes what is about to be put into a slot, and by which key.
func (m *memory) write(key string, slot int, e entry) {
	m.start(slot, e)
	m.forget(slot)
	if key != "" {
		m.keys[key] = put{slot, e.pin}
	}
}

// clear notes that a slot is about to be cleared.
func (m *memory) clear(slot int) { m.start(slot, entry{}) }

func (m *memory) start(slot int, e entry) {
	if m.pending == nil {
		m.pending, m.keys = map[int]entry{}, map[string]put{}
	}
	m.pending[slot] = e
}

// forget drops the key of what a slot had.
func (m *memory) forget(slot int) {
	maps.DeleteFunc(m.keys, func(_ string, p put) bool { return p.slot == slot })
}

// key is the one that the code in a slot was put with; empty where it is another code.
func (m *memory) key(slot int) string {
	for key, p := range m.keys {
		if e, ok := m.slots[slot]; ok && p.slot == slot && e.shows(p.pin) {
			return key
		}
	}
	return ""
}

// occupied are the slots in use, ascending.
func (m *memory) occupied() []int { return slices.Sorted(maps.Keys(m.slots)) }

// taken says whether a new code cannot go into the slot: it is in use, or a user of that number holds something
// else.
func (m *memory) taken(slot int) bool {
	_, ok := m.slots[slot]
	return ok || m.others[slot] || m.hasPIN(slot)
}

// hasPIN says whether a PIN is known of a user.
func (m *memory) hasPIN(user int) bool {
	for _, e := range m.slots {
		if e.user == user {
			return true
		}
	}
	return false
}

// making notes that a user is about to be made, and says whether that was tried before.
func (m *memory) making(user int) (before bool) {
	before = m.made[user]
	if m.made == nil {
		m.made = map[int]bool{}
	}
	m.made[user] = true
	return before
}

// meet takes in that a user is there, or has gone.
func (m *memory) meet(user int, there bool) {
	switch {
	case !slotIn(user):
	case !there:
		m.bar(user, false)
		delete(m.made, user)
	case !m.made[user] && !m.hasPIN(user):
		m.bar(user, true)
	}
}

// meetOther takes in that a user has something else than a PIN, or is somebody else's.
func (m *memory) meetOther(user int) {
	if slotIn(user) {
		m.bar(user, true)
		delete(m.made, user)
	}
}

// bar notes whether a slot cannot be used at all.
func (m *memory) bar(slot int, is bool) {
	if m.others == nil {
		m.others = map[int]bool{}
	}
	m.others[slot] = is
}

// echoWithin is how long after a write a lock may still tell of it as if it were done at its keypad.
const echoWithin = 15 * time.Second

func (m *memory) written(slot int) {
	delete(m.pending, slot)
	if m.writes == nil {
		m.writes = map[int]time.Time{}
	}
	m.writes[slot] = time.Now()
	delete(m.touched, slot)
}

// echoes says whether what a lock tells of a slot may be of what is being written to it from here, or was just now.
func (m *memory) echoes(slot int) bool {
	_, writing := m.pending[slot]
	return writing || time.Since(m.writes[slot]) < echoWithin
}

// touch notes that a slot was changed at the lock's keypad. 0: it is not known which; all are then, unless any is written to
// from here: some locks tell of that without its slot.
func (m *memory) touch(slot int) {
	if slot == 0 {
		m.doubtAll()
		if len(m.pending) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(m.writes)), m.echoes) {
			return
		}
		for slot := range m.slots {
			m.touch(slot)
		}
		return
	}
	m.doubt(slot)
	if m.echoes(slot) {
		return
	}
	if m.touched == nil {
		m.touched = map[int]time.Time{}
	}
	m.touched[slot] = time.Now()
	m.forget(slot)
}

// seed takes over what the gateway remembers, until the lock is read.
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
			m.shown(slot, e, true)
		}
	}
}
