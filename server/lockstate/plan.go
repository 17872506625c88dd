package lockstate

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Action is the next operation of one code.
type Action string

// The actions.
const (
	Nothing Action = ""
	// Put sets or changes the code on its device.
	Put Action = "put"
	// Delete removes the code from its device.
	Delete Action = "delete"
	// Await reads the device until a pending write shows.
	Await Action = "await"
	// Find repeats an uncertain creation on a device that lists no codes, to learn the reference of the code.
	Find Action = "find"
	// Issue asks the vendor for an offline code.
	Issue Action = "issue"
)

// Plan is what a device needs.
type Plan struct {
	// ReadNeeded is true if the codes of the device may have changed since the last read.
	ReadNeeded bool
	// Operations are the next operations of the codes, oldest code first.
	Operations []Operation
	// Issues are the offline codes to issue.
	Issues []Operation
	// Command is the next lock command, and AutoLock the next auto-lock setting; nil: none.
	Command  *Command
	AutoLock *AutoLockCommand
	// Conversions are the references of the unmanaged codes that must become managed.
	Conversions []string
	// Due is when an operation becomes due without another cause; nil: never.
	Due *time.Time
	// Deadline is when an event or result becomes due, even while the device is unreachable.
	Deadline *time.Time
}

// Operation is the next operation of one code.
type Operation struct {
	Code   uuid.UUID
	Action Action
	// Gen is the generation of the desired state to set.
	Gen int64
	// Ref is the reference of the code on the device; empty before it is there.
	Ref string
	// PIN is the PIN to set; empty if the vendor chooses it.
	PIN PIN
	// Name is the name that the device gets.
	Name string
	// StartsAt and EndsAt are set if the device enforces the time frame.
	StartsAt, EndsAt *time.Time
	// NoPastStart is true if the device accepts no past StartsAt.
	NoPastStart bool
	// Offline is the kind of an offline code to issue.
	Offline OfflineKind
	// New is true if the code needs a new slot on the device.
	New bool
	// Leaving is true if the code must leave the device.
	Leaving bool
	// TemporaryRemoval is true if the code leaves temporarily, to release its PIN or to be recreated.
	TemporaryRemoval bool
	// WriteUncertain is true if an earlier write may still show.
	WriteUncertain bool
	// OtherPIN is true if that write had a different PIN and the device hides which one it has.
	OtherPIN bool
	// State is the desired state to set.
	State State
}

// StartAt returns the start time to send to the device at now. For a device that accepts no past start, a past start
// becomes now. Writing many codes takes minutes, so call it before each write.
func (o Operation) StartAt(now time.Time) *time.Time {
	if o.NoPastStart && o.StartsAt != nil && o.StartsAt.Before(now) {
		return &now
	}
	return o.StartsAt
}

const (
	// failureThreshold is the number of consecutive failures after which a code shows an error and the backoff grows.
	failureThreshold = 3
	firstPause       = time.Second
	minPause         = 30 * time.Second
	maxPause         = 30 * time.Minute

	// driftWindow is how long a drift counts as a repetition of the last one.
	driftWindow = 2 * maxPause
)

// backoff returns the delay after the nth consecutive failure, with full jitter for long delays.
func (l *Lock) backoff(n int) time.Duration {
	if n < failureThreshold {
		return firstPause << (n - 1)
	}
	span := min(minPause<<min(n-failureThreshold, 10), maxPause)
	return minPause/2 + l.Sources.Jitter(span)
}

// Plan applies the changes that are due by time alone and returns what the device needs.
func (l *Lock) Plan() Plan {
	switch {
	case l.Device.Removed:
		l.onDeviceRemoved()
		return Plan{Due: l.nextEnd()}
	case !l.Device.Managed:
		return l.planPoolRemoval()
	}
	l.applyDue()
	l.keepPool()
	p := Plan{ReadNeeded: l.Device.ReadNeeded}
	if again := l.Device.RereadAt; again != nil {
		p.ReadNeeded = p.ReadNeeded || !again.After(l.Now)
		p.Due = earlier(p.Due, *again)
	}
	l.planAttempts(&p)
	for _, c := range l.Codes {
		l.planCode(&p, c)
	}
	if p.Deadline != nil {
		p.Due = earlier(p.Due, *p.Deadline)
	}
	return p
}

