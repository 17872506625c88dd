package access

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Action is what there is to do about one code.
type Action string

const (
	Nothing Action = ""
	Put     Action = "put"
	Delete  Action = "delete"
	Await   Action = "await" // a write is on its way: read until it shows
	Find    Action = "find"  // a creation in doubt is to leave, and nobody can look: have it made once more, to learn where it is
)

// DeviceWork is a device and what there is to do on it.
type DeviceWork struct {
	Device     Device
	Seq        int64 // of the wake-ups it covers
	ReadNeeded bool  // what is on it may have changed since it was last read
	Failures   int   // reads in a row that failed
	Codes      []CodeWork
	Due        *time.Time // when something becomes due without anything else happening
	Deadline   *time.Time // when something is to be told, such as that a pending action attempt is given up
	Bolt       *BoltWork  // what there is to do about its bolt
	AutoLock   *AutoLockWork
	Issues     []IssueWork // offline codes that are to be made
	Doubted    bool        // its bolt is to be looked at: nobody has told why it is where it was seen
}

// CodeWork is what there is to do about one code.
type CodeWork struct {
	ID               uuid.UUID
	Action           Action
	Gen              int64  // what is put
	Ref              string // the code on the device; empty before it is there
	PIN              string
	Name             string
	StartsAt, EndsAt *time.Time // where the device is to keep them
	NoPastStart      bool       // the device takes no StartsAt that is past
	New              bool       // it takes a place on the device that it does not have yet
	Leaving          bool       // it is to leave the device, or is about to
	Aside            bool       // it leaves for a moment only: for others to have its PIN, or to be put anew
	InDoubt          bool       // an earlier write of it may still show
	anotherPIN       bool       // that was sent with another PIN, and nobody will see which one is there
	state            codeState  // what is put
}

const (
	patience   = 3 // failures in a row until a code shows an error, and pauses grow
	firstPause = time.Second
	minPause   = 30 * time.Second
	maxPause   = 30 * time.Minute

	disputeMemory = 2 * maxPause // after that a dispute is another one
)

// backoff is the pause after the nth failure in a row, with full jitter once it is long.
func backoff(n int) time.Duration {
	if n < patience {
		return firstPause << (n - 1)
	}
	span := min(minPause<<min(n-patience, 10), maxPause)
	return minPause/2 + rand.N(span)
}

