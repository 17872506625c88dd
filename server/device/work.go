package device

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
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
)

// Work is a device and the operations that it needs.
type Work struct {
	Device Device
	// Seq is the sequence number of the wake-ups that this work covers.
	Seq int64
	// ReadNeeded is true if the codes of the device may have changed since the last read.
	ReadNeeded bool
	// Failures is the number of consecutive failed reads.
	Failures int
	Codes    []CodeWork
	// Due is when an operation becomes due without another cause.
	Due *time.Time
	// Deadline is when an event or result becomes due, such as the expiry of a pending action attempt.
	Deadline *time.Time
	// LockCommand is the pending lock command, if any.
	LockCommand *LockCommandWork
	AutoLock    *AutoLockWork
	// Issues are the offline codes to issue.
	Issues []IssueWork
	// PositionUnknown is true if the lock must be read, because the reason for its observed position is unknown.
	PositionUnknown bool
}

// CodeWork is the next operation of one code.
type CodeWork struct {
	ID     uuid.UUID
	Action Action
	// Gen is the generation of the desired state to set.
	Gen int64
	// Ref is the reference of the code on the device; empty before it is there.
	Ref string
	PIN string
	// Name is the name that the device gets.
	Name string
	// StartsAt and EndsAt are set if the device enforces the time frame.
	StartsAt, EndsAt *time.Time
	// NoPastStart is true if the device accepts no past StartsAt.
	NoPastStart bool
	// New is true if the code needs a new slot on the device.
	New bool
	// Leaving is true if the code must leave the device.
	Leaving bool
	// TemporaryRemoval is true if the code leaves temporarily, to release its PIN or to be recreated.
	TemporaryRemoval bool
	// WriteUncertain is true if an earlier write may still show.
	WriteUncertain bool
	// anotherPIN is true if that write had a different PIN and the device hides which one it has.
	anotherPIN bool
	// state is the desired state to set.
	state codeState
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
func backoff(n int) time.Duration {
	if n < failureThreshold {
		return firstPause << (n - 1)
	}
	span := min(minPause<<min(n-failureThreshold, 10), maxPause)
	return minPause/2 + rand.N(span)
}

// PlanDevice applies due changes to the rows of a device and returns the operations that the device needs. A device
// that was erased with its workspace counts as removed.
func (s *Service) PlanDevice(ctx context.Context, h domain.Fence, id uuid.UUID) (w Work, err error) {
	err = s.onDevice(ctx, h, id, "look at the codes", func(t *deviceTx) error {
		if t.d.RemovedAt == nil && !t.d.IsManaged {
			w, err = t.planPoolRemoval(ctx)
			return err
		}
		if t.d.RemovedAt != nil {
			if err := t.onDeviceRemoved(ctx); err != nil {
				return err
			}
		} else if err := t.applyDue(ctx); err != nil {
			return err
		} else if err := t.keepPool(ctx); err != nil {
			return err
		}
		w = Work{
			Device:     toDevice(toAnnouncedDevice(t.d)),
			Seq:        t.d.WakeSeq,
			ReadNeeded: t.d.ReadNeeded || t.d.LastGoodReadAt == nil,
			Failures:   int(t.d.Failures),
		}
		if again := t.d.RereadAt; again != nil {
			w.ReadNeeded = w.ReadNeeded || !again.After(t.now)
			w.Due = earlier(w.Due, *again)
		}
		for _, a := range t.pending {
			w.Deadline = earlier(w.Deadline, t.now.Add(a.DeadlineAt.Sub(t.moment)))
		}
		if late := readPool(t.d).shownAt(t.s.opt.DelayAfter); late != nil {
			w.Deadline = earlier(w.Deadline, *late)
		}
		tell, err := t.s.emitDeviceEvents(ctx, t.tx, &t.d)
		if err != nil {
			return err
		}
		bolt, poll := t.nextLockCommand()
		setting, asked := t.autoLock()
		w.AutoLock = setting
		doubted, again := t.s.lockUnconfirmed(t.d)
		w.LockCommand, w.PositionUnknown = bolt, doubted
		for _, due := range []*time.Time{tell, poll, again, asked} {
			if due != nil {
				w.Due = earlier(w.Due, *due)
			}
		}
		if tell != nil {
			w.Deadline = earlier(w.Deadline, *tell)
		}
		for _, c := range t.codes {
			if warning, _, late := t.delay(c); warning != "" && warning != domain.Value(c.WarningCode) {
				w.Deadline = earlier(w.Deadline, late)
			}
			if offline(*c) {
				issue, due := t.issue(c)
				if due != nil { // even while the device is unreachable
					w.Deadline = earlier(w.Deadline, *due)
				}
				if issue != nil {
					w.Issues = append(w.Issues, *issue)
				}
				continue
			}
			one, due, err := t.work(c)
			if err != nil {
				return err
			}
			if due != nil {
				w.Due = earlier(w.Due, *due)
			}
			// The end counts even while the code is paused or waits for others.
			if c.IsManaged && c.RemovingSince == nil && c.EndsAt != nil {
				w.Due = earlier(w.Due, *c.EndsAt)
			}
			if one.Action != Nothing {
				w.Codes = append(w.Codes, one)
			}
		}
		if w.Deadline != nil {
			w.Due = earlier(w.Due, *w.Deadline)
		}
		if t.d.RemovedAt != nil {
			w.Due = t.nextEnd()
		}
		return nil
	})
	if store.IsNoRows(err) {
		return Work{Device: Device{ID: id, Removed: true}}, nil
	}
	return w, err
}

// earlier returns the earlier of two times, of which the first may be nil.
func earlier(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.Before(b) {
		return a
	}
	return &b
}

// work returns the next operation of a code, and when to look again.
func (t *deviceTx) work(c *dbsqlc.AccessCode) (CodeWork, *time.Time, error) {
	recreate := t.needsRecreate(c)
	leaving := t.leaving(c) || recreate
	action, due := t.s.next(c, t.caps, leaving, t.now)
	switch {
	case (action == Put || action == Delete || action == Find) && t.d.SubscriptionMissingAt != nil:
		action = Nothing // a renewed subscription wakes the device
	case action == Put && (t.holderOfPIN(c) != nil || t.waitsForTurn(c)):
		action = Nothing // the release of the PIN wakes the device
	}
	w := CodeWork{
		ID:               c.AccessCodeID,
		Action:           action,
		Gen:              c.DesiredGen,
		Ref:              domain.Value(c.VendorRef),
		New:              c.VendorRef == nil,
		Leaving:          leaving,
		TemporaryRemoval: recreate || leaving && t.yieldsPIN(c),
		WriteUncertain:   c.VendorRef == nil && c.WriteGen > 0,
		anotherPIN:       t.anotherPIN(c),
	}
	if action == Put || action == Find {
		var err error
		if w.state, err = t.s.stateOf(*c); err != nil {
			return w, nil, err
		}
		if w.Name, err = t.vendorName(c); err != nil {
			return w, nil, err
		}
		w.state.VendorName = &w.Name
		if !t.caps.ProviderPIN { // otherwise the vendor keeps its own
			w.PIN = domain.Value(w.state.PIN)
		}
		if nativeSchedule(*c, t.caps) {
			w.StartsAt, w.EndsAt = c.StartsAt, c.EndsAt
			w.NoPastStart = t.caps.StartsInFuture()
		}
	}
	return w, due, nil
}

// leaving reports whether a code must leave its device, permanently or temporarily.
func (t *deviceTx) leaving(c *dbsqlc.AccessCode) bool {
	return c.RemovingSince != nil || putOff(*c, t.caps, t.now) || t.yieldsPIN(c)
}

// putOff reports whether a code is, or may be, on a device without native schedules although its start was postponed.
// The code must leave until its new start, because it opens.
func putOff(c dbsqlc.AccessCode, caps capability.Set, now time.Time) bool {
	when := programAt(c, caps)
	return c.IsManaged && c.RemovingSince == nil && when != nil && when.After(now) && !nativeSchedule(c, caps) &&
		(c.VendorRef != nil || c.WriteGen > 0)
}

// next decides the next operation of a code at now, and when to look again.
func (s *Service) next(c *dbsqlc.AccessCode, caps capability.Set, leaving bool, now time.Time) (Action, *time.Time) {
	later := func(t time.Time) *time.Time { return &t }
	paused := c.NextAttemptAt != nil && c.NextAttemptAt.After(now)
	switch {
	case leaving && canRepeatCreate(*c, caps) && paused:
		return Nothing, c.NextAttemptAt
	case leaving && canRepeatCreate(*c, caps):
		return Find, nil
	case leaving && c.VendorRef == nil: // a pending creation must show before the code can be removed
		return Await, later(s.poll(c, now))
	case leaving && c.WriteAccepted && c.WriteGen == 0:
		return Await, later(s.poll(c, now))
	case leaving && paused:
		return Nothing, c.NextAttemptAt
	case leaving:
		return Delete, nil
	case !c.IsManaged:
		return Nothing, nil
	case c.AppliedGen >= c.DesiredGen:
		if c.StartsAt != nil && c.StartsAt.After(now) {
			return Nothing, c.StartsAt
		}
		return Nothing, c.EndsAt
	case c.BlockedGen >= c.DesiredGen && c.VendorRef == nil && c.WriteGen > 0: // refused, but an earlier write may show
		return Await, later(s.poll(c, now))
	case c.BlockedGen >= c.DesiredGen:
		return Nothing, s.asBeforeDue(*c, now)
	}
	if when := programAt(*c, caps); when != nil && when.After(now) && c.VendorRef == nil && c.WriteGen == 0 {
		return Nothing, when
	}
	switch {
	case c.WriteGen >= c.DesiredGen && (c.WriteAccepted || caps.RecreateToChange() && c.VendorRef != nil):
		return Await, later(s.poll(c, now))
	case paused:
		return Nothing, c.NextAttemptAt
	}
	return Put, nil
}

// applyDue applies the changes that are due by time alone.
func (t *deviceTx) applyDue(ctx context.Context) error {
	for _, c := range t.codes {
		if err := t.tickCode(ctx, c); err != nil {
			return err
		}
	}
	for _, a := range t.pending {
		var err error
		c := t.code(domain.Value(a.AccessCodeID))
		switch {
		case a.ActionType == domain.ConvertAccessCode && c != nil && !t.caps.Convertible():
			err = t.failConversion(ctx, c, a, "cannot_be_managed",
				"Codes on devices of this vendor cannot be converted to managed. The code stays unmanaged.")
		case a.ActionType == domain.DeleteUnmanagedAccessCode && c != nil && c.RemovingSince == nil:
			err = t.end(ctx, is(a), Failed, "cannot_delete_unmanaged_access_code",
				"The vendor of this device does not allow the deletion of codes that were not created here.")
		case t.d.SubscriptionMissingAt != nil && c != nil && (a.ActionType == domain.CreateAccessCode ||
			a.ActionType == domain.UpdateAccessCode || a.ActionType == domain.DeleteAccessCode):
			err = t.end(ctx, is(a), Failed, subscriptionRequired,
				unpaid+" The server applies the change when the subscription is renewed.")
		case t.pastDeadline(a) && a.ActionType == domain.ConvertAccessCode && c != nil:
			err = t.failConversion(ctx, c, a, "action_attempt_expired", t.unconverted())
		}
		if err != nil {
			return err
		}
	}
	return t.expireAttempts(ctx)
}

// is returns a function that matches one attempt.
func is(a dbsqlc.ActionAttempt) func(dbsqlc.ActionAttempt) bool {
	return func(b dbsqlc.ActionAttempt) bool { return a.ActionAttemptID == b.ActionAttemptID }
}

func (t *deviceTx) failConversion(
	ctx context.Context, c *dbsqlc.AccessCode, a dbsqlc.ActionAttempt, errorType, message string,
) error {
	var rest []dbsqlc.ActionAttempt
	for _, b := range t.pending {
		if !is(a)(b) {
			rest = append(rest, b)
		}
	}
	t.pending = rest
	return t.s.failConversion(ctx, t.tx, t.d, *c, a, errorType, message)
}

func (t *deviceTx) tickCode(ctx context.Context, c *dbsqlc.AccessCode) error {
	overdue := c.WriteAccepted && c.WriteAt != nil && !c.WriteAt.Add(t.s.opt.ConfirmTimeout).After(t.now)
	switch {
	case t.findExhausted(c) && c.RemovingSince != nil: // never going to show
		return t.deleteCode(ctx, c)
	case t.findExhausted(c):
		if err := t.markRemoved(ctx, c); err != nil {
			return err
		}
	case t.neverConfirmed(c):
		if err := t.recordFailure(
			ctx,
			c,
			c.WriteGen,
			Failure{Class: FailedUnsupported, Message: neverConfirmedMessage},
		); err != nil {
			return err
		}
	case overdue && !t.leaving(c):
		if err := t.recordFailure(ctx, c, c.WriteGen, Failure{
			Class:   FailedForNow,
			Message: "The device did not confirm the code.",
		}); err != nil {
			return err
		}
	case overdue && c.VendorRef != nil && c.WriteGen == 0:
		if err := t.failedToRemove(ctx, c, Failure{
			Class:   FailedForNow,
			Message: "The device did not confirm the removal.",
			Unsure:  true,
		}); err != nil {
			return err
		}
	}
	if err := t.updateDelayWarning(ctx, c); err != nil {
		return err
	}
	if !c.IsManaged || c.RemovingSince != nil {
		return nil
	}
	// After a refusal, an earlier write will never show.
	if !t.caps.ListCodes && c.VendorRef == nil && c.BlockedGen >= c.DesiredGen && !t.onItsWay(c) && !t.anotherPIN(c) {
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.EndsAt != nil && !c.EndsAt.After(t.now) {
		return t.expire(ctx, c)
	}
	t.retryByRecreate(c)
	if err := t.skipRecreate(ctx, c); err != nil {
		return err
	}
	if c.AppliedGen >= c.DesiredGen && c.Status == string(StatusUnset) && c.StartsAt != nil &&
		!c.StartsAt.After(t.now) {
		c.Status = string(StatusSet)
		return t.emitWithPIN(ctx, "access_code.set_on_device", c)
	}
	if err := t.startDue(ctx, c); err != nil {
		return err
	}
	if c.Status == string(StatusUnknown) { // its device has returned
		c.Status = string(StatusSetting)
		if c.BlockedGen >= c.DesiredGen {
			c.Status = string(StatusUnset)
		}
	}
	if when := programAt(*c, t.caps); c.VendorRef == nil && c.WriteGen == 0 && when != nil {
		if when.After(t.now) || t.waitsForTurn(c) { // attempts do not wait for the programming time
			c.Status = string(StatusUnset)
			return t.settle(ctx, c, c.DesiredGen, Succeeded, "", "")
		}
		if c.BlockedGen < c.DesiredGen {
			if c.Status == string(StatusUnset) { // a delay counts from here, although its turn may come late
				c.DesiredAt = t.now
			}
			c.Status = string(StatusSetting)
		}
	}
	return nil
}

// waitsForTurn reports whether an earlier code of the same PIN has not left. The row of a code that may be on the device
// stays until its removal is confirmed.
func (t *deviceTx) waitsForTurn(c *dbsqlc.AccessCode) bool {
	return slices.ContainsFunc(t.codes, func(other *dbsqlc.AccessCode) bool {
		return other != c && len(c.PinMac) > 0 && t.s.keys.Match(other.PinMac, c.PinMac) &&
			frameOf(*other).Apart(frameOf(*c)) && other.StartsAt.Before(*c.StartsAt)
	})
}

// onItsWay reports whether an unconfirmed write may still arrive.
func (t *deviceTx) onItsWay(c *dbsqlc.AccessCode) bool {
	return c.WriteGen > 0 && c.WriteAt != nil && c.WriteAt.Add(t.s.opt.ConfirmTimeout).After(t.now)
}

// expire removes a code whose time frame has ended.
func (t *deviceTx) expire(ctx context.Context, c *dbsqlc.AccessCode) error {
	if c.VendorRef == nil && c.WriteGen == 0 || offline(*c) {
		return t.deleteCode(ctx, c)
	}
	c.RemovingSince, c.Status = &t.now, string(StatusRemoving)
	c.Attempts, c.NextAttemptAt = 0, nil
	if c.VendorRef != nil {
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
	}
	return nil
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
func (s *Service) poll(c *dbsqlc.AccessCode, now time.Time) time.Time {
	since := c.WriteAt
	if since == nil {
		since = &now
	}
	return pollAfter(*since, now)
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
