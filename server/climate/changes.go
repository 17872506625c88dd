package climate

import (
	"bytes"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
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
func (t *Thermostat) Snapshot() []byte { return domain.MustJSON(t.State) }

// Changes returns what differs from before, the Snapshot from the time when the thermostat was loaded. It returns each
// end, event, and schedule once.
func (t *Thermostat) Changes(before []byte) Changes {
	out := t.changes
	if now := t.Snapshot(); !bytes.Equal(before, now) {
		out.State = now
	}
	t.changes = Changes{}
	return out
}

func (t *Thermostat) emit(eventType string, fields map[string]any) {
	t.changes.Events = append(t.changes.Events, Event{eventType, fields})
}

// addDegrees adds a temperature in both units; null if there is none.
func addDegrees(fields map[string]any, name string, celsius *float64) {
	if celsius == nil {
		fields[name+"_celsius"], fields[name+"_fahrenheit"] = nil, nil
		return
	}
	fields[name+"_celsius"], fields[name+"_fahrenheit"] = Round(*celsius), Round(Fahrenheit(*celsius))
}

// emitAdjusted emits an event about a change of the setting: method seam for a request, external at the device.
func (t *Thermostat) emitAdjusted(method string, s Setting) {
	fields := map[string]any{"method": method}
	if s.Mode != "" {
		fields[modeField] = string(s.Mode)
	}
	if s.Fan != "" {
		fields[fanField] = string(s.Fan)
	}
	if s.Heat != nil {
		addDegrees(fields, "heating_set_point", s.Heat)
	}
	if s.Cool != nil {
		addDegrees(fields, "cooling_set_point", s.Cool)
	}
	t.emit("thermostat.manually_adjusted", fields)
}

// emitActivated emits the event that a preset is in effect.
func (t *Thermostat) emitActivated(d Desired) {
	fields := map[string]any{
		presetField:                  d.Preset,
		"thermostat_schedule_id":     nil,
		"is_fallback_climate_preset": d.Source == FromFallback,
	}
	if d.Source == FromSchedule {
		fields["thermostat_schedule_id"] = d.Schedule.String()
	}
	t.emit("thermostat.climate_preset_activated", fields)
}
