package climate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// unchanged is how far a set point may move between two reads without being a change, in °C.
const unchanged = 0.03

// Observe records what a read of the device shows. It confirms the desired setting, notices changes at the device, and
// compares the temperature with set points and the threshold. The setting of a device that is not Online is ignored:
// the vendor only remembers it.
func (t *Thermostat) Observe(o Observed) {
	was := t.State.Observed
	t.fresh = t.Online && !t.lags(o.Setting)
	o.At = t.Now
	if was != nil && !t.fresh {
		o.Setting, o.At = was.Setting, was.At
	}
	t.State.Observed = &o
	t.refresh()
	if was != nil && !t.explained(o.Setting.relevant(), *was) {
		t.recordManualChange(o.Setting)
	}
	if t.fresh {
		t.confirm(o.Setting, true)
		if w := t.State.Write; w != nil && !w.Read {
			read := *w
			read.Read = true
			t.State.Write = &read
		}
	}
	t.compareTemperature()
	t.compareWithThreshold()
}

// lags reports whether a read shows the setting from before a write that the device has confirmed, too soon to be
// believed.
func (t *Thermostat) lags(got Setting) bool {
	w := t.State.Write
	return w != nil && w.Outcome == Confirmed && !w.Shown && t.Now.Before(w.At.Add(t.readLag())) &&
		!t.shows(w.Setting, got) && t.explained(got.relevant(), Observed{Setting: w.Before, At: w.At})
}

func (t *Thermostat) readLag() time.Duration { return cmp.Or(t.Timeouts.ReadLag, 10*time.Second) }

func (t *Thermostat) confirmTimeout() time.Duration { return cmp.Or(t.Timeouts.Confirm, time.Minute) }

// explained reports whether each field of a read is as in the last one, as desired, or from a write shortly before the
// last one.
func (t *Thermostat) explained(got Setting, last Observed) bool {
	before := last.Setting
	shown, sent, recent := []Setting{before}, []Setting{}, false
	if w := t.State.Write; w != nil {
		recent = last.At.Before(w.At.Add(t.confirmTimeout()))
		if !w.Shown {
			shown = append(shown, w.Before)
		}
		if recent {
			sent = append(append(sent, w.Setting), w.Earlier...)
		}
	}
	if d := t.State.Desired; d != nil && d.Refusal == "" {
		sent = append(sent, d.Setting)
	}
	// A set point that was not reported before is news, unless a write of the mode has uncovered it.
	unknown := recent || before.Mode == got.Mode || before.Mode == ""
	return (before.Mode == "" || among(got.Mode, func(s Setting) capability.HVACMode { return s.Mode }, shown, sent)) &&
		(before.Fan == "" || among(got.Fan, func(s Setting) capability.FanMode { return s.Fan }, shown, sent)) &&
		(unknown && before.Heat == nil ||
			t.near(got.Heat, func(s Setting) *float64 { return s.Heat }, shown, sent)) &&
		(unknown && before.Cool == nil ||
			t.near(got.Cool, func(s Setting) *float64 { return s.Cool }, shown, sent))
}

// among reports whether a value is unknown or that of one of the settings.
func among[T ~string](got T, of func(Setting) T, settings ...[]Setting) bool {
	return got == "" ||
		slices.ContainsFunc(slices.Concat(settings...), func(s Setting) bool { return of(s) == got })
}

// near reports whether a set point is unknown, one of those that the device has shown, or one that was sent, rounded.
func (t *Thermostat) near(got *float64, of func(Setting) *float64, shown, sent []Setting) bool {
	within := func(tolerance float64) func(Setting) bool {
		return func(s Setting) bool { return of(s) != nil && math.Abs(*of(s)-*got) <= tolerance }
	}
	return got == nil || slices.ContainsFunc(shown, within(unchanged)) ||
		slices.ContainsFunc(sent, within(t.tolerance()))
}

