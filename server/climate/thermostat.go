package climate

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Thermostat is one device at one moment. Its methods change State and Schedules in place, and collect what the caller
// must write (Changes).
type Thermostat struct {
	Limits capability.Thermostat
	State  State
	// Schedules are those that have not ended, and those that ended after State.Baseline.At.
	Schedules []*Schedule
	Online    bool
	// Zone is where the periods of programs apply; nil: UTC.
	Zone *time.Location
	// Now is the time by which the rules decide.
	Now      time.Time
	Timeouts Timeouts

	// fresh means that State.Observed was read now.
	fresh   bool
	changes Changes
}

// Timeouts are the durations that the rules need. A zero one has its default.
type Timeouts struct {
	// Confirm is how long an accepted write may stay invisible before it counts as failed; by default one minute.
	Confirm time.Duration
	// ReadLag is how long a read may show the setting from before a confirmed write; by default ten seconds.
	ReadLag time.Duration
}

// State is the document of a thermostat that is stored with its device. Its values are replaced, never changed in
// place, so a copy of State is a snapshot.
type State struct {
	// Observed is the last observation; nil: none.
	Observed *Observed `json:"observed,omitempty"`
	// Presets are those of the workspace, in the order of their creation.
	Presets []Preset `json:"presets,omitempty"`
	// Fallback is the key of the preset that is applied when a schedule ends; empty: none.
	Fallback string `json:"fallback,omitempty"`
	// DailyPrograms are in the order of their creation.
	DailyPrograms []DailyProgram `json:"daily_programs,omitempty"`
	// Weekly is nil if no day has a program.
	Weekly    *WeeklyProgram `json:"weekly,omitempty"`
	Threshold Threshold      `json:"threshold,omitzero"`
	// ThresholdExceededAt is since when the temperature has been outside of Threshold; nil: it is inside.
	ThresholdExceededAt *time.Time `json:"threshold_exceeded_at,omitempty"`

	// Baseline is the one that Desired follows.
	Baseline Baseline `json:"baseline,omitzero"`
	// Desired is what the server wants; nil: nothing, whatever the device is set to stays.
	Desired *Desired `json:"desired,omitempty"`
	// Override is since when a change at the device holds instead of Desired; nil: none does.
	Override *time.Time `json:"override,omitempty"`
	// Waiting are the pending attempts, oldest first.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Active is the key of the preset that the device confirmed last and that nothing has replaced; empty: none.
	Active string `json:"active,omitempty"`
	// Write is the last write; nil: none.
	Write *Write `json:"write,omitempty"`
	// Retry is the pause after failed writes.
	Retry Retry `json:"retry,omitzero"`
	// AnnouncedTemperature is the temperature in °C of the last event about it.
	AnnouncedTemperature *float64 `json:"announced_temperature,omitempty"`
}

// Baseline identifies what time alone selects.
type Baseline struct {
	// Schedule is the running schedule that started last; zero: none.
	Schedule uuid.UUID `json:"schedule,omitzero"`
	// Period is the start of the period of the program; zero: no program is in effect.
	Period time.Time `json:"period,omitzero"`
	// Preset is the key of the preset of the schedule or period; empty: there is neither.
	Preset string `json:"preset,omitempty"`
	// OverrideRefused means that the schedule does not allow changes at the device.
	OverrideRefused bool `json:"override_refused,omitempty"`
	// At is when the baseline began to be in effect.
	At time.Time `json:"at,omitzero"`
}

// Source is what made the server want a setting.
type Source string

// The sources of a desired setting.
const (
	FromCommand    Source = "command"
	FromActivation Source = "activation"
	FromSchedule   Source = "schedule"
	FromProgram    Source = "program"
	FromFallback   Source = "fallback"
)

// Desired is what the server wants, and how far that has come.
type Desired struct {
	Setting Setting `json:"setting"`
	Source  Source  `json:"source"`
	// Preset is the key of the preset; empty for a command.
	Preset string `json:"preset,omitempty"`
	// Schedule is that of FromSchedule.
	Schedule uuid.UUID `json:"schedule,omitzero"`
	// Sent means that the vendor has received the whole setting, and Confirmed that the device has shown it since.
	Sent      bool `json:"sent,omitempty"`
	Confirmed bool `json:"confirmed,omitempty"`
	// Announced means that the event of its activation was emitted, and Reached that of its set point.
	Announced bool `json:"announced,omitempty"`
	Reached   bool `json:"reached,omitempty"`
	// Refusal is why it cannot be set; empty: it can, as far as known.
	Refusal string `json:"refusal,omitempty"`
}

// Attempt is an action attempt.
type Attempt struct {
	ID uuid.UUID `json:"id"`
	// Deadline is when the attempt fails.
	Deadline time.Time `json:"deadline"`
}

// Waiting is a pending attempt.
type Waiting struct {
	Attempt

	// Setting is the part of Desired that the attempt waits for.
	Setting Setting `json:"setting"`
	// Push means that the attempt has stored a program, so it succeeds when something else replaces the setting.
	Push bool `json:"push,omitempty"`
}

// Write is a write to the device.
type Write struct {
	Setting Setting `json:"setting"`
	// Before is what the last read before showed.
	Before Setting   `json:"before"`
	At     time.Time `json:"at"`
	// Outcome is empty while it is unknown.
	Outcome OutcomeState `json:"outcome,omitempty"`
	// Read means that the device was read since, and Shown that a read has shown the desired setting.
	Read  bool `json:"read,omitempty"`
	Shown bool `json:"shown,omitempty"`
	// Earlier are the settings of the writes shortly before, which the device may show for a moment.
	Earlier []Setting `json:"earlier,omitempty"`
}

// Retry is the pause after failed writes.
type Retry struct {
	// Failures counts the failures since a read last showed the desired setting.
	Failures int `json:"failures,omitempty"`
	// At is when the next write may be sent; nil: now.
	At *time.Time `json:"at,omitempty"`
	// Requested means that the vendor asked for the pause, so a new desired setting does not end it.
	Requested bool `json:"requested,omitempty"`
}
