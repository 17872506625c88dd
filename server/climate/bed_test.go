package climate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// bed is a thermostat in memory with a clock that the test moves. Each step loads the document, changes it, and stores
// nothing but its Changes, as a server that crashes after each transaction does.
type bed struct {
	testing.TB

	now    time.Time
	zone   *time.Location
	limits capability.Thermostat
	online bool

	// What is stored.
	doc       []byte
	schedules []Schedule

	attempts map[uuid.UUID]string
	log      []string
	events   []Event
}

// standard is what the thermostats of the tests accept.
var standard = capability.Thermostat{
	Modes: []capability.HVACMode{
		capability.Off,
		capability.Heat,
		capability.Cool,
		capability.HeatCool,
		capability.Eco,
	},
	FanModes: []capability.FanMode{capability.FanAuto, capability.FanOn},
	MinHeat:  new(7.0),
	MaxHeat:  new(30.0),
	MinCool:  new(16.0),
	MaxCool:  new(35.0),
	MinDelta: 2.5,
	Step:     0.5,
}

// monday is a Monday at noon.
var monday = time.Date(2027, 6, 7, 12, 0, 0, 0, time.UTC)

func newBed(tb testing.TB) *bed {
	return &bed{
		TB:       tb,
		now:      monday,
		limits:   standard,
		online:   true,
		doc:      []byte("{}"),
		attempts: map[uuid.UUID]string{},
	}
}

// newRead returns a bed whose device heats to 20 °C, with the presets home, away, and sleep, and an empty log.
func newRead(tb testing.TB) *bed {
	b := newBed(tb)
	b.do(func(t *Thermostat) error {
		t.Observe(Observed{Setting: Setting{Fan: capability.FanAuto}.with(heat(20))})
		for _, f := range []PresetFields{
			{Key: "home", Setting: heat(21)},
			{Key: "away", Setting: heat(16)},
			{Key: "sleep", Setting: Setting{Fan: capability.FanOn}.with(heat(18))},
		} {
			if err := t.CreatePreset(f); err != nil {
				return err
			}
		}
		return nil
	})
	b.log = nil
	return b
}

func heat(c float64) Setting { return Setting{Mode: capability.Heat, Heat: &c} }

func cool(c float64) Setting { return Setting{Mode: capability.Cool, Cool: &c} }

func heatCool(h, c float64) Setting {
	return Setting{
		Mode: capability.HeatCool,
		Heat: &h,
		Cool: &c,
	}
}

func fan(m capability.FanMode) Setting { return Setting{Fan: m} }

func (s Setting) with(o Setting) Setting { return o.over(s) }

// load returns the stored thermostat.
func (b *bed) load() *Thermostat {
	t := &Thermostat{
		Limits: b.limits,
		Online: b.online,
		Zone:   b.zone,
		Now:    b.now,
	}
	if err := json.Unmarshal(b.doc, &t.State); err != nil {
		b.Fatal(err)
	}
	for _, s := range b.schedules {
		if s.EndsAt.After(b.now) || s.EndsAt.After(t.State.Baseline.At) {
			t.Schedules = append(t.Schedules, &s)
		}
	}
	return t
}

// try runs one transaction. It stores nothing if f fails.
func (b *bed) try(f func(t *Thermostat) error) error {
	t := b.load()
	before := t.Snapshot()
	if err := f(t); err != nil {
		return err
	}
	c := t.Changes(before)
	if c.State != nil {
		b.doc = c.State
	}
	if again := t.Changes(domain.MustJSON(t.State)); again.State != nil || again.Events != nil || again.Ended != nil {
		b.Errorf("changes are returned twice: %+v", again)
	}
	ended := slices.DeleteFunc(slices.Clone(b.schedules), func(s Schedule) bool {
		return s.EndsAt.After(b.now) || s.EndsAt.After(t.State.Baseline.At)
	})
	b.schedules = ended
	for _, s := range t.Schedules {
		b.schedules = append(b.schedules, *s)
	}
	for _, s := range c.Schedules {
		last := s.Errors[len(s.Errors)-1]
		b.log = append(b.log, fmt.Sprintf("schedule error %s: %s", last.Code, last.Message))
	}
	for _, e := range c.Ended {
		if was, known := b.attempts[e.Attempt]; known && was != "pending" {
			b.Fatalf("attempt %s ends twice: %s, %s", e.Attempt, was, e.ErrorType)
		}
		b.attempts[e.Attempt] = e.ErrorType
		b.log = append(b.log, strings.TrimSpace(fmt.Sprintf("attempt %d ended %s", e.Attempt[15], e.ErrorType)))
	}
	for _, e := range c.Events {
		b.log = append(b.log, describe(e))
	}
	b.events = append(b.events, c.Events...)
	return nil
}

// do is try for a step that must not fail.
func (b *bed) do(f func(t *Thermostat) error) {
	b.Helper()
	if err := b.try(f); err != nil {
		b.Fatal(err)
	}
}

