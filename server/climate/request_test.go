package climate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestRequests_Errors(t *testing.T) {
	t.Parallel()
	const unknownProgram = 9
	program := func(periods ...Period) func(*Thermostat) error {
		return func(t *Thermostat) error {
			return t.CreateDailyProgram(DailyProgram{ID: uuid.UUID{8}, Name: "new", Periods: periods})
		}
	}
	schedule := func(change func(*Schedule)) func(*Thermostat) error {
		return func(t *Thermostat) error {
			s := &Schedule{
				ID:       uuid.UUID{7},
				Preset:   "home",
				StartsAt: t.Now.Add(time.Hour),
				EndsAt:   t.Now.Add(2 * time.Hour),
			}
			change(s)
			return t.PutSchedule(s)
		}
	}
	command := func(s Setting) func(*Thermostat) error {
		return func(t *Thermostat) error { return t.Command(Attempt{}, s) }
	}
	create := func(f PresetFields) func(*Thermostat) error {
		return func(t *Thermostat) error { return t.CreatePreset(f) }
	}
	minutes := func(n int) func(*Schedule) { return func(s *Schedule) { s.MaxOverride = &n } }
	for name, c := range map[string]struct {
		request func(*Thermostat) error
		// want is the type, the field, and the message.
		want string
	}{
		"nothing": {command(Setting{}), "invalid_input hvac_mode_setting: Nothing is set. Choose a mode"},
		"an unknown mode": {
			command(Setting{Mode: "dry"}),
			"invalid_input hvac_mode_setting: The thermostat has no mode dry. Choose one of off, heat, cool, heat_cool, eco",
		},
		"an unknown fan mode": {
			command(fan(capability.FanCirculate)),
			"invalid_input fan_mode_setting: The thermostat has no fan mode circulate. Choose one of auto, on",
		},
		"a fan mode of a thermostat without a fan": {
			func(t *Thermostat) error {
				t.Limits.FanModes = nil
				return t.Command(Attempt{}, fan(capability.FanOn))
			},
			"invalid_input fan_mode_setting: The thermostat has no fan mode on. It has none",
		},
		"no set point": {
			command(Setting{Mode: capability.Heat}),
			"invalid_input heating_set_point_celsius: Must specify either heating_set_point_celsius or heating_set_point_fahr",
		},
		"a set point too many": {
			command(Setting{
				Mode: capability.Heat,
				Heat: new(20.0),
				Cool: new(25.0),
			}),
			"invalid_input cooling_set_point_celsius: The mode heat has no cooling_set_point. Leave it out",
		},
		"a set point without a mode": {
			command(Setting{Heat: new(20.0)}),
			"invalid_input hvac_mode_setting: A set point needs a mode",
		},
		"too hot": {
			command(heat(30.02)),
			"invalid_input heating_set_point_celsius: The heating set point is 30.02 °C (86.04 °F). " +
				"Choose at most 30 °C (86 °F)",
		},
		"too cold": {
			command(cool(15)),
			"invalid_input cooling_set_point_celsius: The cooling set point is 15 °C (59 °F). Choose at least 16 °C (60.8 °F)",
		},
		"too close": {
			command(heatCool(20, 22)),
			"invalid_heating_cooling_delta cooling_set_point_celsius: The cooling set point must be at least 2.5 °C (4.5 °F)",
		},
		"an unknown preset": {
			func(t *Thermostat) error { return t.Activate(Attempt{}, "party") },
			"climate_preset_not_found : Could not find a climate preset",
		},
		"a preset without a setting": {
			func(t *Thermostat) error { return t.Activate(Attempt{}, "smart") },
			`invalid_input climate_preset_key: The climate preset "smart" has no setting`,
		},
		"a preset of the device that the device does not accept": {
			func(t *Thermostat) error { return t.Activate(Attempt{}, "broken") },
			"invalid_input heating_set_point_celsius: The heating set point is 99 °C",
		},
		"a preset key twice":         {create(PresetFields{Key: "home"}), "duplicate_climate_preset climate_preset_key: The thermostat"},
		"a preset key of the device": {create(PresetFields{Key: "smart"}), "duplicate_climate_preset climate_preset_key"},
		"no preset key":              {create(PresetFields{Key: " "}), "invalid_input climate_preset_key: The climate preset key"},
		"a preset name that disguises itself": {
			create(PresetFields{
				Key:     "x",
				Name:    new("a\u202eb"),
				SetName: true,
				Setting: heat(20),
			}),
			"invalid_input name: The name contains a character",
		},
		"a preset without a setting of the workspace": {create(PresetFields{Key: "x"}), "invalid_input hvac_mode_setting: Nothing"},
		"eco with a set point": {
			create(PresetFields{Key: "x", Setting: Setting{Mode: capability.Eco, Heat: new(20.0)}}),
			"invalid_input hvac_mode_setting: The mode eco has no set points. Leave them out",
		},
		"a change of an unknown preset": {
			func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "party"}) },
			"climate_preset_not_found",
		},
		"a bad change of a preset": {
			func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "home", Setting: heat(99)}) },
			"invalid_input heating_set_point_celsius",
		},
		"a change of a preset of the device": {
			func(t *Thermostat) error { return t.UpdatePreset(PresetFields{Key: "smart"}) },
			"invalid_input climate_preset_key: The climate preset belongs to the thermostat itself. It can only be changed",
		},
		"deletion of an unknown preset": {
			func(t *Thermostat) error { return t.DeletePreset("party") },
			"climate_preset_not_found",
		},
		"deletion of a preset in a program": {
			func(t *Thermostat) error { return t.DeletePreset("sleep") },
			`invalid_input climate_preset_key: The climate preset is in use by the daily program "day" (01`,
		},
		"deletion of a preset in a schedule": {
			func(t *Thermostat) error {
				if err := schedule(func(*Schedule) {})(t); err != nil {
					return err
				}
				return t.DeletePreset("home")
			},
			"invalid_input climate_preset_key: The climate preset is in use by the thermostat schedule 0",
		},
		"an unknown fallback": {
			func(t *Thermostat) error { return t.SetFallback("party") },
			"climate_preset_not_found",
		},
		"a threshold upside down": {
			func(t *Thermostat) error { return t.SetThreshold(Threshold{new(20.0), new(20.0)}) },
			"invalid_input lower_limit_celsius: The lower limit must be below the upper limit",
		},
		"a schedule of an unknown preset": {
			schedule(func(s *Schedule) { s.Preset = "party" }),
			"climate_preset_not_found",
		},
		"a schedule that ends first": {
			schedule(func(s *Schedule) { s.EndsAt = s.StartsAt }),
			"invalid_input ends_at: The schedule ends before it starts",
		},
		"a schedule in the past": {
			schedule(func(s *Schedule) { s.StartsAt, s.EndsAt = monday.Add(-time.Hour), monday }),
			"invalid_input ends_at: The end is in the past",
		},
		"a schedule at the time of another": {
			schedule(func(s *Schedule) { s.StartsAt = monday.Add(3 * time.Hour); s.EndsAt = monday.Add(4 * time.Hour) }),
			"invalid_input starts_at: Another schedule",
		},
		"an override of no time":    {schedule(minutes(0)), "invalid_input max_override_period_minutes: Must be at least 1"},
		"a program without periods": {program(), "invalid_input periods: A daily program has 1 to 10 periods, not 0"},
		"a program with many periods": {
			program(make([]Period, 11)...),
			"invalid_input periods: A daily program has 1 to 10 periods, not 11",
		},
		"a program that starts late": {
			program(Period{"00:05:00", "home"}),
			"invalid_input periods: The first period starts at 00:05:00. It must",
		},
		"a program with an odd time": {
			program(Period{"00:00:00", "home"}, Period{"07:01:00", "home"}),
			"invalid_input periods: Period 2 starts at 07:01:00. Choose a multiple of 5 minutes",
		},
		"a program with seconds": {
			program(Period{"00:00:00", "home"}, Period{"07:00:30", "home"}),
			"invalid_input periods: Period 2 starts at 07:00:30. Choose a multiple",
		},
		"a program with no time": {
			program(Period{"0:00:00", "home"}),
			`invalid_input periods: Period 1 starts at "0:00:00". Write the time like 06:30:00`,
		},
		"a program in disorder": {
			program(Period{"00:00:00", "home"}, Period{"08:00:00", "home"}, Period{"08:00:00", "home"}),
			"invalid_input periods: Period 3 starts at 08:00:00, which is not after period 2",
		},
		"a program with an unknown preset": {program(Period{"00:00:00", "party"}), "climate_preset_not_found"},
		"a program with a preset without a setting": {
			program(Period{"00:00:00", "smart"}),
			"invalid_input periods: The climate preset",
		},
		"a program without a name": {
			func(t *Thermostat) error {
				return t.CreateDailyProgram(DailyProgram{Periods: []Period{{"00:00:00", "home"}}})
			},
			"invalid_input name: The name is blank",
		},
		"a change of an unknown program": {
			func(t *Thermostat) error {
				return t.UpdateDailyProgram(Attempt{}, uuid.UUID{unknownProgram}, "x", nil)
			},
			"thermostat_daily_program_not_found",
		},
		"a bad change of a program": {
			func(t *Thermostat) error { return t.UpdateDailyProgram(Attempt{}, uuid.UUID{1}, "x", nil) },
			"invalid_input periods",
		},
		"deletion of an unknown program": {
			func(t *Thermostat) error { return t.DeleteDailyProgram(uuid.UUID{unknownProgram}) },
			"thermostat_daily_program_not_found",
		},
		"deletion of a program in use": {
			func(t *Thermostat) error { return t.DeleteDailyProgram(uuid.UUID{1}) },
			"invalid_input thermostat_daily_program_id: The weekly program uses this daily program",
		},
		"a week with an unknown program": {
			func(t *Thermostat) error { return t.SetWeekly(Attempt{}, [7]uuid.UUID{{unknownProgram}}) },
			"thermostat_daily_program_not_found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := crowded(t)
			before := string(b.doc)
			err := b.try(c.request)
			e, ok := domain.AsError(err)
			if !ok {
				t.Fatalf("error: %v", err)
			}
			if got := fmt.Sprintf("%s %s: %s", e.Type, e.Field, e.Message); !strings.HasPrefix(got, c.want) {
				t.Errorf("error %q, want %q", got, c.want)
			}
			if string(b.doc) != before {
				t.Error("the state has changed")
			}
		})
	}
}

