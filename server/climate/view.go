package climate

import (
	"cmp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// AvailablePreset is a preset as the API shows it.
type AvailablePreset struct {
	Preset

	// CanEdit and CanDelete are false for a preset of the device itself.
	CanEdit, CanDelete bool
	// CanUseWithDailyPrograms is false for a preset without a setting.
	CanUseWithDailyPrograms bool
}

// DisplayName returns the name of the preset, or its key if it has none.
func (p AvailablePreset) DisplayName() string { return cmp.Or(domain.Value(p.Name), p.Key) }

// Current is what a thermostat is set to.
type Current struct {
	Setting Setting
	// Preset is the preset in effect; nil: none.
	Preset *AvailablePreset
}

// Current returns the setting that the device showed last, without the set points that its mode does not use.
func (t *Thermostat) Current() Current {
	o := domain.Value(t.State.Observed)
	c := Current{Setting: o.Setting.relevant(), Preset: t.preset(t.State.Active)}
	if c.Preset == nil {
		c.Preset = t.preset(o.ActivePreset)
	}
	return c
}

// AvailablePresets returns the presets of the device itself, then those of the workspace. A key occurs once: that of
// the workspace counts.
func (t *Thermostat) AvailablePresets() []AvailablePreset {
	own := map[string]bool{}
	for _, p := range t.State.Presets {
		own[p.Key] = true
	}
	out := []AvailablePreset{}
	for _, p := range domain.Value(t.State.Observed).Presets {
		if own[p.Key] {
			continue
		}
		own[p.Key] = true
		out = append(out, AvailablePreset{
			Preset: Preset{
				Key:                   p.Key,
				Name:                  domain.NonEmpty(p.Name),
				Setting:               p.Setting,
				ManualOverrideAllowed: true,
			},
			CanUseWithDailyPrograms: !p.Setting.isZero(),
		})
	}
	for _, p := range t.State.Presets {
		out = append(out, AvailablePreset{
			Preset:                  p,
			CanEdit:                 true,
			CanDelete:               true,
			CanUseWithDailyPrograms: true,
		})
	}
	return out
}

// OverrideActive reports whether the device is set to something else than its schedule or program sets, which allows
// that (is_temporary_manual_override_active). It does not need Schedules.
func (t *Thermostat) OverrideActive() bool {
	p, d := t.preset(t.State.Baseline.Preset), t.State.Desired
	if p == nil || t.State.Observed == nil || t.State.Baseline.OverrideRefused {
		return false
	}
	held := t.State.Override != nil ||
		d != nil && d.Confirmed && (d.Source == FromCommand || d.Source == FromActivation)
	return held && !t.shows(p.Setting.relevant(), t.State.Observed.Setting)
}