// planAttempts adds the deadlines and commands of the pending attempts.
func (l *Lock) planAttempts(p *Plan) {
	for _, a := range l.Attempts {
		p.Deadline = earlier(p.Deadline, a.Deadline)
		if c := l.Code(a.CodeID); a.Type == domain.ConvertAccessCode && c != nil && !c.Managed {
			p.Conversions = append(p.Conversions, c.Ref)
		}
	}
	if late := l.Device.Pool.shownAt(l.Timeouts.DelayAfter); late != nil {
		p.Deadline = earlier(p.Deadline, *late)
	}
	var polls [2]*time.Time
	p.Command, polls[0] = l.nextCommand()
	p.AutoLock, polls[1] = l.nextAutoLock()
	for _, at := range polls {
		if at != nil {
			p.Due = earlier(p.Due, *at)
		}
	}
}

// planCode adds the next operation of a code.
func (l *Lock) planCode(p *Plan, c *Code) {
	if warning, _, late := l.delay(c); warning != "" && !c.hasWarning(warning) {
		p.Deadline = earlier(p.Deadline, late)
	}
	if c.Offline != "" {
		issue, due := l.issue(c)
		if due != nil { // even while the device is unreachable
			p.Deadline = earlier(p.Deadline, *due)
		}
		if issue != nil {
			p.Issues = append(p.Issues, *issue)
		}
		return
	}
	op, due := l.operation(c)
	if due != nil {
		p.Due = earlier(p.Due, *due)
	}
	// The end counts even while the code is paused or waits for others.
	if c.Managed && c.RemovingSince == nil && c.EndsAt != nil {
		p.Due = earlier(p.Due, *c.EndsAt)
	}
	if op.Action != Nothing {
		p.Operations = append(p.Operations, op)
	}
}

// operation returns the next operation of a code, and when to look again.
func (l *Lock) operation(c *Code) (Operation, *time.Time) {
	recreate := l.needsRecreate(c)
	leaving := l.leaving(c) || recreate
	action, due := l.next(c, leaving)
	switch {
	case (action == Put || action == Delete || action == Find) && l.Device.SubscriptionMissing:
		action = Nothing // a renewed subscription wakes the device
	case action == Put && (l.pinHolder(c) != nil || l.waitsForTurn(c)):
		action = Nothing // the release of the PIN wakes the device
	}
	op := Operation{
		Code:             c.ID,
		Action:           action,
		Gen:              c.DesiredGen,
		Ref:              c.Ref,
		New:              c.Ref == "",
		Leaving:          leaving,
		TemporaryRemoval: recreate || leaving && l.yieldsPIN(c),
		WriteUncertain:   c.Ref == "" && c.WriteGen > 0,
		OtherPIN:         l.anotherPIN(c),
	}
	if action == Put || action == Find {
		op.State = c.State()
		op.Name = l.vendorName(c)
		op.State.VendorName = &op.Name
		if !l.caps().ProviderPIN { // otherwise the vendor keeps its own
			op.PIN = c.PIN
		}
		if NativeSchedule(c, l.caps()) {
			op.StartsAt, op.EndsAt = c.StartsAt, c.EndsAt
			op.NoPastStart = l.caps().StartsInFuture()
		}
	}
	return op, due
}

// leaving reports whether a code must leave its device, permanently or temporarily.
func (l *Lock) leaving(c *Code) bool {
	return c.RemovingSince != nil || l.postponed(c) || l.yieldsPIN(c)
}

// postponed reports whether a code is, or may be, on a device without native schedules although its start was
// postponed. The code must leave until its new start, because it opens.
func (l *Lock) postponed(c *Code) bool {
	when := ProgramAt(c, l.caps())
	return c.Managed && c.RemovingSince == nil && when != nil && when.After(l.Now) && !NativeSchedule(c, l.caps()) &&
		c.mayBeOnDevice()
}

// mayBeOnDevice reports whether a code is, or may be, on its device.
func (c *Code) mayBeOnDevice() bool { return c.Ref != "" || c.WriteGen > 0 }

const (
	nativeAhead  = 72 * time.Hour   // for a device that enforces time frames
	programAhead = 60 * time.Minute // for any other device
)

// ProgramAt returns when a time-bound code must be on its device; nil for any other code.
func ProgramAt(c *Code, caps capability.Set) *time.Time {
	if c.StartsAt == nil || c.Offline != "" {
		return nil
	}
	ahead := programAhead
	if NativeSchedule(c, caps) {
		ahead = nativeAhead
	}
	return new(c.StartsAt.Add(-ahead))
}

// NativeSchedule reports whether the device enforces the code's time frame. A pulled backup code is not recreated for
// that: it opens immediately and is removed at its end.
func NativeSchedule(c *Code, caps capability.Set) bool {
	return caps.NativeSchedule && c.PreferNativeScheduling && (!caps.RecreateToChange() || !c.IsBackup)
}