// crowded returns a bed with something of each kind.
func crowded(tb testing.TB) *bed {
	b := newRead(tb)
	b.do(func(t *Thermostat) error {
		t.Observe(Observed{
			Setting: heat(20),
			Presets: []VendorPreset{{Key: "smart", Name: "Smart"}, {"broken", "Broken", heat(99)}},
		})
		return t.CreateDailyProgram(DailyProgram{
			ID:      uuid.UUID{1},
			Name:    "day",
			Periods: []Period{{"00:00:00", "sleep"}},
		})
	})
	b.do(func(t *Thermostat) error { return t.SetWeekly(b.attempt(1), [7]uuid.UUID{{1}}) })
	b.fallback("away")
	b.schedule(1, "home", 180, 240)
	b.log = nil
	return b
}

func TestDeletePreset_Fallback(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.fallback("away")
	b.do(func(t *Thermostat) error { return t.DeletePreset("home") })
	if key := b.load().State.Fallback; key != "away" {
		t.Errorf("the fallback is %q", key)
	}
	b.do(func(t *Thermostat) error { return t.DeletePreset("away") })
	if key := b.load().State.Fallback; key != "" {
		t.Errorf("the fallback is %q", key)
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	var err error
	for i := range MaxPresets {
		err = b.try(func(t *Thermostat) error {
			return t.CreatePreset(PresetFields{Key: fmt.Sprint(i), Setting: heat(20)})
		})
	}
	if err == nil || !strings.Contains(err.Error(), "has 100 climate presets. Delete one first") {
		t.Errorf("error %v", err)
	}
	for i := range MaxDailyPrograms + 1 {
		err = b.try(func(t *Thermostat) error {
			return t.CreateDailyProgram(DailyProgram{
				ID:      uuid.UUID{byte(i)},
				Name:    "day",
				Periods: []Period{{"00:00:00", "home"}},
			})
		})
	}
	if err == nil || !strings.Contains(err.Error(), "has 100 daily programs. Delete one first") {
		t.Errorf("error %v", err)
	}
}

func TestUpdatePreset_KeepsWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.do(func(t *Thermostat) error {
		return t.CreatePreset(PresetFields{
			Key:                   "day",
			Name:                  new("Day"),
			SetName:               true,
			Mode:                  "home",
			Setting:               heatCool(18, 25).with(fan(capability.FanAuto)),
			ManualOverrideAllowed: new(false),
		})
	})
	for _, c := range []struct {
		change PresetFields
		want   Setting
		name   string
		mode   string
	}{
		{
			change: PresetFields{},
			want:   heatCool(18, 25).with(fan(capability.FanAuto)),
			name:   "Day",
			mode:   "home",
		},
		{
			change: PresetFields{Setting: Setting{Cool: new(24.0)}, Mode: "away"},
			want:   heatCool(18, 24).with(fan(capability.FanAuto)),
			name:   "Day",
			mode:   "away",
		},
		{
			change: PresetFields{Setting: Setting{Mode: capability.Eco}, SetName: true},
			want:   Setting{Mode: capability.Eco, Fan: capability.FanAuto},
			name:   "day", // the key
			mode:   "away",
		},
	} {
		c.change.Key = "day"
		b.do(func(t *Thermostat) error { return t.UpdatePreset(c.change) })
		p := b.load().preset("day")
		if !p.Setting.equal(c.want) || p.DisplayName() != c.name || p.Mode != c.mode ||
			p.ManualOverrideAllowed || !p.CanEdit || !p.CanDelete || !p.CanUseWithDailyPrograms {
			t.Errorf("after %+v: %+v", c.change, p)
		}
	}
}

