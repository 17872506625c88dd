package climate

// Threshold is the range that the temperature should stay in, in °C. A nil limit does not exist.
type Threshold struct {
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
}

// SetThreshold replaces the threshold, and compares the last observed temperature with it. It fails with Invalid if
// the lower limit is not below the upper one.
func (t *Thermostat) SetThreshold(th Threshold) error { return nil }
