package climate

import (
	"cmp"
	"time"
)

// Plan is what to do next.
type Plan struct {
	// Send is the setting to write now; nil: nothing. Call Start, send it, and call Record.
	Send *Setting
	// Due is when to read the device and plan again; nil: when something changes. It is Now if there is something to
	// send, in case the caller can't.
	Due *time.Time
}

// Plan applies what is due by time alone, and returns what to do next: transitions, the end of overrides, and the
// deadlines of attempts.
func (t *Thermostat) Plan() Plan {
	t.expireAttempts()
	due := earliest(t.advance())
	if end := t.overrideEnd(); end != nil && !end.After(t.Now) {
		t.State.Override = nil
	} else {
		due = earliest(due, end)
	}
	if t.fresh {
		t.confirm(t.State.Observed.Setting, false)
	}
	send, retry := t.nextWrite()
	due = earliest(due, retry)
	for _, w := range t.State.Waiting {
		due = earliest(due, &w.Deadline)
	}
	return Plan{send, due}
}

// nextWrite returns what to send now, and when to read and decide again; nil: it depends on other things.
func (t *Thermostat) nextWrite() (*Setting, *time.Time) {
	d, o := t.State.Desired, t.State.Observed
	if !t.Online || o == nil {
		return nil, nil
	}
	verify := t.unverified()
	if d == nil || d.Refusal != "" || t.State.Override != nil {
		return nil, verify
	}
	shown := o.Setting
	if late := t.overtaken(); late != nil {
		shown = late.Setting.onDevice(shown)
	}
	send := t.difference(d.Setting, shown, d.Sent)
	switch {
	case send.isZero() && !d.Confirmed && !t.fresh: // a read tells whether that is still so
		return nil, cmp.Or(verify, &t.Now)
	case send.isZero(), d.Sent && verify != nil:
		return nil, verify
	}
	if d.Sent {
		t.missWrite()
	}
	if at := t.State.Retry.At; at != nil && at.After(t.Now) {
		return nil, at
	}
	return &send, &t.Now
}

// unverified returns when to read the device to see whether it shows the last write; nil: it has shown it, or the time
// for that is over.
func (t *Thermostat) unverified() *time.Time {
	w := t.State.Write
	if w == nil || w.Shown {
		return nil
	}
	switch end := w.At.Add(t.confirmTimeout()); {
	case w.Outcome == Accepted && end.After(t.Now):
		return earliest(&end, new(pollAfter(w.At, t.Now)))
	case w.Outcome == Confirmed && w.At.Add(t.readLag()).After(t.Now):
		return new(w.At.Add(t.readLag()))
	}
	return nil
}

// The delays between reads after a write that was accepted.
const (
	pollFirst = time.Second
	pollLast  = 15 * time.Second
)

// pollAfter returns when to read next for a write at since.
func pollAfter(since, now time.Time) time.Time {
	return now.Add(max(pollFirst, min(now.Sub(since)/2, pollLast)))
}

// expireAttempts fails the attempts that are past their deadline. Their setting stays wanted.
func (t *Thermostat) expireAttempts() {
	message := "The thermostat did not confirm in time. The server keeps retrying."
	if !t.Online {
		message = "The thermostat was offline all the time. The server applies the setting when it is back."
	}
	t.endWaiting(func(w Waiting) bool { return !w.Deadline.After(t.Now) }, func(w Waiting) Ended {
		return Ended{
			Attempt:   w.ID,
			ErrorType: "action_attempt_expired",
			Message:   message,
		}
	})
}

// earliest returns the earliest of the times that are not nil; nil: there is none.
func earliest(times ...*time.Time) (first *time.Time) {
	for _, at := range times {
		if at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}
