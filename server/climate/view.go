package climate

// AvailablePreset is a preset as the API shows it.
type AvailablePreset struct {
	Preset

	// CanEdit and CanDelete are false for a preset of the device itself.
	CanEdit, CanDelete bool
	// CanUseWithDailyPrograms is false for a preset without a setting.
	CanUseWithDailyPrograms bool
}

// DisplayName returns the name of the preset, or its key if it has none.
func (p AvailablePreset) DisplayName() string { return p.Key }

// Current is what a thermostat is set to.
type Current struct {
	Setting Setting
	// Preset is the preset in effect; nil: none.
	Preset *AvailablePreset
}

// Current returns the setting that the device showed last.
func (t *Thermostat) Current() Current { return Current{} }

// AvailablePresets returns the presets of the device itself, then those of the workspace. A key occurs once.
func (t *Thermostat) AvailablePresets() []AvailablePreset { return nil }

// OverrideActive reports whether the device is set to something else than its schedule or program sets, which allows
// that (is_temporary_manual_override_active).
func (t *Thermostat) OverrideActive() bool { return false }
