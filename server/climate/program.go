package climate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
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

// CreateDailyProgram adds a daily program. It fails with Invalid at MaxDailyPrograms, for a name that domain.CheckLabel
// refuses, and for periods that do not begin at 00:00:00, do not ascend, are more than MaxPeriods, or start at no
// multiple of PeriodPrecision. It fails with NotFound (climate_preset_not_found).
func (t *Thermostat) CreateDailyProgram(p DailyProgram) error {
	if len(t.State.DailyPrograms) >= MaxDailyPrograms {
		return domain.Invalidf("", "The thermostat has %d daily programs. Delete one first", MaxDailyPrograms)
	}
	if err := domain.All(domain.CheckLabel("name", p.Name), t.checkPeriods(p.Periods)); err != nil {
		return err
	}
	p.Periods = slices.Clone(p.Periods)
	t.State.DailyPrograms = append(slices.Clip(t.State.DailyPrograms), p)
	return nil
}

// UpdateDailyProgram changes the name and the periods of a daily program. The attempt succeeds when the device shows
// what the program sets now, or at once if nothing changes now. It fails like CreateDailyProgram, and with NotFound
// (thermostat_daily_program_not_found).
func (t *Thermostat) UpdateDailyProgram(a Attempt, id uuid.UUID, name string, periods []Period) error {
	i := t.dailyProgram(id)
	if i < 0 {
		return programNotFound(id)
	}
	if err := domain.All(domain.CheckLabel("name", name), t.checkPeriods(periods)); err != nil {
		return err
	}
	t.advance()
	t.State.DailyPrograms = slices.Clone(t.State.DailyPrograms)
	p := &t.State.DailyPrograms[i]
	p.Name, p.Periods = name, slices.Clone(periods)
	t.push(a)
	return nil
}

// DeleteDailyProgram deletes a daily program. It fails with NotFound (thermostat_daily_program_not_found), and with
// Invalid for one that the weekly program uses.
func (t *Thermostat) DeleteDailyProgram(id uuid.UUID) error {
	i := t.dailyProgram(id)
	switch {
	case i < 0:
		return programNotFound(id)
	case t.State.Weekly != nil && slices.Contains(t.State.Weekly.Days[:], id):
		return domain.Invalidf(programField, "The weekly program uses this daily program. Change the week first")
	}
	t.State.DailyPrograms = slices.Delete(slices.Clone(t.State.DailyPrograms), i, i+1)
	return nil
}

// SetWeekly replaces the weekly program. Days are indexed by time.Weekday. The attempt succeeds as that of
// UpdateDailyProgram. It fails with NotFound (thermostat_daily_program_not_found).
func (t *Thermostat) SetWeekly(a Attempt, days [7]uuid.UUID) error {
	for _, id := range days {
		if id != uuid.Nil && t.dailyProgram(id) < 0 {
			return programNotFound(id)
		}
	}
	t.advance()
	t.State.Weekly = &WeeklyProgram{Days: days, CreatedAt: t.Now}
	if days == [7]uuid.UUID{} {
		t.State.Weekly = nil
	}
	t.push(a)
	return nil
}

// push ends the attempt of a changed program, or lets it wait for what the program sets now.
func (t *Thermostat) push(a Attempt) {
	was := t.State.Baseline
	t.advance()
	d := t.State.Desired
	switch {
	case t.State.Baseline == was || d == nil || d.Source != FromProgram:
		t.changes.Ended = append(t.changes.Ended, Ended{Attempt: a.ID})
	case d.Refusal != "":
		t.changes.Ended = append(t.changes.Ended, Ended{
			Attempt:   a.ID,
			ErrorType: refused,
			Message:   d.Refusal,
		})
	default:
		t.State.Waiting = append(slices.Clip(t.State.Waiting), Waiting{
			Attempt: a,
			Setting: d.Setting,
			Push:    true,
		})
	}
}

const programField = "thermostat_daily_program_id"

func programNotFound(id uuid.UUID) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "thermostat_daily_program_not_found",
		Message: "Could not find a daily program of the thermostat with this thermostat_daily_program_id.",
		Data:    map[string]any{programField: id.String()},
	}
}

// dailyProgram returns the index of a daily program, or -1.
func (t *Thermostat) dailyProgram(id uuid.UUID) int {
	return slices.IndexFunc(t.State.DailyPrograms, func(p DailyProgram) bool { return p.ID == id })
}

func (t *Thermostat) checkPeriods(periods []Period) error {
	const field = "periods"
	if len(periods) == 0 || len(periods) > MaxPeriods {
		return domain.Invalidf(field, "A daily program has 1 to %d periods, not %d", MaxPeriods, len(periods))
	}
	last := time.Duration(-1)
	for i, p := range periods {
		at, err := timeOfDay(p.StartsAtTime)
		switch {
		case err != nil:
			return domain.Invalidf(field, "Period %d starts at %q. Write the time like 06:30:00", i+1, p.StartsAtTime)
		case i == 0 && at != 0:
			return domain.Invalidf(field, "The first period starts at %s. It must start at 00:00:00", p.StartsAtTime)
		case at%(PeriodPrecision*time.Minute) != 0:
			return domain.Invalidf(field, "Period %d starts at %s. Choose a multiple of %d minutes",
				i+1, p.StartsAtTime, PeriodPrecision)
		case at <= last:
			return domain.Invalidf(field, "Period %d starts at %s, which is not after period %d. Sort the periods",
				i+1, p.StartsAtTime, i)
		}
		if err := t.checkUsable(field, p.Preset); err != nil {
			return err
		}
		last = at
	}
	return nil
}

// timeOfDay parses HH:MM:SS.
func timeOfDay(text string) (time.Duration, error) {
	at, err := time.Parse(time.TimeOnly, text)
	if err != nil || len(text) != len(time.TimeOnly) {
		return 0, fmt.Errorf("not a time: %q", text)
	}
	return at.Sub(at.Truncate(24 * time.Hour)), nil
}

// period returns the period of the weekly program that is in effect, with its start; zero: none. next is the moment of
// the next period or day; zero: there is no weekly program.
func (t *Thermostat) period() (start time.Time, preset string, next time.Time) {
	if t.State.Weekly == nil {
		return time.Time{}, "", time.Time{}
	}
	zone := cmp.Or(t.Zone, time.UTC)
	y, m, d := t.Now.In(zone).Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	next = firstMoment(today.AddDate(0, 0, 1), zone)
	i := t.dailyProgram(t.State.Weekly.Days[today.Weekday()])
	if i < 0 {
		return time.Time{}, "", next
	}
	for _, p := range t.State.DailyPrograms[i].Periods {
		at, _ := timeOfDay(p.StartsAtTime)
		switch starts := firstMoment(today.Add(at), zone); {
		case !starts.After(t.Now):
			start, preset = starts, p.Preset
		case starts.Before(next):
			next = starts
		}
	}
	return start, preset, next
}

// firstMoment returns the first moment at which the clock in the zone shows a date and time, which is passed as if in
// UTC. If the clock skips that time, it returns the next moment.
func firstMoment(clock time.Time, zone *time.Location) time.Time {
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// The offsets a day before and a day after are those on both sides of a change of the clock.
	before, after := offset(clock.AddDate(0, 0, -1)), offset(clock.AddDate(0, 0, 1))
	early, late := clock.Add(-max(before, after)), clock.Add(-min(before, after))
	switch {
	case offset(early) == max(before, after):
		return early
	case offset(late) == min(before, after):
		return late
	}
	change, _ := late.In(zone).ZoneBounds() // late is after the change that skips the time
	return change.UTC()
}