// recordManualChange records a change at the device. It holds if the schedule allows that, until the server wants
// something else. What the device has not confirmed yet stays wanted.
func (t *Thermostat) recordManualChange(got Setting) {
	t.emitAdjusted("external", got.relevant())
	d := t.State.Desired
	if d != nil && d.Refusal == "" && t.shows(d.Setting, got) {
		return
	}
	t.State.Active = ""
	switch {
	case d == nil, t.State.Override != nil:
	case d.Refusal != "" && !d.Setting.isZero():
		t.change(func(d *Desired) { d.Refusal = "" })
	case !d.Confirmed:
	case t.State.Baseline.Preset == "":
		t.forget("")
	case !t.State.Baseline.OverrideRefused:
		t.State.Override = new(t.Now)
	default:
		t.missWrite() // a device that does not keep the setting
	}
}

// overrideEnd returns when the override ends; nil: with the next transition.
func (t *Thermostat) overrideEnd() *time.Time {
	since, s := t.State.Override, t.schedule(t.State.Baseline.Schedule)
	switch {
	case since == nil || s == nil:
		return nil
	case !s.OverrideAllowed:
		return since
	case s.MaxOverride == nil:
		return nil
	}
	return new(since.Add(time.Duration(*s.MaxOverride) * time.Minute))
}

// change replaces the desired state by a changed copy.
func (t *Thermostat) change(f func(*Desired)) {
	d := *t.State.Desired
	f(&d)
	t.State.Desired = &d
}

// confirm ends what waits for a setting that the device has. read is false for the answer to a write.
func (t *Thermostat) confirm(got Setting, read bool) {
	d := t.State.Desired
	if d == nil || d.Refusal != "" || t.overtaken() != nil {
		return
	}
	t.endWaiting(
		func(w Waiting) bool { return t.difference(w.Setting, got, d.Sent).isZero() },
		func(w Waiting) Ended { return Ended{Attempt: w.ID} },
	)
	if !t.difference(d.Setting, got, d.Sent).isZero() {
		return
	}
	if w := t.State.Write; read && w != nil && !w.Shown {
		shown := *w
		shown.Shown = true
		t.State.Write = &shown
	}
	if read {
		t.State.Retry = Retry{}
	}
	t.State.Override, t.State.Active = nil, d.Preset
	if d.Confirmed && d.Announced {
		return
	}
	t.change(func(d *Desired) { d.Confirmed, d.Announced = true, true })
	switch {
	case d.Announced:
	case d.Source == FromCommand:
		t.emitAdjusted("seam", got.onDevice(d.Setting).relevant())
	default:
		t.emitActivated(*d)
	}
}

// overtaken returns the last write if the server has wanted something else since, and the device may still apply it;
// nil: that is not so.
func (t *Thermostat) overtaken() *Write {
	w, d, o := t.State.Write, t.State.Desired, t.State.Observed
	if w == nil || d == nil || o == nil || w.Shown || !t.Now.Before(w.At.Add(t.confirmTimeout())) ||
		t.shows(d.Setting, w.Setting.onDevice(o.Setting)) {
		return nil
	}
	return w
}

// compareTemperature announces changes of the temperature, and that it has reached the set point.
func (t *Thermostat) compareTemperature() {
	const step = 1 - 1e-9
	at := t.State.Observed.Temperature
	if at == nil {
		return
	}
	fields := map[string]any{}
	addDegrees(fields, "temperature", at)
	last := t.State.AnnouncedTemperature
	if last == nil || math.Abs(*at-*last) >= step {
		t.State.AnnouncedTemperature = new(*at)
	}
	if last != nil && math.Abs(*at-*last) >= step {
		t.emit("thermostat.temperature_changed", fields)
	}
	goal := t.reached(*at)
	if goal == nil {
		return
	}
	t.change(func(d *Desired) { d.Reached = true })
	fields = map[string]any{}
	addDegrees(fields, "temperature", at)
	addDegrees(fields, "desired_temperature", goal)
	t.emit("thermostat.temperature_reached_set_point", fields)
}

// reached returns the set point that the temperature has reached for the first time; nil: none.
func (t *Thermostat) reached(at float64) *float64 {
	d := t.State.Desired
	if d == nil || !d.Confirmed || d.Reached || t.State.Override != nil {
		return nil
	}
	s := d.Setting
	s.Mode = cmp.Or(s.Mode, t.State.Observed.Setting.Mode)
	s = s.relevant()
	for _, goal := range []*float64{s.Heat, s.Cool} {
		if goal != nil && math.Abs(at-*goal) <= 1+1e-9 {
			return goal
		}
	}
	return nil
}
