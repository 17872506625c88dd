package tedeetest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Code is a PIN in the memory of the keypad.
type Code struct {
	ID               int64
	Name, PIN        string
	StartsAt, EndsAt *time.Time
	// WeekDays is the bit mask of days; nil: all.
	WeekDays *int
}

// Codes returns the memory of the keypad.
func (c *Cloud) Codes() (codes []Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.first().pins {
		codes = append(codes, Code{
			ID:       p.ID,
			Name:     p.Alias,
			PIN:      p.PIN,
			StartsAt: parse(p.StartDate),
			EndsAt:   parse(p.EndDate),
			WeekDays: p.WeekDays,
		})
	}
	return codes
}

func parse(text *string) *time.Time {
	if text == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		return nil
	}
	return &at
}

// AddCode adds a PIN with the app, and returns its id.
func (c *Cloud) AddCode(name, entered string) int64 {
	return c.AddWeekly(name, entered, nil)
}

// AddWeekly adds a PIN that works on some days of the week from 10:00 to 18:00 UTC, and returns its id.
func (c *Cloud) AddWeekly(name, entered string, weekDays *int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pin{Alias: name, PIN: entered, WeekDays: weekDays}
	if weekDays != nil {
		p.DayStartTime, p.DayEndTime = new("2021-10-01T10:00:00.000Z"), new("2021-10-01T18:00:00.000Z")
	}
	return c.first().add(p)
}

// ChangeCode changes a PIN with the app.
func (c *Cloud) ChangeCode(id int64, entered string) {
	c.set(func() {
		l := c.first()
		if i := l.find(id); i >= 0 {
			l.pins[i].PIN = entered
			l.version++
		}
	})
}

// DeleteCode deletes a PIN with the app.
func (c *Cloud) DeleteCode(id int64) { c.set(func() { c.first().remove(id) }) }

// Fill fills the keypad, so that it takes no further PIN.
func (c *Cloud) Fill() { c.set(func() { c.first().full = true }) }

// ResetKeypad replaces the keypad by another one with the same PINs under the same ids, whose list starts at version 1.
func (c *Cloud) ResetKeypad() { c.set(func() { c.first().version = 1 }) }

func (l *lock) find(id int64) int {
	return slices.IndexFunc(l.pins, func(p pin) bool { return p.ID == id })
}

func (l *lock) add(p pin) int64 {
	l.lastPIN++
	p.ID = l.lastPIN
	l.pins = append(l.pins, p)
	l.version++
	return p.ID
}

func (l *lock) remove(id int64) {
	if i := l.find(id); i >= 0 {
		l.pins = slices.Delete(l.pins, i, i+1)
		l.version++
	}
}

// pins wraps the calls of PINs, which a lock serves one at a time. The handler holds the mutex.
func (c *Cloud) pins(handle func(*lock, *http.Request) answer) func(*http.Request) answer {
	return func(r *http.Request) answer {
		l, held, refused := c.enter(r)
		if refused != nil {
			return answer{err: refused}
		}
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		defer func() { l.inUse = false; c.arrived-- }()
		return handle(l, r)
	}
}

func (c *Cloud) enter(r *http.Request) (l *lock, held chan struct{}, refused *apiError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, refused = c.lockOf(r)
	switch {
	case refused != nil:
		return nil, nil, refused
	case !l.connected:
		return nil, nil, &apiError{http.StatusPreconditionRequired, "Lock is disconnected."}
	case !l.keypad:
		return nil, nil, &apiError{http.StatusPreconditionRequired, "Lock is not properly configured."}
	case l.inUse:
		c.conflicts++
		return nil, nil, &apiError{http.StatusConflict, "Other request is currently processing."}
	case c.busy > 0:
		c.busy--
		return nil, nil, &apiError{http.StatusConflict, "Other request is currently processing."}
	}
	l.inUse = true
	c.arrived++
	return l, c.held, nil
}

// failures are the refusals of a creation by class.
var failures = map[adapter.Class]apiError{
	adapter.Offline:   {http.StatusPreconditionRequired, "Lock is disconnected."},
	adapter.Duplicate: {http.StatusNotAcceptable, "Pin already exists."},
	adapter.Full:      {http.StatusPreconditionFailed, "Adding more pins is not available."},
	adapter.Invalid:   {http.StatusBadRequest, "Pin is not valid."},
}

