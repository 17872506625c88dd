package climate

import (
	"time"

	"github.com/google/uuid"
)

// baseline returns what time alone selects, and when it may change next; nil: never.
func (t *Thermostat) baseline() (now Baseline, next *time.Time) {
	earlier := func(at time.Time) {
		if at.After(t.Now) && (next == nil || at.Before(*next)) {
			next = &at
		}
	}
	for _, s := range t.Schedules {
		earlier(s.StartsAt)
		earlier(s.EndsAt)
	}
	start, preset, change := t.period()
	earlier(change)
	now = Baseline{
		Period: start,
		Preset: preset,
		At:     t.Now,
	}
	if s := t.ActiveSchedule(); s != nil {
		now = Baseline{
			Schedule:        s.ID,
			Preset:          s.Preset,
			OverrideRefused: !s.OverrideAllowed,
			At:              t.Now,
		}
	}
	return now, next
}

// advance follows a transition, and returns when the next one may happen; nil: never.
func (t *Thermostat) advance() (next *time.Time) {
	now, next := t.baseline()
	was := t.State.Baseline
	none := now.Preset == ""
	missed := t.hasMissedSchedule()
	if now.Schedule == was.Schedule && now.Period.Equal(was.Period) && now.Preset == was.Preset && !missed {
		t.State.Baseline.OverrideRefused = now.OverrideRefused
		return next
	}
	t.State.Baseline = now
	switch {
	case now.Schedule != uuid.Nil:
		t.wantPreset(Desired{
			Source:   FromSchedule,
			Preset:   now.Preset,
			Schedule: now.Schedule,
		})
	case !none:
		t.wantPreset(Desired{Source: FromProgram, Preset: now.Preset})
	case (was.Schedule != uuid.Nil || missed) && t.State.Fallback != "":
		t.wantPreset(Desired{Source: FromFallback, Preset: t.State.Fallback})
	default:
		t.endBaseline()
	}
	return next
}

// endBaseline follows a transition to nothing: what the device is set to stays. A request that the device has not
// confirmed stays wanted.
func (t *Thermostat) endBaseline() {
	d := t.State.Desired
	requested := d != nil && (d.Source == FromCommand || d.Source == FromActivation)
	if t.State.Override != nil || !requested {
		t.forget("The schedule or program ended before the thermostat confirmed its setting.")
	}
}

// hasMissedSchedule reports whether a schedule has started and ended since the last transition. The server did not run
// in between.
func (t *Thermostat) hasMissedSchedule() bool {
	for _, s := range t.Schedules {
		if s.StartsAt.After(t.State.Baseline.At) && !s.EndsAt.After(t.Now) {
			return true
		}
	}
	return false
}
