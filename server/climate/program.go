package climate

import (
	"time"

	"github.com/google/uuid"
)

// The limits of daily programs.
const (
	// MaxDailyPrograms is how many daily programs a thermostat can have.
	MaxDailyPrograms = 100
	// MaxPeriods is how many periods a day can have.
	MaxPeriods = 10
	// PeriodPrecision is what the start of a period is a multiple of, in minutes.
	PeriodPrecision = 5
)

// DailyProgram divides a day into periods.
type DailyProgram struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Periods   []Period  `json:"periods"`
	CreatedAt time.Time `json:"created_at"`
}

// Period applies a preset from a time of the day until the next period.
type Period struct {
	// StartsAtTime is the local time as HH:MM:SS.
	StartsAtTime string `json:"starts_at_time"`
	Preset       string `json:"climate_preset_key"`
}

// WeeklyProgram selects the daily program of each weekday.
type WeeklyProgram struct {
	// Days are indexed by time.Weekday. A zero ID is a day without a program.
	Days      [7]uuid.UUID `json:"days"`
	CreatedAt time.Time    `json:"created_at"`
}

// CreateDailyProgram adds a daily program. It fails with TooMany at MaxDailyPrograms, with Invalid for periods that do
// not start at 00:00:00, do not ascend, are too many, or start at no multiple of PeriodPrecision, and with NotFound
// (climate_preset_not_found).
func (t *Thermostat) CreateDailyProgram(p DailyProgram) error { return nil }

// UpdateDailyProgram changes the name and the periods of a daily program. The attempt succeeds when the device shows
// what the program sets now, or at once if nothing changes now. It fails like CreateDailyProgram, and with NotFound
// (thermostat_daily_program_not_found).
func (t *Thermostat) UpdateDailyProgram(a Attempt, id uuid.UUID, name string, periods []Period) error { return nil }

// DeleteDailyProgram deletes a daily program. It fails with NotFound (thermostat_daily_program_not_found), and with
// Invalid for one that the weekly program uses.
func (t *Thermostat) DeleteDailyProgram(id uuid.UUID) error { return nil }

// SetWeekly replaces the weekly program. Days are indexed by time.Weekday. The attempt succeeds as that of
// UpdateDailyProgram. It fails with NotFound (thermostat_daily_program_not_found).
func (t *Thermostat) SetWeekly(a Attempt, days [7]uuid.UUID) error { return nil }
