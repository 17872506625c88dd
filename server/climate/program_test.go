package climate

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestFirstMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone  string
		clock string
		want  string
	}{
		"an ordinary day":              {"Europe/Berlin", "2027-06-07 06:30", "2027-06-07T04:30:00Z"},
		"UTC":                          {"UTC", "2027-06-07 06:30", "2027-06-07T06:30:00Z"},
		"before the gap":               {"Europe/Berlin", "2027-03-28 01:55", "2027-03-28T00:55:00Z"},
		"in the gap":                   {"Europe/Berlin", "2027-03-28 02:30", "2027-03-28T01:00:00Z"},
		"after the gap":                {"Europe/Berlin", "2027-03-28 03:00", "2027-03-28T01:00:00Z"},
		"the next day":                 {"Europe/Berlin", "2027-03-29 02:30", "2027-03-29T00:30:00Z"},
		"in the gap, west":             {"America/New_York", "2027-03-14 02:30", "2027-03-14T07:00:00Z"},
		"twice: the first time counts": {"Europe/Berlin", "2027-10-31 02:30", "2027-10-31T00:30:00Z"},
		"twice, west":                  {"America/New_York", "2027-11-07 01:30", "2027-11-07T05:30:00Z"},
		"after it":                     {"America/New_York", "2027-11-07 02:00", "2027-11-07T07:00:00Z"},
		"a day without midnight":       {"Africa/Cairo", "2027-04-30 00:00", "2027-04-29T22:00:00Z"},
		"a gap of half an hour":        {"Australia/Lord_Howe", "2027-10-03 02:15", "2027-10-02T15:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, err := time.Parse("2006-01-02 15:04", c.clock)
			if err != nil {
				t.Fatal(err)
			}
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got := firstMoment(clock, zone).Format(time.RFC3339); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// week returns a bed in Berlin whose week has a program from Monday to Friday.
func week(tb testing.TB) *bed {
	b := newRead(tb)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		tb.Fatal(err)
	}
	b.zone = zone
	b.do(func(t *Thermostat) error {
		return t.CreateDailyProgram(DailyProgram{
			ID:      uuid.UUID{1},
			Name:    "workday",
			Periods: []Period{{"00:00:00", "sleep"}, {"06:30:00", "home"}, {"22:00:00", "sleep"}},
		})
	})
	return b
}

var (
	workdays  = [7]uuid.UUID{{}, {1}, {1}, {1}, {1}, {1}, {}}
	sleepSet  = heat(18).with(fan(capability.FanOn))
	berlinOff = 2 * time.Hour
)

func (b *bed) setWeekly(n byte, days [7]uuid.UUID) {
	b.Helper()
	b.do(func(t *Thermostat) error { return t.SetWeekly(b.attempt(n), days) })
}

func TestProgram_FollowsTheWeek(t *testing.T) {
	t.Parallel()
	b := week(t)
	b.setWeekly(1, workdays)
	b.expect()
	b.sets(heat(21))
	b.expect("attempt 1 ended", "climate_preset_activated home")
	b.idle(10*time.Hour - berlinOff)
	b.shows(heat(24)) // holds until the next period
	b.idle(10*time.Hour - berlinOff)
	if !b.load().OverrideActive() {
		t.Error("no override is active")
	}
	b.after(10*time.Hour - berlinOff)
	b.sets(sleepSet)
	b.idle(2 * time.Hour)
	b.after(2 * time.Hour)
	b.idle(6*time.Hour + 30*time.Minute) // sleep again: nothing to send
	b.expect(
		"manually_adjusted external heat auto 24",
		"climate_preset_activated sleep",
		"climate_preset_activated sleep",
	)
	b.after(6*time.Hour + 30*time.Minute)
	b.command(2, cool(24)) // holds until the next period, too
	b.sets(cool(24))
	b.idle(15*time.Hour + 30*time.Minute)
	b.expect("attempt 2 ended", "manually_adjusted seam cool on 24")
	if !b.load().OverrideActive() {
		t.Error("no override is active")
	}
	b.after(15*time.Hour + 30*time.Minute)
	b.sets(heat(18))                       // the fan is on already
	b.after(4*24*time.Hour - 22*time.Hour) // Saturday has no program
	b.log = nil
	b.idle(24 * time.Hour)
	b.shows(heat(24))
	b.idle(24 * time.Hour)
	if b.load().OverrideActive() {
		t.Error("an override is active without a program")
	}
	b.expect("manually_adjusted external heat on 24")
}

func TestProgram_ScheduleIsStronger(t *testing.T) {
	t.Parallel()
	b := week(t)
	b.fallback("sleep")
	b.setWeekly(1, workdays)
	b.sets(heat(21))
	b.schedule(1, "away", 0, 60)
	b.sets(heat(16))
	b.setWeekly(2, [7]uuid.UUID{}) // changes nothing now
	b.setWeekly(3, workdays)
	b.expect("attempt 1 ended", "climate_preset_activated home", "climate_preset_activated away by schedule",
		"attempt 2 ended", "attempt 3 ended")
	b.after(time.Hour)
	b.sets(heat(21)) // the program, not the fallback
	b.expect("climate_preset_activated home")
	b.schedule(2, "away", 10, 20)
	b.command(4, cool(25))
	b.sets(cool(25))
	b.expect("attempt 4 ended", "manually_adjusted seam cool auto 25")
	b.after(time.Hour) // the server missed the schedule, which would have ended the command
	b.sets(heat(21))
	b.expect("climate_preset_activated home")
}

func TestProgram_Pushes(t *testing.T) {
	t.Parallel()
	periods := func(day string) []Period { return []Period{{"00:00:00", day}, {"22:00:00", "sleep"}} }
	update := func(n byte, day string) func(*bed) {
		return func(b *bed) {
			b.do(func(t *Thermostat) error {
				return t.UpdateDailyProgram(b.attempt(n), uuid.UUID{1}, "changed", periods(day))
			})
		}
	}
	for name, c := range map[string]struct {
		requests []func(*bed)
		want     []string
		sent     Setting
	}{
		"of a program that is not in the week": {[]func(*bed){update(1, "away")}, []string{"attempt 1 ended"}, Setting{}},
		"of the week": {
			[]func(*bed){func(b *bed) { b.setWeekly(1, workdays) }},
			nil,
			heat(21),
		},
		"of a week without today": {
			[]func(*bed){func(b *bed) { b.setWeekly(1, [7]uuid.UUID{{1}}) }},
			[]string{"attempt 1 ended"},
			Setting{},
		},
		"of an empty week": {
			[]func(*bed){func(b *bed) { b.setWeekly(1, workdays); b.setWeekly(2, [7]uuid.UUID{}) }},
			[]string{"attempt 1 ended", "attempt 2 ended"},
			Setting{},
		},
		"of what is replaced by another push": {
			[]func(*bed){func(b *bed) { b.setWeekly(1, workdays) }, update(2, "away")},
			[]string{"attempt 1 ended"},
			heat(16),
		},
		"of what is replaced by a command": {
			[]func(*bed){func(b *bed) { b.setWeekly(1, workdays); b.command(2, cool(25)) }},
			[]string{"attempt 1 ended"},
			cool(25),
		},
		"of a preset that is gone": {
			[]func(*bed){func(b *bed) {
				b.do(func(t *Thermostat) error { t.State.Presets = t.State.Presets[1:]; return nil })
				b.setWeekly(1, workdays)
			}},
			[]string{"attempt 1 ended device_refused"},
			Setting{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := week(t)
			for _, f := range c.requests {
				f(b)
			}
			b.expect(c.want...)
			b.sends(c.sent)
		})
	}
}

func TestProgram_DeleteUnused(t *testing.T) {
	t.Parallel()
	b := week(t)
	b.do(func(t *Thermostat) error { return t.DeleteDailyProgram(uuid.UUID{1}) })
	if n := len(b.load().State.DailyPrograms); n != 0 {
		t.Errorf("%d programs are left", n)
	}
	b.do(func(t *Thermostat) error { return t.DeletePreset("sleep") })
}
