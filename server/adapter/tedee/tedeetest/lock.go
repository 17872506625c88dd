package tedeetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// States of a lock (enums/lock-state).
const (
	Uncalibrated = 0
	Unlocked     = 2
	SemiLocked   = 3
	Locked       = 6
)

// Events of the activity log (enums/event-type).
const (
	eventLockedRemote   = 32
	eventUnlockedRemote = 33
	eventLockedButton   = 34
	eventLockedManual   = 38
	eventJammed         = 40
	eventUnlockByPIN    = 61
	eventIncorrectPIN   = 62
)

// lock is a lock of the account, with the memory of its keypad.
type lock struct {
	id        int64
	serial    string
	name      string
	level     int
	bridge    bool
	connected bool
	keypad    bool
	async     bool
	state     int
	result    int // of the last change of the state
	changed   time.Time
	battery   int
	autoLock  bool
	delay     int
	revision  int
	device    int // revision on the device
	target    int
	jammed    bool

	pins    []pin
	version int64
	lastPIN int64
	full    bool
	inUse   bool

	log     []activity
	visible int // activities that show
}

// pin is a PIN in the keypad, and the body of a write.
type pin struct {
	ID           int64   `json:"id,omitempty"`
	Alias        string  `json:"alias"`
	PIN          string  `json:"pin"`
	StartDate    *string `json:"startDate"`
	EndDate      *string `json:"endDate"`
	DayStartTime *string `json:"dayStartTime"`
	DayEndTime   *string `json:"dayEndTime"`
	WeekDays     *int    `json:"weekDays"`
}

type activity struct {
	ID       int64   `json:"id"`
	DeviceID int64   `json:"deviceId"`
	UserID   *int64  `json:"userId"`
	Username *string `json:"username"`
	Event    int     `json:"event"`
	Source   int     `json:"source"`
	Date     string  `json:"date"`
}

type operation struct {
	device int64
	lock   bool
	reads  int // that answer PENDING
	result int
	done   bool
}

func (c *Cloud) nextID() int64 {
	c.lastID++
	return c.lastID
}

// tick returns a time after all earlier ones.
func (c *Cloud) tick() time.Time {
	c.now = c.now.Add(time.Millisecond)
	if now := time.Now().UTC().Truncate(time.Millisecond); now.After(c.now) {
		c.now = now
	}
	return c.now
}

// AddLock adds a lock with a keypad and a bridge, and returns its serial number.
func (c *Cloud) AddLock(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID()
	l := &lock{
		id:        id,
		serial:    fmt.Sprintf("20%06d-%06d", id, id*7),
		name:      name,
		level:     2,
		bridge:    true,
		connected: true,
		keypad:    true,
		state:     Locked,
		changed:   c.tick(),
		battery:   87,
		delay:     10,
		revision:  2,
		device:    2,
		target:    2,
		version:   1,
	}
	c.locks = append(c.locks, l)
	return l.serial
}

// first is the lock that methods act on. The caller must hold the mutex.
func (c *Cloud) first() *lock { return c.locks[0] }

// Set changes what the vendor reports of the first lock.
type Set struct {
	Level    *int  // 0 guest, 1 admin, 2 owner
	NoKeypad bool  // the keypad was removed
	NoBridge bool  // the bridge was removed
	Async    bool  // the lock connects at times only
	State    *int  // such as Uncalibrated
	Battery  *int  // percent
	AutoLock *bool // changed in the app
}

// Change changes the first lock.
func (c *Cloud) Change(s Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.first()
	l.level = *cmp.Or(s.Level, &l.level)
	l.battery = *cmp.Or(s.Battery, &l.battery)
	l.autoLock = *cmp.Or(s.AutoLock, &l.autoLock)
	l.state = *cmp.Or(s.State, &l.state)
	l.async = l.async || s.Async
	if s.NoKeypad {
		l.keypad = false
	}
	if s.NoBridge {
		l.bridge, l.connected = false, false
	}
}

// SetOnline disconnects the lock from its bridge, or reconnects it.
func (c *Cloud) SetOnline(online bool) { c.set(func() { c.first().connected = online }) }

// Remove removes the lock from the account.
func (c *Cloud) Remove() { c.set(func() { c.locks = c.locks[1:] }) }

// AddAgain removes the lock from the account and adds it again, as a person with the app: its id changes.
func (c *Cloud) AddAgain() { c.set(func() { c.first().id = c.nextID() }) }

