package climate

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

// PresetFields are the fields of a request about a preset. A field without a value stays as it is.
type PresetFields struct {
	Key string
	// Name is used if SetName is true; nil then removes the name.
	Name    *string
	SetName bool
	Mode    string
	Setting Setting
	// ManualOverrideAllowed is true for a new preset unless it is set.
	ManualOverrideAllowed *bool
}

// CreatePreset adds a preset. It fails with Conflict (duplicate_climate_preset) if the key is taken, with TooMany at
// MaxPresets, and with Invalid for a setting that the device does not accept.
func (t *Thermostat) CreatePreset(f PresetFields) error { return nil }

// UpdatePreset changes a preset. If it is in effect, its new setting is set. It fails with NotFound
// (climate_preset_not_found), with Invalid for a preset of the device itself, and with Invalid for a setting that the
// device does not accept.
func (t *Thermostat) UpdatePreset(f PresetFields) error { return nil }

// DeletePreset deletes a preset. What the device is set to stays. It fails with NotFound (climate_preset_not_found),
// and with Invalid for a preset of the device itself or one that the fallback, a daily program, or a schedule uses.
func (t *Thermostat) DeletePreset(key string) error { return nil }

// SetFallback chooses the preset that is applied when a schedule ends. It fails with NotFound
// (climate_preset_not_found).
func (t *Thermostat) SetFallback(key string) error { return nil }