// write wraps the writes of PINs with the habits of lost writes and responses.
func (c *Cloud) write(handle func(*lock, *http.Request) answer) func(*lock, *http.Request) answer {
	return func(l *lock, r *http.Request) answer {
		if f, fails := failures[c.class]; fails && r.Method == http.MethodPost {
			l.connected = c.class != adapter.Offline && l.connected
			return answer{err: &f}
		}
		before, version := slices.Clone(l.pins), l.version
		got := handle(l, r)
		if c.drop && got.err == nil {
			c.drop, l.pins, l.version = false, before, version
		}
		switch {
		case c.cut:
			c.cut = false
			panic(http.ErrAbortHandler)
		case got.err != nil:
		case c.late:
			c.late = false
			return refuse(http.StatusRequestTimeout, "Timeout while sending data to the device.")
		}
		return got
	}
}

func (c *Cloud) listPINs(l *lock, r *http.Request) answer {
	if known, err := strconv.ParseInt(r.FormValue("listVersion"), 10, 64); err == nil && known >= l.version {
		return refuse(http.StatusNotModified, "List version is up to date.")
	}
	list := []map[string]any{}
	for _, p := range l.pins {
		list = append(list, map[string]any{"id": p.ID, "alias": p.Alias})
	}
	return ok(map[string]any{"listVersion": l.version, "pins": list})
}

func pinOf(l *lock, r *http.Request) int {
	id, err := strconv.ParseInt(r.PathValue("pin"), 10, 64)
	if err != nil {
		return -1
	}
	return l.find(id)
}

func (c *Cloud) getPIN(l *lock, r *http.Request) answer {
	i := pinOf(l, r)
	if i < 0 {
		return refuse(http.StatusNotFound, "Pin not found.")
	}
	return ok(l.pins[i])
}

// parsePIN reads the body of a write. id is the PIN that it replaces; 0 for a new one.
func (c *Cloud) parsePIN(l *lock, r *http.Request, id int64) (p pin, refused *apiError) {
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		return p, &apiError{http.StatusBadRequest, "The body is not valid."}
	}
	p.ID = id
	// The messages quote the PIN, as messages of a careless server would.
	start, end := parse(p.StartDate), parse(p.EndDate)
	switch {
	case !acceptable(p.PIN) || p.Alias == "":
		return p, &apiError{http.StatusBadRequest, "Pin " + p.PIN + " is not valid."}
	case start != nil && end != nil && !end.After(*start):
		return p, &apiError{http.StatusBadRequest, "End date of pin " + p.PIN + " must be after start date."}
	case slices.ContainsFunc(l.pins, func(o pin) bool { return o.PIN == p.PIN && o.ID != id }):
		return p, &apiError{http.StatusNotAcceptable, "Pin " + p.PIN + " already exists."}
	}
	return p, nil
}

// acceptable reports whether a PIN keeps the rules of the documentation.
func acceptable(entered string) bool {
	distinct, up, down := map[rune]bool{}, true, true
	for i, digit := range entered {
		distinct[digit] = true
		if i > 0 {
			up = up && entered[i] == entered[i-1]+1
			down = down && entered[i] == entered[i-1]-1
		}
	}
	return len(entered) >= 5 && len(entered) <= 8 && strings.Trim(entered, "0123456789") == "" && len(distinct) >= 3 &&
		!up && !down
}

func (c *Cloud) createPIN(l *lock, r *http.Request) answer {
	p, refused := c.parsePIN(l, r, 0)
	switch {
	case refused != nil:
		return answer{err: refused}
	case l.full || len(l.pins) >= cmp.Or(c.options.MaxPINs, 100):
		return refuse(http.StatusPreconditionFailed, "Adding more pins is not available.")
	}
	return answer{status: http.StatusCreated, result: map[string]any{"id": l.add(p)}}
}

func (c *Cloud) updatePIN(l *lock, r *http.Request) answer {
	i := pinOf(l, r)
	if i < 0 {
		return refuse(http.StatusNotFound, "Pin not found.")
	}
	p, refused := c.parsePIN(l, r, l.pins[i].ID)
	if refused != nil {
		return answer{err: refused}
	}
	l.pins[i] = p
	l.version++
	return answer{status: http.StatusNoContent}
}

func (c *Cloud) deletePIN(l *lock, r *http.Request) answer {
	i := pinOf(l, r)
	if i < 0 {
		return refuse(http.StatusNotFound, "Pin not found.")
	}
	l.remove(l.pins[i].ID)
	return answer{status: http.StatusNoContent}
}
