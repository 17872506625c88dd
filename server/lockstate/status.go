package lockstate

import (
	"fmt"
	"slices"
	"time"
)

// After a permanently refused change, the device keeps the last confirmed state of the code. That state determines the
// code's status until its next change.

// statusOn returns the status of a code whose desired state is on its device.
func (c *Code) statusOn(now time.Time) Status {
	if !c.hasStarted(now) {
		return StatusUnset
	}
	return StatusSet
}

// setFallbackStatus sets the status of a code with a refused change according to its confirmed state.
func (l *Lock) setFallbackStatus(c *Code) {
	c.Status = StatusUnset
	if c.AppliedGen > 0 && (c.Applied == nil || l.opens(c, c.Applied)) {
		c.Status = StatusSet
	}
}

// opens reports whether the confirmed state of a code opens now. A device without native schedules accepts a code until
// its removal.
func (l *Lock) opens(c *Code, has *State) bool {
	over := NativeSchedule(c, l.caps()) && has.EndsAt != nil && !has.EndsAt.After(l.Now)
	return !over && (has.StartsAt == nil || !has.StartsAt.After(l.Now))
}

// fallbackState returns the confirmed state of a code with a refused change, nil if unknown or for any other code.
func (c *Code) fallbackState() *State {
	if c.AppliedGen == 0 || c.BlockedGen < c.DesiredGen {
		return nil
	}
	return c.Applied
}

// fallbackDue returns when a code with a refused change next starts or stops opening or ends; nil means never.
func (l *Lock) fallbackDue(c *Code) *time.Time {
	due := c.EndsAt
	if has := c.fallbackState(); has != nil {
		for _, at := range []*time.Time{has.StartsAt, has.EndsAt} {
			if at != nil && at.After(l.Now) {
				due = earlier(due, *at)
			}
		}
	}
	return due
}

// startFallback updates the status of a code with a refused change when its confirmed state starts or stops opening. It
// emits an event when the code starts to open.
func (l *Lock) startFallback(c *Code) {
	has := c.fallbackState()
	if has == nil {
		return
	}
	switch opens := l.opens(c, has); {
	case !opens && c.Status == StatusSet:
		c.Status = StatusUnset
	case opens && c.Status == StatusUnset:
		c.Status = StatusSet
		l.emitWithPIN("access_code.set_on_device", c, has.PIN)
	}
}

// The warnings of a delayed operation.
const (
	WarnDelaySetting  = "delay_in_setting_on_device"
	WarnDelayRemoving = "delay_in_removing_from_device"
	WarnDelayIssuing  = "delay_in_issuing"
)

// warnsOfDelay reports whether the warning of a code is one of the delay warnings.
func (c *Code) warnsOfDelay() bool {
	return c.Warning != nil &&
		slices.Contains([]string{WarnDelaySetting, WarnDelayRemoving, WarnDelayIssuing}, c.Warning.Code)
}

// delay returns the warning of a code that has a pending operation, and the time from which the operation counts as
// delayed. The warning is empty for a code without a pending operation.
func (l *Lock) delay(c *Code) (warning, message string, late time.Time) {
	var since time.Time
	switch {
	case !c.Managed:
	case c.RemovingSince != nil:
		warning, since = WarnDelayRemoving, *c.RemovingSince
		message = "The code has not been removed from its device for a while. " +
			"The server keeps retrying: until then the code may still open."
	case c.hasPendingChange():
		warning, since = WarnDelaySetting, c.DesiredAt
		if when := ProgramAt(c, l.caps()); when != nil && when.After(since) {
			since = *when
		}
		if c.StartsAt != nil && c.Status == StatusUnset && !c.mayBeOnDevice() { // or waits for its turn
			since = *c.StartsAt
		}
		message = "The code has not been set on its device for a while. The server keeps retrying."
		if earlier := l.earlierOfPIN(c); earlier != nil {
			message = fmt.Sprintf("The code waits until access code %s, which has the same code, has left the device. "+
				"Give this access code another code, or check why the other one stays.", earlier.ID)
		}
		if c.Offline != "" {
			warning = WarnDelayIssuing
			message = "The vendor has not issued the code for a while. The server keeps retrying."
		}
	}
	return warning, message, since.Add(l.Timeouts.DelayAfter)
}

// updateDelayWarning sets the warning of a delay, with one event, and clears the warning of a delay that has ended.
func (l *Lock) updateDelayWarning(c *Code) {
	warning, message, late := l.delay(c)
	if c.warnsOfDelay() && (c.Warning.Code != warning || c.Warning.At.Before(late)) {
		c.Warning = nil
	}
	if warning == "" || c.hasWarning(warning) || late.After(l.Now) {
		return
	}
	l.warn(c, warning, message)
	l.emitProblem("access_code."+warning, c)
}
