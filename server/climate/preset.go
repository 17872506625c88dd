package climate

import (
	"fmt"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// MaxPresets is how many presets a thermostat can have in addition to those of the device itself.
const MaxPresets = 100

// Preset is a climate preset of the workspace.
type Preset struct {
	// Key is the climate_preset_key of the API.
	Key  string  `json:"key"`
	Name *string `json:"name,omitempty"`
	// Mode is the climate_preset_mode of the API, such as "away"; empty: none.
	Mode    string  `json:"mode,omitempty"`
	Setting Setting `json:"setting"`
	// ManualOverrideAllowed is the deprecated manual_override_allowed. It is stored and shown only.
	ManualOverrideAllowed bool `json:"manual_override_allowed"`
}

// PresetFields are the fields of a request about a preset. A field without a value does not change.
type PresetFields struct {
	Key string
	// Name is used if SetName is true; nil then removes the name.
	Name    *string
	SetName bool
	Mode    string
	// Setting changes the fields that it has. The modes off and eco remove the set points.
	Setting Setting
	// ManualOverrideAllowed is true for a new preset unless it is set.
	ManualOverrideAllowed *bool
}

const presetField = "climate_preset_key"

// CreatePreset adds a preset. It fails with Conflict (duplicate_climate_preset) if the key is taken. It fails with
// Invalid at MaxPresets, for a key or name that domain.CheckLabel or domain.CheckText refuses, and for a setting that
// the device does not accept.
func (t *Thermostat) CreatePreset(f PresetFields) error {
	if err := domain.CheckLabel(presetField, f.Key); err != nil {
		return err
	}
	if t.preset(f.Key) != nil {
		return &domain.Error{
			Kind:    domain.Conflict,
			Type:    "duplicate_climate_preset",
			Field:   presetField,
			Message: "The thermostat already has a climate preset with this climate_preset_key. Choose another key.",
			Data:    map[string]any{presetField: f.Key},
		}
	}
	if len(t.State.Presets) >= MaxPresets {
		return domain.Invalidf("", "The thermostat has %d climate presets. Delete one first", MaxPresets)
	}
	p, err := t.changePreset(Preset{Key: f.Key, ManualOverrideAllowed: true}, f)
	if err != nil {
		return err
	}
	t.State.Presets = append(slices.Clip(t.State.Presets), p)
	t.refresh()
	return nil
}

// UpdatePreset changes a preset. If the server wants it now, it wants the new setting. It fails with NotFound
// (climate_preset_not_found), and with Invalid for a preset of the device itself, a name that domain.CheckText refuses,
// or a setting that the device does not accept.
func (t *Thermostat) UpdatePreset(f PresetFields) error {
	i, err := t.ownPreset(f.Key, "changed")
	if err != nil {
		return err
	}
	p, err := t.changePreset(t.State.Presets[i], f)
	if err != nil {
		return err
	}
	t.State.Presets = slices.Clone(t.State.Presets)
	t.State.Presets[i] = p
	t.refresh()
	return nil
}

// changePreset returns p with the fields of a request.
func (t *Thermostat) changePreset(p Preset, f PresetFields) (Preset, error) {
	if f.SetName {
		if err := domain.CheckText("name", domain.Value(f.Name)); err != nil {
			return p, err
		}
		p.Name = f.Name
	}
	if f.Mode != "" {
		p.Mode = f.Mode
	}
	if f.ManualOverrideAllowed != nil {
		p.ManualOverrideAllowed = *f.ManualOverrideAllowed
	}
	p.Setting = f.Setting.onDevice(p.Setting)
	if f.Setting.Mode == capability.Off || f.Setting.Mode == capability.Eco {
		p.Setting.Heat, p.Setting.Cool = f.Setting.Heat, f.Setting.Cool
	}
	return p, t.check(p.Setting)
}

// DeletePreset deletes a preset. What the device is set to stays. If the preset is the fallback, there is none
// afterwards. DeletePreset fails with NotFound (climate_preset_not_found), and with Invalid for a preset of the device
// itself or one that a daily program or a schedule uses.
func (t *Thermostat) DeletePreset(key string) error {
	i, err := t.ownPreset(key, "deleted")
	if err != nil {
		return err
	}
	if user := t.presetUser(key); user != "" {
		return domain.Invalidf(presetField, "The climate preset is in use by %s. Choose another one there first", user)
	}
	t.State.Presets = slices.Delete(slices.Clone(t.State.Presets), i, i+1)
	if t.State.Fallback == key {
		t.State.Fallback = ""
	}
	return nil
}

// presetUser names what uses a preset.
func (t *Thermostat) presetUser(key string) string {
	for _, p := range t.State.DailyPrograms {
		if slices.ContainsFunc(p.Periods, func(p Period) bool { return p.Preset == key }) {
			return fmt.Sprintf("the daily program %q (%s)", p.Name, p.ID)
		}
	}
	for _, s := range t.Schedules {
		if s.Preset == key && s.EndsAt.After(t.Now) {
			return fmt.Sprintf("the thermostat schedule %s", s.ID)
		}
	}
	return ""
}

// SetFallback chooses the preset that is applied when a schedule ends. It fails with NotFound
// (climate_preset_not_found), and with Invalid for a preset without a setting.
func (t *Thermostat) SetFallback(key string) error {
	if err := t.checkUsable(presetField, key); err != nil {
		return err
	}
	t.State.Fallback = key
	return nil
}

// preset returns a preset of the workspace or of the device itself; nil: there is none.
func (t *Thermostat) preset(key string) *AvailablePreset {
	if key == "" {
		return nil
	}
	for _, p := range t.AvailablePresets() {
		if p.Key == key {
			return &p
		}
	}
	return nil
}

// ownPreset returns the index of a preset of the workspace.
func (t *Thermostat) ownPreset(key, done string) (int, error) {
	i := slices.IndexFunc(t.State.Presets, func(p Preset) bool { return p.Key == key })
	switch {
	case i >= 0:
		return i, nil
	case t.preset(key) != nil:
		return 0, domain.Invalidf(
			presetField,
			"The climate preset belongs to the thermostat itself. It can only be %s at the thermostat",
			done,
		)
	}
	return 0, presetNotFound(key)
}

// checkUsable fails with NotFound if there is no such preset, and with Invalid if it has no setting.
func (t *Thermostat) checkUsable(field, key string) error {
	switch p := t.preset(key); {
	case p == nil:
		return presetNotFound(key)
	case !p.CanUseWithDailyPrograms:
		return domain.Invalidf(field, "The climate preset %q has no setting. Choose another one", key)
	}
	return nil
}

func presetNotFound(key string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "climate_preset_not_found",
		Message: "Could not find a climate preset with this climate_preset_key. Look at available_climate_presets.",
		Data:    map[string]any{presetField: key},
	}
}