// LookAtDevice brings what is written down about a device up to the time and says what there is to do on it. One that
// was erased with its workspace is one that was removed.
func (s *Service) LookAtDevice(ctx context.Context, h Holder, id uuid.UUID) (w DeviceWork, err error) {
	err = s.onDevice(ctx, h, id, "look at the codes", func(t *deviceTx) error {
		if t.d.RemovedAt == nil && !t.d.IsManaged {
			w, err = t.lookForPool(ctx)
			return err
		}
		if t.d.RemovedAt != nil {
			if err := t.deviceGone(ctx); err != nil {
				return err
			}
		} else if err := t.tick(ctx); err != nil {
			return err
		} else if err := t.keepPool(ctx); err != nil {
			return err
		}
		w = DeviceWork{Device: toDevice(told(t.d)), Seq: t.d.WakeSeq, ReadNeeded: t.d.ReadNeeded || t.d.LastGoodReadAt == nil, Failures: int(t.d.Failures)}
		if again := t.d.RereadAt; again != nil {
			w.ReadNeeded = w.ReadNeeded || !again.After(t.now)
			w.Due = earlier(w.Due, *again)
		}
		for _, a := range t.pending {
			w.Deadline = earlier(w.Deadline, t.now.Add(a.DeadlineAt.Sub(t.moment)))
		}
		if late := readPool(t.d).late(t.s.opt.DelayAfter); late != nil {
			w.Deadline = earlier(w.Deadline, *late)
		}
		tell, err := t.s.tell(ctx, t.tx, &t.d)
		if err != nil {
			return err
		}
		bolt, poll := t.bolt()
		setting, asked := t.autoLock()
		w.AutoLock = setting
		doubted, again := t.s.boltDoubted(t.d)
		w.Bolt, w.Doubted = bolt, doubted
		for _, due := range []*time.Time{tell, poll, again, asked} {
			if due != nil {
				w.Due = earlier(w.Due, *due)
			}
		}
		if tell != nil {
			w.Deadline = earlier(w.Deadline, *tell)
		}
		for _, c := range t.codes {
			if warning, _, late := t.delay(c); warning != "" && warning != text(c.WarningCode) {
				w.Deadline = earlier(w.Deadline, late)
			}
			if offline(*c) {
				issue, due := t.issue(c)
				if due != nil { // also while the device cannot be reached
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
			if c.IsManaged && c.RemovingSince == nil && c.EndsAt != nil { // also while it rests, or waits for others
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
		return DeviceWork{Device: Device{ID: id, Removed: true}}, nil
	}
	return w, err
}

func earlier(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.Before(b) {
		return a
	}
	return &b
}

// work says what there is to do about a code now, and when there is something otherwise.
func (t *deviceTx) work(c *dbsqlc.AccessCode) (CodeWork, *time.Time, error) {
	anew := t.putsAnew(c)
	leaving := t.leaving(c) || anew
	action, due := t.s.next(c, t.caps, leaving, t.now)
	switch {
	case (action == Put || action == Delete || action == Find) && t.d.SubscriptionMissingAt != nil:
		action = Nothing // looked at again as soon as it is paid for
	case action == Put && t.holder(c) != nil:
		action = Nothing // looked at again as soon as the PIN is free
	}
	w := CodeWork{ID: c.AccessCodeID, Action: action, Gen: c.DesiredGen, Ref: text(c.VendorRef), Name: text(c.Name), New: c.VendorRef == nil,
		Leaving: leaving, Aside: anew || leaving && t.aside(c), InDoubt: c.VendorRef == nil && c.WriteGen > 0, anotherPIN: t.anotherPIN(c)}
	if action == Put || action == Find {
		var err error
		if w.state, err = t.s.stateOf(*c); err != nil {
			return w, nil, err
		}
		if !t.caps.ProviderPIN { // the vendor keeps the one it has invented
			w.PIN = text(w.state.PIN)
		}
		if nativeSchedule(*c, t.caps) {
			w.StartsAt, w.EndsAt = c.StartsAt, c.EndsAt
			w.NoPastStart = t.caps.startsInFuture()
		}
	}
	return w, due, nil
}

func (t *deviceTx) leaving(c *dbsqlc.AccessCode) bool {
	return c.RemovingSince != nil || putOff(*c, t.caps, t.now) || t.aside(c)
}

// putOff says whether a code is, or may be, on a device that keeps no time frames although its own has been
// moved far ahead: it has to leave until then, for it opens.
func putOff(c dbsqlc.AccessCode, caps Capabilities, now time.Time) bool {
	when := programAt(c, caps)
	return c.IsManaged && c.RemovingSince == nil && when != nil && when.After(now) && !nativeSchedule(c, caps) &&
		(c.VendorRef != nil || c.WriteGen > 0)
}

// next decides what there is to do about a code at now, and when to look again. It is where the states of a
// code meet the clock.
func (s *Service) next(c *dbsqlc.AccessCode, caps Capabilities, leaving bool, now time.Time) (Action, *time.Time) {
	later := func(t time.Time) *time.Time { return &t }
	paused := c.NextAttemptAt != nil && c.NextAttemptAt.After(now)
	switch {
	case leaving && findable(*c, caps) && paused:
		return Nothing, c.NextAttemptAt
	case leaving && findable(*c, caps):
		return Find, nil
	case leaving && c.VendorRef == nil: // a put on its way has to show before it can be taken back
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
	case c.BlockedGen >= c.DesiredGen && c.VendorRef == nil && c.WriteGen > 0: // refused, and may be there from an earlier write
		return Await, later(s.poll(c, now))
	case c.BlockedGen >= c.DesiredGen:
		return Nothing, s.asBeforeDue(*c, now)
	}
	if when := programAt(*c, caps); when != nil && when.After(now) && c.VendorRef == nil && c.WriteGen == 0 {
		return Nothing, when
	}
	switch {
	case c.WriteGen >= c.DesiredGen && (c.WriteAccepted || caps.PutAnew && c.VendorRef != nil):
		return Await, later(s.poll(c, now))
	case paused:
		return Nothing, c.NextAttemptAt
	}
	return Put, nil
}

// tick does what the clock alone asks for.
func (t *deviceTx) tick(ctx context.Context) error {
	for _, c := range t.codes {
		if err := t.tickCode(ctx, c); err != nil {
			return err
		}
	}
	for _, a := range t.pending {
		var err error
		c := t.code(idOf(a.AccessCodeID))
		switch {
		case a.ActionType == ConvertAccessCode && c != nil && !t.caps.Convertible:
			err = t.failConversion(ctx, c, a, "cannot_be_managed", "Codes on devices of this vendor cannot be converted to managed. The code stays as it is, unmanaged.")
		case a.ActionType == DeleteUnmanagedAccessCode && c != nil && c.RemovingSince == nil:
			err = t.end(ctx, is(a), Failed, "cannot_delete_unmanaged_access_code", "The vendor of this device does not let codes be deleted that were not created here.")
		case t.d.SubscriptionMissingAt != nil && c != nil && (a.ActionType == CreateAccessCode || a.ActionType == UpdateAccessCode || a.ActionType == DeleteAccessCode):
			err = t.end(ctx, is(a), Failed, subscriptionRequired, unpaid+" It is done when it is renewed.")
		case t.late(a) && a.ActionType == ConvertAccessCode && c != nil:
			err = t.failConversion(ctx, c, a, "action_attempt_expired", t.unconverted())
		}
		if err != nil {
			return err
		}
	}
	return t.giveUp(ctx)
}

func is(a dbsqlc.ActionAttempt) func(dbsqlc.ActionAttempt) bool {
	return func(b dbsqlc.ActionAttempt) bool { return a.ActionAttemptID == b.ActionAttemptID }
}

func (t *deviceTx) failConversion(ctx context.Context, c *dbsqlc.AccessCode, a dbsqlc.ActionAttempt, errorType, message string) error {
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
	case t.unfound(c) && c.RemovingSince != nil: // it will never show
		return t.gone(ctx, c)
	case t.unfound(c):
		if err := t.off(ctx, c); err != nil {
			return err
		}
	case t.unheard(c):
		if err := t.failed(ctx, c, c.WriteGen, Failure{Class: FailedUnsupported, Message: unheardOf}); err != nil {
			return err
		}
	case overdue && !t.leaving(c):
		if err := t.failed(ctx, c, c.WriteGen, Failure{Class: FailedForNow, Message: "The device did not confirm the code."}); err != nil {
			return err
		}
	case overdue && c.VendorRef != nil && c.WriteGen == 0:
		if err := t.failedToRemove(ctx, c, Failure{Class: FailedForNow, Message: "The device did not confirm the removal.", Unsure: true}); err != nil {
			return err
		}
	}
	if err := t.tellDelay(ctx, c); err != nil {
		return err
	}
	if !c.IsManaged || c.RemovingSince != nil {
		return nil
	}
	if !t.caps.ListCodes && c.VendorRef == nil && c.BlockedGen >= c.DesiredGen && !t.onItsWay(c) && !t.anotherPIN(c) { // refused: what was written before will never show
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.EndsAt != nil && !c.EndsAt.After(t.now) {
		return t.expire(ctx, c)
	}
	t.retryAnew(c)
	if err := t.keepAsItIs(ctx, c); err != nil {
		return err
	}
	if c.AppliedGen >= c.DesiredGen && c.Status == string(StatusUnset) && c.StartsAt != nil && !c.StartsAt.After(t.now) {
		c.Status = string(StatusSet)
		return t.emitWithPIN(ctx, "access_code.set_on_device", c)
	}
	if err := t.begin(ctx, c); err != nil {
		return err
	}
	if c.Status == string(StatusUnknown) { // its device was gone, and is back
		c.Status = string(StatusSetting)
		if c.BlockedGen >= c.DesiredGen {
			c.Status = string(StatusUnset)
		}
	}
	if when := programAt(*c, t.caps); c.VendorRef == nil && c.WriteGen == 0 && when != nil {
		if when.After(t.now) { // nothing is left to do but to wait for the time: that is no matter of an attempt
			c.Status = string(StatusUnset)
			return t.settle(ctx, c, c.DesiredGen, Succeeded, "", "")
		}
		if c.BlockedGen < c.DesiredGen {
			c.Status = string(StatusSetting)
		}
	}
	return nil
}

// onItsWay says whether a write that is not confirmed may still arrive.
func (t *deviceTx) onItsWay(c *dbsqlc.AccessCode) bool {
	return c.WriteGen > 0 && c.WriteAt != nil && c.WriteAt.Add(t.s.opt.ConfirmTimeout).After(t.now)
}

// expire takes a code away whose time frame is over.
func (t *deviceTx) expire(ctx context.Context, c *dbsqlc.AccessCode) error {
	if c.VendorRef == nil && c.WriteGen == 0 || offline(*c) {
		return t.gone(ctx, c)
	}
	c.RemovingSince, c.Status = &t.now, string(StatusRemoving)
	c.Attempts, c.NextAttemptAt = 0, nil
	if c.VendorRef != nil {
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
	}
	return nil
}
