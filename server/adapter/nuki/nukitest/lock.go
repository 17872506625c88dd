package nukitest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// States of serverState and of state.state.
const (
	serverOnline  = 0
	serverOffline = 4

	stateLocked   = 1
	stateUnlocked = 3
	stateBlocked  = 254
)

// Numbers of the log.
const (
	actionUnlock = 1
	actionLock   = 2

	triggerManual = 1
	triggerWeb    = 4
	triggerKeypad = 255

	logSuccess   = 0
	logBlocked   = 1
	logWrongCode = 224

	sourceKeypad = 1
)

// Lock is a device of the fake. Its methods act on the device behind the API.
type Lock struct {
	// ID is the smartlockId.
	ID int64

	s       *Server
	name    string
	kind    int
	keypad  bool
	server  int // serverState
	state   int
	jammed  bool
	removed bool
	auto    advancedConfig
	codes   []*code
	ops     []*operation
	next    int // authId of the next code
}

type advancedConfig struct {
	AutoLock        bool `json:"autoLock"`
	AutoLockTimeout int  `json:"autoLockTimeout"`
	UnlatchDuration int  `json:"unlatchDuration"`
}

// operation is a write that the list does not show yet.
type operation struct {
	code  string // the code that it changes; empty for a creation
	reads int    // lists until it is done
	do    func()
}

// code is a keypad code in the memory of the lock.
type code struct {
	auth
	busy int // lists that show an operationId
	// direct codes were entered with the app at the lock, and appear with the next sync.
	direct bool
}

// Code is a code in the memory of a lock.
type Code struct {
	ID, Name, PIN string
	From, Until   *time.Time
	WeekDays      int
	Enabled       bool
}

func (l *Lock) lock() func() {
	l.s.mu.Lock()
	return l.s.mu.Unlock
}

// AddCode adds a code in the vendor's app, and returns its identifier.
func (l *Lock) AddCode(t testing.TB, name, pin string) string {
	t.Helper()
	defer l.lock()()
	return l.add(t, name, pin).ID
}

// AddCodeAtLock adds a code over Bluetooth. The cloud shows it after Sync.
func (l *Lock) AddCodeAtLock(t testing.TB, name, pin string) string {
	t.Helper()
	defer l.lock()()
	c := l.add(t, name, pin)
	c.direct = true
	return c.ID
}

// Sync is the daily synchronization of the lock with the cloud.
func (l *Lock) Sync() {
	defer l.lock()()
	for _, c := range l.codes {
		c.direct = false
	}
}

func (l *Lock) add(t testing.TB, name, pin string) *code {
	number, err := strconv.Atoi(pin)
	if err != nil {
		t.Fatal("the PIN is no number")
	}
	c := l.newCode(auth{Name: name, Code: &number, Enabled: true, WeekDays: 127})
	l.codes = append(l.codes, c)
	l.s.pushCode(c.auth, false)
	return c
}

func (l *Lock) newCode(a auth) *code {
	l.next++
	a.ID, a.SmartlockID, a.AuthID, a.Type = l.s.newID(), l.ID, l.next, keypadCode
	now := l.s.now()
	a.CreationDate, a.UpdateDate = now, now
	return &code{auth: a}
}

// ChangeCode changes the PIN of a code in the vendor's app.
func (l *Lock) ChangeCode(t testing.TB, id, pin string) {
	t.Helper()
	defer l.lock()()
	number, err := strconv.Atoi(pin)
	c := l.find(id)
	if err != nil || c == nil {
		t.Fatal("no such code, or no PIN")
	}
	c.Code, c.UpdateDate = &number, l.s.now()
	l.s.pushCode(c.auth, false)
}

// LimitCode restricts a code to days of the week in the vendor's app, and disables or enables it.
func (l *Lock) LimitCode(t testing.TB, id string, weekDays int, enabled bool) {
	t.Helper()
	defer l.lock()()
	c := l.find(id)
	if c == nil {
		t.Fatal("no such code")
	}
	c.WeekDays, c.Enabled = weekDays, enabled
}

// DeleteCode deletes a code in the vendor's app.
func (l *Lock) DeleteCode(t testing.TB, id string) {
	t.Helper()
	defer l.lock()()
	c := l.find(id)
	if c == nil {
		t.Fatal("no such code")
	}
	l.drop(id)
	l.s.pushCode(c.auth, true)
}