func TestSchedule_StartInPastIsNow(t *testing.T) {
	t.Parallel()
	b := newRead(t)
	b.schedule(1, "home", -60, 60)
	s := b.load().ActiveSchedule()
	if s == nil || !s.StartsAt.Equal(b.now) {
		t.Fatalf("active: %+v", s)
	}
	b.after(2 * time.Hour)
	b.idle(0)
	b.schedules = append(b.schedules, *s)
	s.Name = new("renamed after its end")
	b.do(func(t *Thermostat) error { t.Schedules = append(t.Schedules, &b.schedules[0]); return t.PutSchedule(s) })
}

func TestSchedule_KeepsLatestErrors(t *testing.T) {
	t.Parallel()
	th := &Thermostat{}
	s := &Schedule{}
	for i := range 20 {
		th.addScheduleError(s, "code", fmt.Sprint(i))
		th.addScheduleError(s, "code", fmt.Sprint(i))
	}
	if len(s.Errors) != maxScheduleErrors || s.Errors[9].Message != "19" || s.Errors[0].Message != "10" ||
		len(th.Changes(th.Snapshot()).Schedules) != 1 {
		t.Errorf("errors: %+v", s.Errors)
	}
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step, off float64
		want      bool
	}{
		{step: 0, off: 0.28, want: true},
		{step: 0, off: 0.29, want: false},
		{step: 0.1, off: 0.06, want: true},
		{step: 0.1, off: 0.07, want: false},
		{step: 0.5, off: -0.25, want: true},
		{step: 1, off: 0.5, want: true},
		{step: 1, off: 0.51, want: false},
	} {
		th := Thermostat{Limits: capability.Thermostat{Step: c.step}}
		if got := th.shows(heat(20), heat(20+c.off)); got != c.want {
			t.Errorf("step %v: %v off is shown: %v", c.step, c.off, got)
		}
	}
}

func TestDegrees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ celsius, fahrenheit float64 }{{0, 32}, {-40, -40}, {21.5, 70.7}} {
		if got := Fahrenheit(c.celsius); math.Abs(got-c.fahrenheit) > 1e-9 {
			t.Errorf("%v °C is %v °F", c.celsius, got)
		}
		if got := Celsius(c.fahrenheit); math.Abs(got-c.celsius) > 1e-9 {
			t.Errorf("%v °F is %v °C", c.fahrenheit, got)
		}
	}
	if Round(20.005001) != 20.01 {
		t.Error("not rounded")
	}
}
