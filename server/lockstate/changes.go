package lockstate

import (
	"reflect"
	"time"

	"github.com/google/uuid"
)

// Changes is what the caller must write, in one transaction.
type Changes struct {
	Added   []*Code
	Updated []*Code
	Deleted []uuid.UUID
	// Tombstones are deleted codes that a vendor may still deliver.
	Tombstones []uuid.UUID
	// Requested are new attempts, the pending ones and those that have succeeded already.
	Requested []Requested
	Ended     []Ended
	// Events are in the order in which they happened.
	Events []Event
	// Read is set if the device was read.
	Read *Read
	// Wake means that the device must be looked at again, and WakeToRead that it must be read then.
	Wake, WakeToRead bool
}

// Requested is a new attempt. Its deadline begins when it is written.
type Requested struct {
	Attempt
	Status AttemptStatus
}

// Ended is the end of an attempt.
type Ended struct {
	Attempt            Attempt
	Status             AttemptStatus
	ErrorType, Message string
}

// Read is what a read of the device changes about the next one.
type Read struct {
	RereadAt   *time.Time
	EmptySince *time.Time
}

// Event is an event about a code or about the end of an attempt.
type Event struct {
	// Type is an event type of the API. It is empty for the end of an attempt, whose type depends on the action.
	Type  string
	Ended *Ended
	Code  uuid.UUID
	// Silent means that the event is not written, because its code is in the backup pool.
	Silent bool
	// HasPIN means that the event shows PIN, or null if PIN is empty.
	HasPIN bool
	PIN    PIN
	// Change is the change of which the event shows From and To, and Description who made it.
	Change      *FieldChange
	Description string
	// Requested are the changes that a client requested.
	Requested []FieldChange
	// Mutation is the creation or removal that a client requested.
	Mutation string
	// Problems means that the event shows the problems of the code, its device, and its account.
	Problems         bool
	Errors, Warnings []Problem
	// BackupCode is the backup code that was pulled.
	BackupCode uuid.UUID
}

// Changes returns what differs from before, a copy of the codes from the time when the lock was loaded. It returns each
// difference once.
func (l *Lock) Changes(before map[uuid.UUID]Code) Changes {
	out := l.changes
	for _, c := range l.Codes {
		if was, known := before[c.ID]; known && was != *c && !reflect.DeepEqual(was, *c) {
			out.Updated = append(out.Updated, c)
		}
	}
	l.changes = Changes{}
	return out
}

// Append adds later changes, except Updated, which Lock.Changes derives from the codes.
func (c *Changes) Append(later Changes) {
	c.Added = append(c.Added, later.Added...)
	c.Deleted = append(c.Deleted, later.Deleted...)
	c.Tombstones = append(c.Tombstones, later.Tombstones...)
	c.Requested = append(c.Requested, later.Requested...)
	c.Ended = append(c.Ended, later.Ended...)
	c.Events = append(c.Events, later.Events...)
	c.Wake, c.WakeToRead = c.Wake || later.Wake, c.WakeToRead || later.WakeToRead
	if later.Read != nil {
		c.Read = later.Read
	}
}

// Snapshot returns a copy of the codes, for Changes.
func (l *Lock) Snapshot() map[uuid.UUID]Code {
	before := make(map[uuid.UUID]Code, len(l.Codes))
	for _, c := range l.Codes {
		before[c.ID] = *c
	}
	return before
}

// emit adds an event about a code.
func (l *Lock) emit(e Event, c *Code) {
	e.Code, e.Silent = c.ID, c.InPool
	l.changes.Events = append(l.changes.Events, e)
}

func (l *Lock) emitWithPIN(eventType string, c *Code, pin PIN) {
	l.emit(Event{Type: eventType, HasPIN: true, PIN: pin}, c)
}

// emitProblem emits an event with the current error and warning of a code.
func (l *Lock) emitProblem(eventType string, c *Code) {
	e := Event{Type: eventType, Problems: true}
	if c.Error != nil {
		e.Errors = append(e.Errors, *c.Error)
	}
	if c.Warning != nil {
		e.Warnings = append(e.Warnings, *c.Warning)
	}
	l.emit(e, c)
}

func (l *Lock) wake(read bool) {
	l.changes.Wake, l.changes.WakeToRead = true, l.changes.WakeToRead || read
}

// recordConfirmed records that the device has the code's desired state, and emits the differences from the last
// confirmed one. by describes the author of the change.
func (l *Lock) recordConfirmed(c *Code, by string) { l.recordConfirmedAs(c, c.State(), by) }

// recordConfirmedAs is recordConfirmed for a state that differs from the desired one.
func (l *Lock) recordConfirmedAs(c *Code, state State, by string) {
	was := c.Applied
	c.Applied = &state
	if was == nil {
		return
	}
	for _, change := range was.ChangesTo(state) {
		l.emit(Event{Type: "access_code." + change.Field + "_changed", Change: &change, Description: by}, c)
	}
}

const (
	changedByRequest  = "The change was requested through the API and confirmed by the device."
	changedExternally = "The change was made at the device."
)

// MutationsRequested is the event type of a requested creation, change, or removal.
const MutationsRequested = "access_code.mutations_requested"
