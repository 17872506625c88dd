package climate

import "time"

// Plan is what to do next.
type Plan struct {
	// Send is the setting to write now; nil: nothing. Call Start, send it, and call Record.
	Send *Setting
	// Due is when to read the device and plan again; nil: when something changes.
	Due *time.Time
}

// Plan applies what is due by time alone, and returns what to do next: transitions, the end of overrides, and the
// deadlines of attempts.
func (t *Thermostat) Plan() Plan { return Plan{} }

// EndAll fails all pending attempts, such as those of a device that has left its account. The setting stays wanted.
func (t *Thermostat) EndAll(errorType, message string) {}
