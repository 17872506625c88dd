package climate

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
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

// maxScheduleErrors is how many errors a schedule keeps.
const maxScheduleErrors = 10

// PutSchedule adds a schedule, or replaces the one of the same ID, of which s must be a copy. A StartsAt in the past
// becomes Now, or the start of the one that is running. It changes s, and what is in effect. It fails with Invalid if s
// ends before it starts, or at a new time in the past; if another schedule has the same StartsAt; if MaxOverride is not
// positive; or for a preset without a setting. It fails with NotFound (climate_preset_not_found). To replace a schedule
// that has ended, the caller adds it to Schedules first.
func (t *Thermostat) PutSchedule(s *Schedule) error {
	old := t.schedule(s.ID)
	starts := s.StartsAt
	switch {
	case old != nil && (old.StartsAt.Equal(starts) || !old.StartsAt.After(t.Now) && !starts.After(t.Now)):
		starts = old.StartsAt
	case starts.Before(t.Now):
		starts = t.Now
	}
	err := domain.All(t.checkUsable(presetField, s.Preset), t.checkTimes(s, starts, old))
	if err != nil {
		return err
	}
	s.StartsAt = starts
	if old == nil {
		t.Schedules = append(t.Schedules, s)
	} else {
		if old.Preset != s.Preset {
			s.Errors = nil
		}
		t.Schedules[slices.Index(t.Schedules, old)] = s
	}
	t.advance()
	return nil
}

func (t *Thermostat) checkTimes(s *Schedule, starts time.Time, old *Schedule) error {
	if s.MaxOverride != nil && *s.MaxOverride <= 0 {
		return domain.Invalidf("max_override_period_minutes", "Must be at least 1, or null for no limit")
	}
	taken := slices.ContainsFunc(t.Schedules, func(o *Schedule) bool {
		return o.ID != s.ID && o.StartsAt.Equal(starts)
	})
	changed := old == nil || !old.EndsAt.Equal(s.EndsAt)
	switch {
	case changed && !s.EndsAt.After(t.Now):
		return domain.Invalidf("ends_at", "The end is in the past. Choose a time in the future, or delete the schedule")
	case !s.EndsAt.After(starts):
		return domain.Invalidf("ends_at", "The schedule ends before it starts. Choose an end after starts_at")
	case taken:
		return domain.Invalidf("starts_at", "Another schedule of the thermostat starts then. Choose another time")
	}
	return nil
}

// RemoveSchedule removes a schedule, and ends it if it is running. An unknown ID has no effect.
func (t *Thermostat) RemoveSchedule(id uuid.UUID) {
	t.Schedules = slices.DeleteFunc(t.Schedules, func(s *Schedule) bool { return s.ID == id })
	t.advance()
}

// ActiveSchedule returns the running schedule that started last; nil: none.
func (t *Thermostat) ActiveSchedule() *Schedule {
	var active *Schedule
	for _, s := range t.Schedules {
		if !s.StartsAt.After(t.Now) && s.EndsAt.After(t.Now) && (active == nil || s.StartsAt.After(active.StartsAt)) {
			active = s
		}
	}
	return active
}

// schedule returns the schedule with the ID; nil: there is none.
func (t *Thermostat) schedule(id uuid.UUID) *Schedule {
	for _, s := range t.Schedules {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// addScheduleError adds an error to a schedule, unless it is the last one already.
func (t *Thermostat) addScheduleError(s *Schedule, code, message string) {
	e := ScheduleError{
		Code:    code,
		Message: message,
		At:      t.Now,
	}
	if n := len(s.Errors); n > 0 && s.Errors[n-1].Code == code && s.Errors[n-1].Message == message {
		return
	}
	s.Errors = append(slices.Clip(s.Errors), e)
	s.Errors = s.Errors[max(0, len(s.Errors)-maxScheduleErrors):]
	if !slices.Contains(t.changes.Schedules, s) {
		t.changes.Schedules = append(t.changes.Schedules, s)
	}
}
