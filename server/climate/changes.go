package climate

import (
	"github.com/google/uuid"
)

// Changes is what the caller must write, in one transaction.
type Changes struct {
	// State is the new document; nil: it has not changed.
	State []byte
	// Ended are the attempts that have ended.
	Ended []Ended
	// Events are in the order in which they happened.
	Events []Event
	// Schedules are the schedules whose Errors have changed.
	Schedules []*Schedule
}

// Ended is the end of an attempt. An empty ErrorType means success.
type Ended struct {
	Attempt            uuid.UUID
	ErrorType, Message string
}

// Event is an event about the thermostat.
type Event struct {
	// Type is an event type of the API.
	Type string
	// Fields are those of the type, by their names in the API, without the fields that all events of devices have.
	Fields map[string]any
}

// Snapshot returns the document of State, for Changes.
func (t *Thermostat) Snapshot() []byte { return nil }

// Changes returns what differs from before, the Snapshot from the time when the thermostat was loaded. It returns each
// difference once.
func (t *Thermostat) Changes(before []byte) Changes { return Changes{} }