// Jam blocks the bolt.
func (c *Cloud) Jam() { c.set(func() { c.first().jammed = true }) }

// State returns the state of the lock.
func (c *Cloud) State() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first().state
}

// move changes the state of the lock, and logs it.
func (c *Cloud) move(l *lock, state, event int, user string) {
	l.state, l.result, l.changed = state, 0, c.tick()
	c.record(l, event, user)
}

// record logs an activity.
func (c *Cloud) record(l *lock, event int, user string) {
	a := activity{ID: c.nextID(), DeviceID: l.id, Event: event, Date: c.tick().Format("2006-01-02T15:04:05.000")}
	if user != "" {
		a.Username = &user
	}
	l.log = append(l.log, a)
	if !c.hideLog {
		l.visible = len(l.log)
	}
}

// LockByHand turns the bolt by hand.
func (c *Cloud) LockByHand() {
	c.set(func() { c.move(c.first(), Locked, eventLockedManual, "") })
}

// EnterPIN enters a PIN at the keypad, and reports whether the door opened.
func (c *Cloud) EnterPIN(entered string) (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.first()
	i := slices.IndexFunc(l.pins, func(p pin) bool { return p.PIN == entered })
	if i < 0 {
		c.record(l, eventIncorrectPIN, "")
		return false
	}
	c.move(l, Unlocked, eventUnlockByPIN, l.pins[i].Alias)
	return true
}

func (l *lock) deviceState() any {
	if !l.connected {
		return nil
	}
	return map[string]any{
		"state":                l.state,
		"doorState":            3,
		"batteryLevel":         l.battery,
		"isCharging":           false,
		"stateChangeResult":    l.result,
		"lastStateChangedDate": stamp(l.changed),
	}
}

// isConnected is null without a bridge.
func (l *lock) isConnected() *bool {
	if !l.bridge {
		return nil
	}
	return &l.connected
}

func (l *lock) json() map[string]any {
	accessories := []map[string]any{}
	if l.keypad {
		accessories = append(accessories, map[string]any{"id": l.id + 1000, "deviceType": 3})
	}
	var bridge *int
	if l.bridge {
		bridge = new(7)
	}
	owner := UserID
	if l.level < 2 {
		owner = "00000000-0000-0000-0000-000000000001"
	}
	return map[string]any{
		"id":                   l.id,
		"serialNumber":         l.serial,
		"name":                 l.name,
		"type":                 2,
		"accessLevel":          l.level,
		"userIdentity":         owner,
		"shareDetails":         nil,
		"timeZone":             "Europe/Warsaw",
		"revision":             l.revision,
		"deviceRevision":       l.device,
		"targetDeviceRevision": l.target,
		"connectedToId":        bridge,
		"isConnected":          l.isConnected(),
		"deviceSettings": map[string]any{
			"autoLockEnabled": l.autoLock, "autoLockDelay": l.delay, "isAsync": l.async,
		},
		"deviceState": l.deviceState(),
		"accessories": accessories,
	}
}

func (l *lock) sync() map[string]any {
	return map[string]any{
		"id":          l.id,
		"isConnected": l.isConnected(),
		"deviceState": l.deviceState(),
		"revision":    l.revision,
	}
}

func (c *Cloud) listLocks(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []map[string]any{}
	for _, l := range c.locks {
		list = append(list, l.json())
	}
	size := cmp.Or(c.options.PageSize, len(list))
	if size == 0 {
		return ok(list)
	}
	page, err := strconv.Atoi(r.FormValue("Page"))
	if err == nil && !c.options.PagesFromZero {
		page--
	}
	from := min(page*size, len(list))
	if c.options.PageSize == 0 {
		from = 0 // the parameter has no effect
	}
	return ok(list[from:min(from+size, len(list))])
}

// lockOf returns the lock of a request. The caller must hold the mutex.
func (c *Cloud) lockOf(r *http.Request) (*lock, *apiError) {
	id := cmp.Or(r.PathValue("id"), r.FormValue("deviceId"))
	for _, l := range c.locks {
		if strconv.FormatInt(l.id, 10) == id {
			return l, nil
		}
	}
	if r.PathValue("pin") != "" { // a route may answer either status
		return nil, &apiError{http.StatusNotFound, "Lock not found."}
	}
	return nil, &apiError{http.StatusForbidden, "User does not have permission to the lock."}
}