// next decides the next operation of a code, and when to look again.
func (l *Lock) next(c *Code, leaving bool) (Action, *time.Time) {
	paused := c.NextAttemptAt != nil && c.NextAttemptAt.After(l.Now)
	switch {
	case leaving && c.canRepeatCreate(l.caps()) && paused:
		return Nothing, c.NextAttemptAt
	case leaving && c.canRepeatCreate(l.caps()):
		return Find, nil
	case leaving && c.Ref == "": // a pending creation must show before the code can be removed
		return Await, l.poll(c)
	case leaving && c.WriteAccepted && c.WriteGen == 0:
		return Await, l.poll(c)
	case leaving && paused:
		return Nothing, c.NextAttemptAt
	case leaving:
		return Delete, nil
	case !c.Managed:
		return Nothing, nil
	case c.AppliedGen >= c.DesiredGen:
		if !c.hasStarted(l.Now) {
			return Nothing, c.StartsAt
		}
		return Nothing, c.EndsAt
	case c.BlockedGen >= c.DesiredGen && l.mayShow(c): // refused, but an earlier write may show
		return Await, l.poll(c)
	case c.BlockedGen >= c.DesiredGen:
		return Nothing, l.fallbackDue(c)
	}
	if when := ProgramAt(c, l.caps()); when != nil && when.After(l.Now) && !c.mayBeOnDevice() {
		return Nothing, when
	}
	switch {
	case c.WriteGen >= c.DesiredGen && (c.WriteAccepted || l.caps().RecreateToChange() && c.Ref != ""):
		return Await, l.poll(c)
	case paused:
		return Nothing, c.NextAttemptAt
	}
	return Put, nil
}

// applyDue applies the changes that are due by time alone.
func (l *Lock) applyDue() {
	for _, c := range l.Codes {
		l.advance(c)
	}
	for _, a := range l.Attempts {
		c := l.Code(a.CodeID)
		switch {
		case c == nil:
		case a.Type == domain.ConvertAccessCode && !l.caps().Convertible():
			l.failConversion(c, a, "cannot_be_managed",
				"Codes on devices of this vendor cannot be converted to managed. The code stays unmanaged.")
		case a.Type == domain.DeleteUnmanagedAccessCode && c.RemovingSince == nil:
			l.End(a.ID, Failed, "cannot_delete_unmanaged_access_code",
				"The vendor of this device does not allow the deletion of codes that were not created here.")
		case l.Device.SubscriptionMissing && (a.Type == domain.CreateAccessCode ||
			a.Type == domain.UpdateAccessCode || a.Type == domain.DeleteAccessCode):
			l.End(a.ID, Failed, SubscriptionRequired,
				Unpaid+" The server applies the change when the subscription is renewed.")
		case a.overdue(l.Now) && a.Type == domain.ConvertAccessCode:
			l.failConversion(c, a, "action_attempt_expired", l.unconvertedMessage())
		}
	}
	l.expireAttempts()
}

const (
	// SubscriptionRequired is the error_code of a device whose vendor requires a subscription.
	SubscriptionRequired = "subscription_required"
	// Unpaid is the message about a missing subscription.
	Unpaid = "The vendor of the device requires a subscription for access codes, and there is none."
)