// describe returns an event in short.
func describe(e Event) string {
	f := e.Fields
	out := strings.TrimPrefix(e.Type, "thermostat.")
	for _, field := range []string{
		"method",
		presetField,
		modeField,
		fanField,
		heatField,
		coolField,
		"temperature_celsius",
		"desired_temperature_celsius",
	} {
		if v, ok := f[field]; ok {
			out += fmt.Sprintf(" %v", v)
		}
	}
	if f["is_fallback_climate_preset"] == true {
		out += " as fallback"
	}
	if f["thermostat_schedule_id"] != nil {
		out += " by schedule"
	}
	return out
}

// expect compares what has happened since the last call.
func (b *bed) expect(want ...string) {
	b.Helper()
	if !slices.Equal(b.log, want) {
		b.Errorf("happened:\n\t%s\nwant:\n\t%s", strings.Join(b.log, "\n\t"), strings.Join(want, "\n\t"))
	}
	b.log = nil
}

// attempt returns a new attempt with the number n.
func (b *bed) attempt(n byte) Attempt {
	id := uuid.UUID{15: n}
	b.attempts[id] = "pending"
	return Attempt{id, b.now.Add(10 * time.Minute)}
}

func (b *bed) command(n byte, s Setting) {
	b.Helper()
	b.do(func(t *Thermostat) error { return t.Command(b.attempt(n), s) })
}

func (b *bed) activate(n byte, key string) {
	b.Helper()
	b.do(func(t *Thermostat) error { return t.Activate(b.attempt(n), key) })
}

// schedule adds or replaces the schedule n, which starts and ends after a number of minutes.
func (b *bed) schedule(n byte, preset string, starts, ends int, change ...func(*Schedule)) {
	b.Helper()
	s := Schedule{
		ID:       uuid.UUID{14: 1, 15: n},
		Preset:   preset,
		StartsAt: b.now.Add(time.Duration(starts) * time.Minute),
		EndsAt:   b.now.Add(time.Duration(ends) * time.Minute),
	}
	for _, f := range change {
		f(&s)
	}
	b.do(func(t *Thermostat) error { return t.PutSchedule(&s) })
}

// allow lets changes at the device hold for a time; 0: without a limit.
func allow(minutes int) func(*Schedule) {
	return func(s *Schedule) {
		s.OverrideAllowed = true
		if minutes > 0 {
			s.MaxOverride = &minutes
		}
	}
}

func (b *bed) fallback(key string) {
	b.Helper()
	b.do(func(t *Thermostat) error { return t.SetFallback(key) })
}

// shows lets a read show a setting.
func (b *bed) shows(s Setting) {
	b.do(func(t *Thermostat) error {
		s = s.over(t.State.Observed.Setting)
		t.Observe(Observed{Setting: s, Presets: t.State.Observed.Presets})
		return nil
	})
}

// feels lets a read show a temperature.
func (b *bed) feels(temperature float64) {
	b.do(func(t *Thermostat) error {
		t.Observe(Observed{Setting: t.State.Observed.Setting, Temperature: &temperature})
		return nil
	})
}

// sends plans, and expects what is sent. It is sent with the outcome, if there is one.
func (b *bed) sends(want Setting, outcomes ...Outcome) {
	b.Helper()
	var got Setting
	b.do(func(t *Thermostat) error {
		t.fresh = b.online && t.State.Observed != nil // as after a read that shows nothing new
		if p := t.Plan(); p.Send != nil {
			got = *p.Send
			t.Start(got)
		}
		return nil
	})
	if !got.equal(want) {
		b.Errorf("%s is sent, want %s", got.text(), want.text())
	}
	for _, o := range outcomes {
		b.do(func(t *Thermostat) error { t.Record(got, o); return nil })
	}
}

// idle expects that nothing is sent, and when to look again; 0: never.
func (b *bed) idle(due time.Duration) {
	b.Helper()
	var p Plan
	b.do(func(t *Thermostat) error {
		t.fresh = b.online && t.State.Observed != nil
		p = t.Plan()
		return nil
	})
	if p.Send != nil {
		b.Errorf("%s is sent, want nothing", p.Send.text())
	}
	if p.Due == nil != (due == 0) || p.Due != nil && p.Due.Sub(b.now) != due {
		b.Errorf("due in %v, want %v", domain.Value(p.Due).Sub(b.now), due)
	}
}

// sets sends a setting, which the device confirms and the next read shows.
func (b *bed) sets(want Setting) {
	b.Helper()
	b.sends(want, Outcome{State: Accepted})
	b.shows(want)
}

func (b *bed) after(d time.Duration) { b.now = b.now.Add(d) }

func (s Setting) text() string {
	return fmt.Sprintf("%s heat %v cool %v fan %s", s.Mode, domain.Value(s.Heat), domain.Value(s.Cool), s.Fan)
}
