package noise

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Sensor is a noise sensor with its thresholds, oldest first. Its methods change the thresholds.
type Sensor struct {
	Thresholds []*Threshold
	Now        time.Time
	// ConfirmTimeout is how long a read may not show an operation that the vendor has accepted.
	ConfirmTimeout time.Duration
	// NewID returns the identifier of a found threshold.
	NewID func() uuid.UUID

	removed []uuid.UUID
	// refused has the messages of the vendor about changes that it refused.
	refused map[uuid.UUID]string
}

// Attempt is a pending action attempt about a threshold.
type Attempt struct {
	ID, Threshold uuid.UUID
	// Delete means that the threshold must leave the device.
	Delete bool
}

// End is the end of an attempt.
type End struct {
	Attempt uuid.UUID
	// ErrorType and Message are empty if the attempt has succeeded.
	ErrorType, Message string
}

// Operation is the next operation on one threshold.
type Operation struct {
	Threshold uuid.UUID
	// Delete means that the threshold must be deleted; otherwise it must be set to State.
	Delete bool
	// Ref is the vendor's identifier; empty to create the threshold.
	Ref   string
	State State
}

// Outcome is the outcome of an operation.
type Outcome struct {
	// Ref is the vendor's identifier of a threshold that was set.
	Ref string
	// Failure is why the operation failed; nil: the vendor accepted it.
	Failure *Failure
}

// Failure is why an operation failed.
type Failure struct {
	// Refused means that the vendor will never accept the operation.
	Refused bool
	// Absent means that the device has no threshold with that Ref.
	Absent bool
	// Unsure means that the operation may have had an effect.
	Unsure  bool
	Message string
	// RetryAfter is the pause that the vendor asks for; 0: none.
	RetryAfter time.Duration
}

// Threshold returns a threshold, or nil.
func (s *Sensor) Threshold(id uuid.UUID) *Threshold {
	if i := slices.IndexFunc(s.Thresholds, func(t *Threshold) bool { return t.ID == id }); i >= 0 {
		return s.Thresholds[i]
	}
	return nil
}

// Removed returns the thresholds that the methods have removed.
func (s *Sensor) Removed() []uuid.UUID { return s.removed }

// Ends returns the ends of those pending attempts that have ended.
func (s *Sensor) Ends(pending []Attempt) (ends []End) {
	for _, a := range pending {
		t := s.Threshold(a.Threshold)
		message, refused := s.refused[a.Threshold]
		switch {
		case refused:
			ends = append(ends, End{a.ID, "device_refused", message})
		case a.Delete && t == nil, !a.Delete && t != nil && t.settled():
			ends = append(ends, End{Attempt: a.ID})
		case !a.Delete && (t == nil || t.Deleting):
			ends = append(ends, End{
				a.ID,
				"noise_threshold_deleted",
				"The noise threshold was deleted before the device confirmed the change.",
			})
		}
	}
	return ends
}

// Observe records the thresholds on the device. Unknown ones are added as they are. A managed one that was changed or
// deleted at the device is set again by the plan, and any other one follows the device.
func (s *Sensor) Observe(found []Found) {
	var fresh []Found
	seen, taken := map[uuid.UUID]bool{}, map[string]bool{}
	for _, f := range found {
		if f.Ref == "" || taken[f.Ref] { // some vendors repeat entries
			continue
		}
		taken[f.Ref] = true
		t := s.match(f, found)
		if t == nil || seen[t.ID] {
			fresh = append(fresh, f)
			continue
		}
		seen[t.ID] = true
		s.observe(t, f)
	}
	for _, t := range slices.Clone(s.Thresholds) {
		if !seen[t.ID] {
			s.miss(t)
		}
	}
	for _, f := range fresh {
		if len(s.Thresholds) == MaxThresholds {
			return
		}
		state := f.State()
		s.Thresholds = append(s.Thresholds, &Threshold{
			ID:       s.NewID(),
			Ref:      f.Ref,
			Desired:  state,
			Observed: &state,
		})
	}
}

// match returns the threshold that was found, or nil. A creation whose answer was lost has only its key.
func (s *Sensor) match(f Found, all []Found) *Threshold {
	for _, t := range s.Thresholds {
		if t.Ref == f.Ref {
			return t
		}
	}
	for _, t := range s.Thresholds {
		there := slices.ContainsFunc(all, func(other Found) bool { return other.Ref == t.Ref })
		if f.Key == t.ID.String() && !there {
			return t
		}
	}
	return nil
}

