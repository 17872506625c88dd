package climate

import (
	"fmt"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Command sets the mode with its set points, or the fan, or both, until the next transition. An attempt that waits for
// another mode or fan ends with an error. Command fails with Invalid for a setting that the device does not accept, and
// with Invalid (invalid_heating_cooling_delta) for set points that are too close.
func (t *Thermostat) Command(a Attempt, s Setting) error {
	if err := checkComplete(s); err != nil {
		return err
	}
	if err := t.check(s); err != nil {
		return err
	}
	t.advance() // so that a transition that is due does not replace the command
	var held Setting
	switch d := t.State.Desired; {
	case t.State.Override != nil:
		held = t.State.Observed.Setting.relevant()
	case d != nil && d.Refusal == "":
		held = d.Setting
	}
	t.supersede(func(w Waiting) bool { return w.Setting.conflictsWith(s) }, newerRequest)
	t.want(Desired{Setting: s.over(held), Source: FromCommand})
	t.State.Waiting = append(slices.Clip(t.State.Waiting), Waiting{Attempt: a, Setting: s})
	return nil
}

// checkComplete fails with Invalid unless the set points are those of the mode.
func checkComplete(s Setting) error {
	if s.Mode == "" {
		if s.hasMode() {
			return domain.Invalidf(modeField, "A set point needs a mode. Choose the mode")
		}
		return nil
	}
	point := func(field, what string, at *float64, used bool) error {
		switch {
		case used && at == nil:
			return domain.Invalidf(field, "The mode %s needs a %s set point. Give one", s.Mode, what)
		case !used && at != nil:
			return domain.Invalidf(field, "The mode %s has no %s set point. Leave it out", s.Mode, what)
		}
		return nil
	}
	return domain.All(
		point(heatField, "heating", s.Heat, s.Mode.Heats()),
		point(coolField, "cooling", s.Cool, s.Mode.Cools()),
	)
}

// Activate sets a preset until the next transition. Pending attempts end with an error. It fails with NotFound
// (climate_preset_not_found), and with Invalid for a preset without a setting or one that the device does not accept.
func (t *Thermostat) Activate(a Attempt, key string) error {
	if err := t.checkUsable(presetField, key); err != nil {
		return err
	}
	s := t.preset(key).Setting.relevant()
	if err := t.check(s); err != nil {
		return err
	}
	t.advance()
	t.want(Desired{Setting: s, Source: FromActivation, Preset: key})
	t.State.Waiting = append(slices.Clip(t.State.Waiting), Waiting{Attempt: a, Setting: s})
	return nil
}

const newerRequest = "A newer request replaced the setting before the thermostat confirmed it."

// want replaces what the server wants. For anything but a command, all attempts that wait end.
func (t *Thermostat) want(d Desired) {
	if d.Source != FromCommand {
		t.supersede(func(Waiting) bool { return true }, replacedBy[d.Source])
	}
	t.State.Desired, t.State.Override = &d, nil
	if r := t.State.Retry; !r.Requested {
		t.State.Retry = Retry{}
	} else {
		t.State.Retry = Retry{At: r.At, Requested: true}
	}
}

var replacedBy = map[Source]string{
	FromActivation: newerRequest,
	FromSchedule:   "A schedule replaced the setting before the thermostat confirmed it.",
	FromProgram:    "The program replaced the setting before the thermostat confirmed it.",
	FromFallback:   "The fallback preset replaced the setting before the thermostat confirmed it.",
}

// wantPreset wants a preset for another reason than a request. A preset that does not exist is a refusal.
func (t *Thermostat) wantPreset(d Desired) {
	if t.checkUsable(presetField, d.Preset) != nil {
		t.want(d)
		t.refuse("climate_preset_not_found", fmt.Sprintf("The thermostat has no climate preset %q with a setting. "+
			"Create it or choose another one.", d.Preset))
		return
	}
	d.Setting = t.preset(d.Preset).Setting.relevant()
	t.want(d)
}

// refresh follows a change of the preset that the server wants.
func (t *Thermostat) refresh() {
	if t.State.Desired == nil {
		return
	}
	d := *t.State.Desired
	if d.Preset == "" || t.checkUsable("", d.Preset) != nil {
		return
	}
	s := t.preset(d.Preset).Setting.relevant()
	if s.equal(d.Setting) {
		return
	}
	d.Setting, d.Sent, d.Confirmed, d.Refusal = s, false, false, ""
	t.State.Desired = &d
	waiting := slices.Clone(t.State.Waiting)
	for i := range waiting {
		waiting[i].Setting = s
	}
	t.State.Waiting = waiting
}

// forget stops wanting anything: what the device is set to stays.
func (t *Thermostat) forget(why string) {
	t.supersede(func(Waiting) bool { return true }, why)
	t.State.Desired, t.State.Override = nil, nil
}

// supersede ends the attempts that wait and are selected. One that has stored a program has succeeded.
func (t *Thermostat) supersede(selected func(Waiting) bool, why string) {
	t.endWaiting(selected, func(w Waiting) Ended {
		if w.Push {
			return Ended{Attempt: w.ID}
		}
		return Ended{
			Attempt:   w.ID,
			ErrorType: "superseded",
			Message:   why,
		}
	})
}

// EndAll fails all pending attempts, such as those of a device that has left its account. The setting stays wanted.
func (t *Thermostat) EndAll(errorType, message string) {
	t.endWaiting(func(Waiting) bool { return true }, func(w Waiting) Ended {
		return Ended{
			Attempt:   w.ID,
			ErrorType: errorType,
			Message:   message,
		}
	})
}

// endWaiting ends the attempts that wait and are selected.
func (t *Thermostat) endWaiting(selected func(Waiting) bool, end func(Waiting) Ended) {
	kept := []Waiting{}
	for _, w := range t.State.Waiting {
		if selected(w) {
			t.changes.Ended = append(t.changes.Ended, end(w))
		} else {
			kept = append(kept, w)
		}
	}
	t.State.Waiting = kept
}