// advance applies what is due to one code.
func (l *Lock) advance(c *Code) {
	if l.endUnconfirmed(c) {
		return
	}
	l.updateDelayWarning(c)
	if !c.Managed || c.RemovingSince != nil {
		return
	}
	// After a refusal, an earlier write will never show.
	if !l.caps().ListCodes && c.Ref == "" && c.BlockedGen >= c.DesiredGen && !l.onItsWay(c) && !l.anotherPIN(c) {
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.hasEnded(l.Now) {
		l.expire(c)
		return
	}
	l.retryByRecreate(c)
	l.skipRecreate(c)
	if c.AppliedGen >= c.DesiredGen && c.Status == StatusUnset && c.StartsAt != nil && c.hasStarted(l.Now) &&
		!c.disabledWithPermission() {
		c.Status = StatusSet
		l.emitWithPIN("access_code.set_on_device", c, c.PIN)
		return
	}
	l.startFallback(c)
	if c.Status == StatusUnknown { // its device has returned
		c.Status = StatusSetting
		if c.BlockedGen >= c.DesiredGen {
			c.Status = StatusUnset
		}
	}
	if when := ProgramAt(c, l.caps()); !c.mayBeOnDevice() && when != nil {
		if when.After(l.Now) || l.waitsForTurn(c) { // attempts do not wait for the programming time
			c.Status = StatusUnset
			l.settle(c, c.DesiredGen, Succeeded, "", "")
			return
		}
		if c.BlockedGen < c.DesiredGen {
			if c.Status == StatusUnset { // a delay counts from here, although its turn may come late
				c.DesiredAt = l.Now
			}
			c.Status = StatusSetting
		}
	}
}

// endUnconfirmed ends an operation that was not confirmed in time. It reports whether that deleted the code.
func (l *Lock) endUnconfirmed(c *Code) (deleted bool) {
	overdue := c.WriteAccepted && c.WriteAt != nil && !c.WriteAt.Add(l.Timeouts.Confirm).After(l.Now)
	switch {
	case l.findExhausted(c) && c.RemovingSince != nil: // never going to show
		l.deleteCode(c)
		return true
	case l.findExhausted(c):
		l.markRemoved(c)
	case l.neverConfirmed(c):
		l.recordFailure(c, c.WriteGen, Failure{Class: FailedUnsupported, Message: neverConfirmedMessage})
	case overdue && !l.leaving(c):
		l.recordFailure(c, c.WriteGen, Failure{
			Class:   FailedForNow,
			Message: "The device did not confirm the code.",
		})
	case overdue && c.Ref != "" && c.WriteGen == 0:
		l.failedToRemove(c, Failure{
			Class:   FailedForNow,
			Message: "The device did not confirm the removal.",
			Unsure:  true,
		})
	}
	return false
}

// mayShow reports whether a read may show an uncertain creation.
func (l *Lock) mayShow(c *Code) bool {
	return c.Ref == "" && c.WriteGen > 0 && (l.caps().ListCodes || l.onItsWay(c))
}

// onItsWay reports whether an unconfirmed write may still arrive.
func (l *Lock) onItsWay(c *Code) bool {
	return c.WriteGen > 0 && c.WriteAt != nil && c.WriteAt.Add(l.Timeouts.Confirm).After(l.Now)
}

// expire removes a code whose time frame has ended.
func (l *Lock) expire(c *Code) {
	if !c.mayBeOnDevice() || c.Offline != "" {
		l.deleteCode(c)
		return
	}
	l.startRemoval(c)
}

// startRemoval marks a code for removal from its device.
func (l *Lock) startRemoval(c *Code) {
	c.RemovingSince, c.Status = new(l.Now), StatusRemoving
	c.Attempts, c.NextAttemptAt = 0, nil
	if c.Ref != "" { // a pending write is irrelevant; without a reference the code must be found first
		c.clearWrite()
	}
}

const (
	// pollFirst is the shortest interval between reads for a pending write.
	pollFirst = 200 * time.Millisecond
	// pollSoon is the longest interval in the first minutes.
	pollSoon = 5 * time.Second
	// pollLast is the longest interval.
	pollLast = 10 * time.Minute
)

// poll returns when to read next for a pending write, at growing intervals.
func (l *Lock) poll(c *Code) *time.Time {
	since := l.Now
	if c.WriteAt != nil {
		since = *c.WriteAt
	}
	return new(pollAfter(since, l.Now))
}

// pollAfter returns when to read next for an operation started at since. A start in the future means that the clock was
// stepped back.
func pollAfter(since, now time.Time) time.Time {
	passed := now.Sub(since)
	if passed < 0 {
		return now.Add(pollSoon)
	}
	return now.Add(max(pollFirst, min(passed/2, pollSoon), min(passed/24, pollLast)))
}

// expireAttempts fails the attempts that are past their deadline.
func (l *Lock) expireAttempts() {
	for _, late := range []struct {
		what    func(Attempt) bool
		message string
	}{
		{
			func(a Attempt) bool { return a.Type == domain.ConfigureAutoLock },
			"The device did not confirm in time. Look at auto_lock_enabled in its properties before you try again.",
		},
		{MovesBolt, "The device did not confirm in time. Look at its locked property before you try again."},
		{func(Attempt) bool { return true }, l.expiredMessage()},
	} {
		l.endAll(func(a Attempt) bool { return a.overdue(l.Now) && late.what(a) },
			Failed, "action_attempt_expired", late.message)
	}
}

// expiredMessage returns the message of an expired attempt.
func (l *Lock) expiredMessage() string {
	if !l.Device.Online {
		return "The device was offline all the time. The server applies the change when the device is back."
	}
	return "The device did not confirm in time. The server keeps retrying."
}

// unconvertedMessage is expiredMessage for a conversion, which the server does not retry.
func (l *Lock) unconvertedMessage() string {
	if !l.Device.Online {
		return "The device was offline all the time. " +
			"The code stays unmanaged. Convert it when the device is back."
	}
	return "The device could not be read in time. The code stays unmanaged. Convert it again."
}
