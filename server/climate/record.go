package climate

import "time"

// OutcomeState is what the vendor said of a write.
type OutcomeState string

// The outcomes of a write.
const (
	// Confirmed means that the device has the setting.
	Confirmed OutcomeState = "confirmed"
	// Accepted means that a read will show whether the device has the setting.
	Accepted OutcomeState = "accepted"
	// Unknown means that the answer was lost. A read shows what happened.
	Unknown OutcomeState = "unknown"
)

// Outcome is the answer to a write. Exactly one field is set.
type Outcome struct {
	State   OutcomeState
	Failure *Failure
}

// Failure is why the vendor did not accept a write.
type Failure struct {
	Class FailureClass
	// Message is for people. It contains no secret.
	Message string
	// RetryAfter is the time before which a retry is pointless; 0: unknown.
	RetryAfter time.Duration
}

// FailureClass sorts failures by their consequence.
type FailureClass string

// The failure classes.
const (
	// Transient is a failure that a retry may solve.
	Transient FailureClass = "transient"
	// Invalid means that the device does not accept the setting.
	Invalid FailureClass = "invalid"
	// NotSupported means that the device lacks the mode.
	NotSupported FailureClass = "not_supported"
)

// Start records that a write is about to be sent. After a crash, the next read decides whether to send it again.
func (t *Thermostat) Start(s Setting) {}

// Record records the answer to the write of s that was started last.
func (t *Thermostat) Record(s Setting, o Outcome) {}
