package climate

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"

// Threshold is the range that the temperature should stay in, in °C. A nil limit does not exist.
type Threshold struct {
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
}

// SetThreshold replaces the threshold, and compares the last observed temperature with it. It fails with Invalid if
// the lower limit is not below the upper one.
func (t *Thermostat) SetThreshold(th Threshold) error {
	if th.Lower != nil && th.Upper != nil && *th.Lower >= *th.Upper {
		return domain.Invalidf("lower_limit_celsius", "The lower limit must be below the upper limit")
	}
	t.State.Threshold = th
	t.compareWithThreshold()
	return nil
}

// compareWithThreshold notices that the temperature leaves the range or is back in it.
func (t *Thermostat) compareWithThreshold() {
	o, th := t.State.Observed, t.State.Threshold
	if o == nil || o.Temperature == nil {
		return
	}
	at := *o.Temperature
	exceeded := th.Lower != nil && at < *th.Lower || th.Upper != nil && at > *th.Upper
	if exceeded == (t.State.ThresholdExceededAt != nil) {
		return
	}
	kind := "thermostat.temperature_threshold_no_longer_exceeded"
	t.State.ThresholdExceededAt = nil
	if exceeded {
		kind = "thermostat.temperature_threshold_exceeded"
		t.State.ThresholdExceededAt = new(t.Now)
	}
	fields := map[string]any{}
	addDegrees(fields, "temperature", &at)
	addDegrees(fields, "lower_limit", th.Lower)
	addDegrees(fields, "upper_limit", th.Upper)
	t.emit(kind, fields)
}
