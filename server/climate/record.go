package climate

import (
	"cmp"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

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

// The pauses after failures.
const (
	firstPause = 10 * time.Second
	maxPause   = 30 * time.Minute
)

// maxEarlier is how many earlier writes that the device has not shown are remembered.
const maxEarlier = 8

// Start records that a write is about to be sent. After a crash, the next read decides whether to send it again.
func (t *Thermostat) Start(s Setting) {
	w := Write{
		Setting: s,
		Before:  domain.Value(t.State.Observed).Setting,
		At:      t.Now,
	}
	if last := t.State.Write; last != nil && t.Now.Before(last.At.Add(t.confirmTimeout())) {
		if !last.Read {
			w.Before = last.Before
		}
		w.Earlier = slices.DeleteFunc(slices.Clone(last.Earlier), last.Setting.equal)
		w.Earlier = append(w.Earlier, last.Setting)
		w.Earlier = w.Earlier[max(0, len(w.Earlier)-maxEarlier):]
	}
	t.State.Write = &w
}

// Record records the answer to the write of s, which Start has recorded.
func (t *Thermostat) Record(s Setting, o Outcome) {
	w := domain.Value(t.State.Write)
	w.Outcome = cmp.Or(o.State, Unknown)
	t.State.Write = &w
	d := domain.Value(t.State.Desired).Setting
	wanted := t.State.Desired != nil && s.over(d).equal(d)
	switch {
	case o.Failure != nil:
		t.recordFailure(*o.Failure, wanted)
	case o.State == Unknown && wanted:
		t.pause(0)
	case o.State != Unknown:
		t.recordSent(s, o.State, wanted)
	}
}

// recordSent records that the vendor has received a write.
func (t *Thermostat) recordSent(s Setting, state OutcomeState, wanted bool) {
	o := domain.Value(t.State.Observed)
	o.Setting = s.onDevice(o.Setting)
	if wanted {
		whole := t.difference(t.State.Desired.Setting, o.Setting, false).isZero()
		t.change(func(d *Desired) { d.Sent = d.Sent || whole })
	}
	if state != Confirmed {
		return
	}
	t.State.Observed = &o
	t.confirm(o.Setting, false)
	t.compareTemperature()
}

// recordFailure records that the vendor did not accept a write. wanted means that the write is still wanted.
func (t *Thermostat) recordFailure(f Failure, wanted bool) {
	switch {
	case f.Class == Transient && (wanted || f.RetryAfter > 0):
		t.pause(f.RetryAfter)
	case f.Class == Transient:
	default:
		w := *t.State.Write
		w.Setting = Setting{} // the device will not show it
		t.State.Write = &w
		if !wanted {
			return
		}
		kind := refused
		if f.Class == NotSupported {
			kind = "device_type_not_supported"
		}
		t.refuse(kind, f.Message)
	}
}

// pause delays the next write. requested is the pause that the vendor asked for; 0: none.
func (t *Thermostat) pause(requested time.Duration) {
	n := t.State.Retry.Failures + 1
	own := min(firstPause<<min(n-1, 10), maxPause)
	t.State.Retry = Retry{
		Failures:  n,
		At:        new(t.Now.Add(max(own, requested))),
		Requested: requested > 0,
	}
}

// missWrite delays the next write if no read has shown the last one, which the vendor has received.
func (t *Thermostat) missWrite() {
	w := domain.Value(t.State.Write)
	if w.Shown || w.Outcome != Accepted && w.Outcome != Confirmed {
		return
	}
	w.Outcome = Unknown
	t.State.Write = &w
	t.pause(0)
}

// refused is the error type of a setting that the device does not accept.
const refused = "device_refused"

// refuse records that the desired setting cannot be set. It is not sent until something changes.
func (t *Thermostat) refuse(errorType, message string) {
	t.change(func(d *Desired) { d.Refusal = message })
	t.EndAll(errorType, message)
	if s := t.schedule(t.State.Desired.Schedule); s != nil {
		t.addScheduleError(s, errorType, message)
	}
}
