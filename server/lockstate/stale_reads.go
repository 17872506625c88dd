package lockstate

import (
	"slices"
	"time"
)

// A read may be stale or incomplete: it may show the state before the last write, omit codes of the device, or be empty
// for a moment after a restart of the vendor.

// emptySince returns since when the list has been unexpectedly empty, nil if the list is credible. Acting on an empty
// list would lose every code.
func (r *reading) emptySince() *time.Time {
	if len(r.Found) > 0 || !slices.ContainsFunc(r.Codes, r.expected) {
		return nil
	}
	since := GracePeriodStart(r.Device.EmptySince, r.Now, r.Timeouts.EmptyListGrace)
	until := since.Add(r.Timeouts.EmptyListGrace)
	if !until.After(r.Now) {
		return nil
	}
	r.again = earlier(r.again, until)
	return since
}

// gracePeriodMemory is how much longer than the grace period its start is remembered.
const gracePeriodMemory = 10 * time.Minute

// GracePeriodStart returns the start of the grace period for an empty list. since is the stored start, if any. A
// start that is too old, for example from before a stop of the server, or in the future after a clock step, is
// replaced by now.
func GracePeriodStart(since *time.Time, now time.Time, grace time.Duration) *time.Time {
	if since == nil || since.After(now) || now.Sub(*since) > grace+gracePeriodMemory {
		return &now
	}
	return since
}

// expected reports whether a code is on the device according to the records.
func (r *reading) expected(c *Code) bool {
	return c.Ref != "" && c.Offline == "" && (!r.leaving(c) || !c.removalSent()) && (!c.Managed || c.AppliedGen > 0)
}

// removalSent reports whether the removal of a leaving code was, or may have been, sent.
func (c *Code) removalSent() bool { return c.WriteGen == 0 && c.WriteAt != nil }

// staleRead reports whether a read may be older than the last confirmed write, and then schedules another read.
func (r *reading) staleRead(c *Code) bool {
	if c.AppliedAt == nil || c.AppliedGen == 0 {
		return false
	}
	return r.rereadAt(c.AppliedAt.Add(r.Timeouts.ReadLag))
}

// rereadAt schedules another read for a time in the future, and reports whether the time is.
func (r *reading) rereadAt(at time.Time) bool {
	if !at.After(r.Now) {
		return false
	}
	r.again = earlier(r.again, at)
	return true
}

// renamed reports whether the shown name of a code differs from the last confirmed one, or need not differ. Devices may
// change names or keep none, but a code with the old name has not been written.
func (r *reading) renamed(c *Code, f Found) bool {
	sent := c.State().vendorName()
	if f.Name == "" || f.Name == sent || c.AppliedGen == 0 || c.WriteGen == 0 {
		return true
	}
	return c.Applied == nil || f.Name != c.Applied.vendorName()
}

// mayReappear reports whether a code that must leave and is not shown may still be on the device: a stale list omits
// codes on their way, and a truncated one omits existing codes. A removal is safer evidence and harmless if the code
// has left. The list is believed after repeated failures of the removal.
func (r *reading) mayReappear(c *Code) bool {
	switch {
	case !c.WriteAccepted:
		unsent := !c.removalSent() || c.Managed && c.AppliedGen == 0
		// Without a subscription, no removal can be sent.
		tried := c.Attempts >= failureThreshold || r.Device.SubscriptionMissing
		return unsent && !tried || r.staleRead(c) || r.maybeLate(c) || r.justFound(c)
	case !c.Managed || c.AppliedGen > 0 || c.WriteAt == nil:
		return false
	}
	return r.rereadAt(c.WriteAt.Add(r.Timeouts.ReadLag))
}

// justFound reports whether an unmanaged code was found so recently that the read may be older than it.
func (r *reading) justFound(c *Code) bool {
	return !c.Managed && r.rereadAt(c.DesiredAt.Add(r.Timeouts.ReadLag))
}

// maybeLate reports whether a never confirmed code that must leave was sent so recently that it may still arrive.
func (r *reading) maybeLate(c *Code) bool {
	if !c.Managed || c.AppliedGen > 0 {
		return false
	}
	since := c.DesiredAt
	for _, at := range []*time.Time{c.RemovingSince, c.WriteAt} {
		if at != nil && at.After(since) {
			since = *at
		}
	}
	return r.rereadAt(since.Add(r.Timeouts.Confirm + r.Timeouts.ReadLag))
}
