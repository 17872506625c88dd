package climate

// Command sets the mode, the set points, and the fan that s has, until the next transition. An attempt that waits for
// another value of one of them ends with an error. It fails with Invalid for a setting that the device does not
// accept, and with Invalid (invalid_heating_cooling_delta) for set points that are too close.
func (t *Thermostat) Command(a Attempt, s Setting) error { return nil }

// Activate sets a preset until the next transition. Pending attempts end with an error. It fails with NotFound
// (climate_preset_not_found), and with Invalid for a preset that has no setting or one that the device does not accept.
func (t *Thermostat) Activate(a Attempt, key string) error { return nil }