func (c *Cloud) getLock(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, refused := c.lockOf(r)
	if refused != nil {
		return answer{err: refused}
	}
	return ok(l.json())
}

func (c *Cloud) syncLocks(*http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []map[string]any{}
	for _, l := range c.locks {
		list = append(list, l.sync())
	}
	return ok(list)
}

func (c *Cloud) syncLock(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, refused := c.lockOf(r)
	if refused != nil {
		return answer{err: refused}
	}
	return ok(l.sync())
}

func (c *Cloud) updateLock(r *http.Request) answer {
	var body struct {
		ID       int64 `json:"id"`
		Revision int   `json:"revision"`
		Settings struct {
			AutoLock *bool `json:"autoLockEnabled"`
			Delay    *int  `json:"autoLockDelay"`
		} `json:"deviceSettings"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return refuse(http.StatusBadRequest, "The body is not valid.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.locks, func(l *lock) bool { return l.id == body.ID })
	switch {
	case i < 0:
		return refuse(http.StatusForbidden, "User does not have permission to the lock.")
	case c.locks[i].revision != body.Revision:
		return refuse(http.StatusConflict, "Revision is not up to date.")
	}
	l := c.locks[i]
	l.autoLock = *cmp.Or(body.Settings.AutoLock, &l.autoLock)
	l.delay = *cmp.Or(body.Settings.Delay, &l.delay)
	l.revision++
	l.target = l.revision
	if l.connected {
		l.device = l.target
	}
	return ok(map[string]any{"id": l.id, "revision": l.revision, "targetDeviceRevision": l.target})
}

// EditElsewhere changes a setting of the lock in the app, so that its revision grows.
func (c *Cloud) EditElsewhere() { c.set(func() { c.first().revision++ }) }

func (c *Cloud) operate(r *http.Request, lock bool) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, refused := c.lockOf(r)
	switch {
	case refused != nil:
		return answer{err: refused}
	case !l.connected:
		return refuse(http.StatusPreconditionRequired, "Lock is disconnected.")
	case c.options.RefusesRepeats && (lock && l.state == Locked || !lock && l.state == Unlocked):
		return refuse(http.StatusConflict, "Operation is not available in this state.")
	}
	op := &operation{device: l.id, lock: lock, reads: c.opReads}
	id := strconv.FormatInt(c.tick().UnixMilli(), 10)
	c.ops[id] = op
	if op.reads == 0 {
		c.finish(op)
	}
	return answer{status: http.StatusAccepted, result: map[string]any{
		"operationId": id, "lastStateChangedDate": stamp(l.changed),
	}}
}

// finish moves the bolt. An uncalibrated lock reports success and does nothing.
func (c *Cloud) finish(op *operation) {
	i := slices.IndexFunc(c.locks, func(l *lock) bool { return l.id == op.device })
	op.done = true
	if i < 0 {
		op.result = 1
		return
	}
	l := c.locks[i]
	switch {
	case l.state == Uncalibrated:
	case l.jammed:
		op.result = 1
		c.move(l, SemiLocked, eventJammed, "The Owner")
		l.result = 1
	case op.lock:
		c.move(l, Locked, eventLockedRemote, "The Owner")
	default:
		c.move(l, Unlocked, eventUnlockedRemote, "The Owner")
	}
}

func (c *Cloud) getOperation(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	op := c.ops[r.PathValue("operation")]
	if op == nil {
		return refuse(http.StatusNotFound, "Operation not found.")
	}
	status, kind := "PENDING", 2
	if op.lock {
		kind = 1
	}
	if op.reads > 0 {
		op.reads--
	} else {
		if !op.done {
			c.finish(op)
		}
		status = "COMPLETED"
	}
	return ok(map[string]any{
		"deviceId":    op.device,
		"operationId": r.PathValue("operation"),
		"result":      op.result,
		"status":      status,
		"type":        kind,
	})
}

func (c *Cloud) listActivity(r *http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, refused := c.lockOf(r)
	if refused != nil {
		return answer{err: refused}
	}
	if !c.hideLog {
		l.visible = len(l.log)
	}
	list := append([]activity{}, l.log[:l.visible]...)
	slices.Reverse(list)
	elements, _ := strconv.Atoi(r.FormValue("elements")) // the contract requires it
	return ok(list[:min(elements, len(list))])
}