func (l *Lock) find(id string) *code {
	for _, c := range l.codes {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (l *Lock) drop(id string) {
	l.codes = slices.DeleteFunc(l.codes, func(c *code) bool { return c.ID == id })
}

// Codes returns the codes in the memory of the lock.
func (l *Lock) Codes() (out []Code) {
	defer l.lock()()
	for _, c := range l.codes {
		out = append(out, Code{
			ID:       c.ID,
			Name:     c.Name,
			PIN:      fmt.Sprint(*c.Code),
			From:     c.From,
			Until:    c.Until,
			WeekDays: c.WeekDays,
			Enabled:  c.Enabled,
		})
	}
	return out
}

// EnterPIN enters a PIN at the keypad, and reports whether the door opened.
func (l *Lock) EnterPIN(pin string) bool {
	defer l.lock()()
	entry := logEntry{Action: actionUnlock, Trigger: triggerKeypad, State: logWrongCode, Source: sourceKeypad}
	for _, c := range l.codes {
		if fmt.Sprint(*c.Code) == pin && c.Enabled {
			entry.AuthID, entry.Name, entry.State = c.ID, c.Name, logSuccess
			l.state = stateUnlocked
		}
	}
	l.log(entry)
	return entry.State == logSuccess
}

// LockByHand turns the knob.
func (l *Lock) LockByHand() {
	defer l.lock()()
	l.state = stateLocked
	l.log(logEntry{Action: actionLock, Trigger: triggerManual})
}

// Jam blocks the bolt.
func (l *Lock) Jam() {
	defer l.lock()()
	l.jammed = true
}

// SetOnline disconnects the lock from the cloud, or reconnects it.
func (l *Lock) SetOnline(online bool) {
	defer l.lock()()
	l.server = serverOffline
	if online {
		l.server = serverOnline
	}
	l.s.pushState(l)
}

// SetServerState sets serverState, such as 2 for a lock that the owner must connect again.
func (l *Lock) SetServerState(state int) {
	defer l.lock()()
	l.server = state
}

// Remove removes the lock from the account.
func (l *Lock) Remove() {
	defer l.lock()()
	l.removed = true
}

// fillers is the name of the codes of Fill.
const fillers = "Filler"

// Fill fills the memory of the lock with codes.
func (l *Lock) Fill() {
	defer l.lock()()
	for i := 0; len(l.codes) < l.s.options.MaxCodes; i++ {
		number := 311_111 + i
		l.codes = append(l.codes, l.newCode(auth{Name: fillers, Code: &number, Enabled: true, WeekDays: 127}))
	}
}

// Empty removes the codes of Fill.
func (l *Lock) Empty() {
	defer l.lock()()
	l.codes = slices.DeleteFunc(l.codes, func(c *code) bool { return c.Name == fillers })
}

func (l *Lock) log(e logEntry) {
	e.ID, e.SmartlockID, e.Date = l.s.newID(), l.ID, l.s.now()
	l.s.logs = append(l.s.logs, e)
	l.s.pushLog(e)
	l.s.pushState(l)
}

// move moves the bolt by a command of the API.
func (l *Lock) move(action int) {
	if l.server != serverOnline {
		return
	}
	entry := logEntry{Action: action, Trigger: triggerWeb}
	switch {
	case l.jammed:
		l.state, entry.State = stateBlocked, logBlocked
	case action == actionLock:
		l.state = stateLocked
	default:
		l.state = stateUnlocked
	}
	l.log(entry)
}

// write does a write that the cloud accepted: at once, after some lists, or never.
func (l *Lock) write(id string, do func()) {
	switch {
	case l.s.lose(l):
	case l.s.options.ListLag == 0:
		do()
	default:
		l.ops = append(l.ops, &operation{code: id, reads: l.s.options.ListLag, do: do})
	}
}

// list returns what the cloud shows of the codes, and lets the operations advance.
func (l *Lock) list() (out []auth) {
	for _, c := range l.codes {
		if c.direct {
			continue
		}
		shown := c.auth
		if c.busy > 0 {
			c.busy--
			shown.OperationID = &struct{}{}
		}
		out = append(out, shown)
	}
	for _, o := range l.ops {
		if o.reads--; o.reads == 0 {
			o.do()
		}
	}
	l.ops = slices.DeleteFunc(l.ops, func(o *operation) bool { return o.reads <= 0 })
	return out
}

// isBusy reports whether an operation of a code is on its way to the lock.
func (l *Lock) isBusy(c *code) bool {
	return c.busy > 0 || slices.ContainsFunc(l.ops, func(o *operation) bool { return o.code == c.ID })
}
