package climate

import (
	"time"

	"github.com/google/uuid"
)

// Schedule applies a preset for a time frame.
type Schedule struct {
	ID       uuid.UUID
	Name     *string
	Preset   string
	StartsAt time.Time
	// EndsAt is the first moment at which the schedule does not apply.
	EndsAt time.Time
	// OverrideAllowed means that a change at the device holds for MaxOverride.
	OverrideAllowed bool
	// MaxOverride is in minutes; nil: the change holds until the next transition.
	MaxOverride *int
	CreatedAt   time.Time
	// Errors are the latest failures to apply the schedule, oldest first.
	Errors []ScheduleError
}

// ScheduleError is an entry in the errors of a schedule. Its JSON is that of the API.
type ScheduleError struct {
	Code    string    `json:"error_code"`
	Message string    `json:"message"`
	At      time.Time `json:"created_at"`
}

// PutSchedule adds a schedule, or replaces the one of the same ID. A new StartsAt in the past becomes Now. It changes
// s, and what is in effect. It fails with Invalid if s ends before it starts or in the past, if another schedule has
// the same StartsAt, or if MaxOverride is not positive; and with NotFound (climate_preset_not_found).
func (t *Thermostat) PutSchedule(s *Schedule) error { return nil }

// RemoveSchedule removes a schedule, and ends it if it is running. An unknown ID has no effect.
func (t *Thermostat) RemoveSchedule(id uuid.UUID) {}

// ActiveSchedule returns the running schedule that started last; nil: none.
func (t *Thermostat) ActiveSchedule() *Schedule { return nil }