func (s *Sensor) observe(t *Threshold, f Found) {
	state := f.State()
	if t.Deleting && t.Observed == nil { // the creation that the deletion waits for
		t.rest()
	}
	t.Ref, t.Observed = f.Ref, &state
	if !t.Managed && !t.Deleting {
		t.Desired = state
	}
	if t.settled() {
		if t.Desired.NRS != nil { // what the device makes of the score
			t.Desired.Decibels = state.Decibels
		}
		t.rest()
	}
}

// miss records that a threshold is not on the device.
func (s *Sensor) miss(t *Threshold) {
	shown := t.Observed != nil
	t.Observed = nil
	switch {
	case t.awaits(s.Now) && (!t.Deleting || !shown): // a creation may show later
	case t.Deleting, !t.Managed:
		s.remove(t)
	default:
		t.Ref = ""
	}
}

func (s *Sensor) remove(t *Threshold) {
	s.removed = append(s.removed, t.ID)
	s.Thresholds = slices.DeleteFunc(s.Thresholds, func(other *Threshold) bool { return other == t })
}

// Plan returns the operations that are due, deletions first, and when the next one is; nil: when the device changes.
func (s *Sensor) Plan() (ops []Operation, due *time.Time) {
	for _, t := range s.Thresholds {
		if t.settled() || !t.Deleting && !t.Managed {
			continue
		}
		if t.NextAt != nil && t.NextAt.After(s.Now) {
			due = earlier(due, *t.NextAt)
			continue
		}
		if t.awaits(s.Now) { // this read did not show it
			t.Tries++
			t.NextAt = s.after(backoff(t.Tries))
			due = earlier(due, *t.NextAt)
			continue
		}
		ops = append(ops, Operation{
			Threshold: t.ID,
			Delete:    t.Deleting,
			Ref:       t.Ref,
			State:     t.Desired,
		})
	}
	slices.SortStableFunc(ops, func(a, b Operation) int {
		switch {
		case a.Delete == b.Delete:
			return 0
		case a.Delete:
			return -1
		}
		return 1
	})
	return ops, due
}

// Record records the outcome of an operation. The next read shows its effect.
func (s *Sensor) Record(op Operation, o Outcome) {
	t := s.Threshold(op.Threshold)
	if t == nil {
		return
	}
	obsolete := t.Deleting != op.Delete || !op.Delete && !t.Desired.equal(op.State)
	if o.Failure == nil && !op.Delete {
		t.Ref = o.Ref
	}
	switch f := o.Failure; {
	case f == nil && obsolete && !t.Deleting:
		t.rest()
	case f == nil:
		t.AwaitUntil, t.NextAt = s.after(s.ConfirmTimeout), nil
	case f.Refused && !obsolete:
		s.refuse(t, f.Message)
	case f.Absent:
		t.Ref = ""
		s.retry(t, 0)
	case f.Unsure:
		t.AwaitUntil = s.after(s.ConfirmTimeout)
		s.retry(t, f.RetryAfter)
	default:
		s.retry(t, f.RetryAfter)
	}
}

// refuse gives up a change: the desired state becomes that of the device.
func (s *Sensor) refuse(t *Threshold, message string) {
	if s.refused == nil {
		s.refused = map[uuid.UUID]string{}
	}
	s.refused[t.ID] = message
	t.rest()
	t.Deleting = false
	if t.Observed == nil {
		s.remove(t)
		return
	}
	t.Desired, t.Managed = *t.Observed, false
}

// Request records that a client wants a threshold to be deleted, or set to its new desired state.
func (t *Threshold) Request(state State, deleting bool) {
	// A creation that is under way must show before it can be deleted.
	until := t.AwaitUntil
	t.rest()
	if deleting && t.Observed == nil {
		t.AwaitUntil = until
	}
	t.Desired, t.Managed, t.Deleting = state, true, deleting
}

// retry schedules the next try.
func (s *Sensor) retry(t *Threshold, pause time.Duration) {
	t.Tries++
	t.NextAt = s.after(max(backoff(t.Tries), pause))
}

func (s *Sensor) after(d time.Duration) *time.Time { return new(s.Now.Add(d)) }

const maxPause = 30 * time.Minute

// backoff returns the pause after the nth consecutive try without effect.
func backoff(n int) time.Duration { return min(time.Second<<min(n-1, 20), maxPause) }

func earlier(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.Before(b) {
		return a
	}
	return &b
}
