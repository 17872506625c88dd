package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// rereadDelay is the delay before a system is read again when only a read can decide.
const rereadDelay = 100 * time.Millisecond

// overloadPause is the delay before a retry when memory for an answer was short.
const overloadPause = 3 * time.Second

// maxOwing is the maximum delay of a system whose account has emitted too many events.
const maxOwing = 6 * time.Hour

// A series of writes runs for at least minWriting, or as long as the last look took, before newer
// requests cause another look, because each look reads the whole system. After maxWriting, the
// system is read again in any case.
const (
	minWriting = time.Second
	maxWriting = 20 * time.Second
)

// userSize is the approximate memory per user, in bytes, while a system is compared with the
// desired state.
const userSize = 2000

// drainSystem reads a system and runs the missing writes.
func (d *Reconciler) drainSystem(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	system, err := d.acs.ReconcileStateOf(ctx, id)
	if err != nil || system.Removed {
		return 0, err
	}
	account, err := d.access.Accounts.GetAccount(ctx, system.AccountID)
	if err != nil || account.Deleted {
		return 0, err
	}
	a, err := d.get(ctx, account)
	if err != nil {
		return 0, err
	}
	pause, err := d.unlockEntrances(ctx, lease, a, system)
	if err == nil && pause == 0 {
		pause, err = d.readAndApply(ctx, lease, a, system)
	}
	if err != nil {
		return 0, err
	}
	return pause, d.acs.ScheduleSystem(ctx, id, system.Seq, pause)
}

// readAndApply reads a system, runs the missing writes, and returns the delay until the next look.
func (d *Reconciler) readAndApply(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
) (time.Duration, error) {
	began := time.Now()
	held, release := adapter.WithMemoryPermit(ctx)
	defer release()
	content, err := a.ReadSystem(held, adapter.SystemRef(system.Ref))
	if err != nil {
		return d.failed(ctx, lease, a, system, err)
	}
	d.silent.Delete(unreachable{system.ID, false})
	d.problems.End(
		d.opt.Log.With("acs_system_id", system.ID),
		systemKey(system.ID),
		"the access system can be reached again",
	)
	known, err := d.acs.UsersOnSystem(ctx, system.ID)
	if err != nil {
		return 0, err
	}
	// The answer may be shorter than the list of users that it is compared with.
	leave, err := adapter.AcquireMemory(held, known*userSize)
	if err != nil {
		return 0, err
	}
	leave() // the permit of the answer covers it
	users, groups, entrances := describe(content)
	todo, later, err := d.acs.RecordContent(ctx, lease, system.ID, users, groups, entrances)
	if err != nil {
		return 0, err
	}
	release() // recorded
	pause := max(jittered(d.opt.SystemInterval), min(d.access.Devices.InventoryDelay(system.AccountID), maxOwing))
	if later > 0 {
		pause = min(pause, later)
	}
	again, stop, err := d.deleteGroups(ctx, lease, a, system)
	if err != nil || stop {
		return again, err
	}
	if again > 0 {
		pause = min(pause, again)
	}
	return d.write(ctx, lease, a, system, todo, pause, time.Since(began))
}

// write runs the writes in todo until another look is due, and returns the delay until that look:
// pause if nothing else is due. looked is how long the last look took.
func (d *Reconciler) write(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
	todo []acs.Write,
	pause, looked time.Duration,
) (time.Duration, error) {
	began := time.Now()
	for i, w := range todo {
		if over, err := d.mustRead(ctx, system, time.Since(began), looked); over || err != nil {
			return rereadDelay, err
		}
		again, err := d.apply(ctx, lease, a, system, w)
		if stop, ok := errors.AsType[*stopped](err); ok {
			switch {
			case stop.wait > 0:
				return stop.wait, nil
			case stop.cause == nil && i+1 < len(todo):
				return rereadDelay, nil
			case stop.cause == nil:
				return min(pause, again), nil
			}
			return d.unwritable(ctx, lease, a, system, stop.cause)
		}
		if err != nil {
			return 0, err
		}
		if again > 0 {
			pause = min(pause, again)
		}
	}
	return pause, nil
}

// mustRead reports whether another look comes before the remaining writes. This is so after
// maxWriting, or after a shorter time if the desired state has changed. The change may be urgent,
// such as a suspension.
func (d *Reconciler) mustRead(
	ctx context.Context,
	system acs.ReconcileState,
	written, looked time.Duration,
) (bool, error) {
	switch {
	case written >= maxWriting:
		return true, nil
	case written < max(minWriting, looked):
		return false, nil
	}
	now, err := d.acs.ReconcileStateOf(ctx, system.ID)
	return now.Seq != system.Seq || now.Removed, err
}

// stopped ends a series of writes. The others would fail for the same cause, or a look must come
// first.
type stopped struct {
	cause error
	// wait is the pause that the vendor asked for; 0 means none.
	wait time.Duration
}

func (s *stopped) Error() string { return "the remaining writes must wait" }

// apply runs one write and returns the delay until the look at its result; 0 means none.
func (d *Reconciler) apply(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
	w acs.Write,
) (time.Duration, error) {
	if still, err := d.acs.RecordWriteStarted(ctx, lease, system.ID, w); err != nil || !still {
		return 0, err
	}
	ref, err := adapter.UserRef(w.Ref), error(nil)
	if w.Delete {
		err = a.DeleteUser(ctx, adapter.SystemRef(system.Ref), ref)
	} else {
		ref, err = a.PutUser(ctx, adapter.SystemRef(system.Ref), adapter.AccessUser{
			Ref:       ref,
			Key:       w.UserID.String(),
			FullName:  w.Profile.FullName,
			Email:     w.Profile.Email,
			Phone:     w.Profile.Phone,
			StartsAt:  w.Profile.StartsAt,
			EndsAt:    w.Profile.EndsAt,
			Suspended: w.Profile.Suspended,
			Groups:    w.Profile.Groups,
			Entrances: w.Profile.Entrances,
		})
	}
	e := adapter.AsError(err)
	switch {
	case err == nil:
		d.silent.Delete(unreachable{system.ID, true})
		d.problems.End(
			d.opt.Log.With("acs_system_id", system.ID),
			systemKey(system.ID)+"/writes",
			"the access system accepts writes again",
		)
		look, err := d.acs.RecordWritten(ctx, lease, system.ID, w, string(ref))
		if look {
			return rereadDelay, err
		}
		return 0, err
	case e == nil || ctx.Err() != nil:
		return 0, err
	}
	d.opt.Log.Warn(
		"an access system failed a write; the server handles it",
		"acs_system_id",
		system.ID,
		"acs_user_id",
		w.UserID,
		"class",
		e.Class,
		"error",
		e.Message,
	)
	failure := acs.Failure{Message: e.Message, RetryAfter: e.RetryAfter}
	switch e.Class {
	case adapter.Offline, adapter.AuthRevoked, adapter.GatewayDown:
		return 0, &stopped{cause: err}
	// Only a look shows what happened, and further writes may time out as well.
	case adapter.Unconfirmed:
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		if err != nil {
			return 0, err
		}
		// A deferred write holds up no other and is retried later.
		if w.Deferred() {
			return max(again, rereadDelay), nil
		}
		return max(again, rereadDelay), &stopped{}
	// Only a look shows what happened. The delay prevents a busy loop.
	case adapter.NotFound:
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		return max(again, rereadDelay), err
	default:
		failure.Permanent = e.Class == adapter.Invalid || e.Class == adapter.NotSupported
		failure.Rejected = failure.Permanent || e.Class == adapter.Full
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		if failure.Permanent && !w.Delete {
			again = 0
		}
		// The vendor would refuse the other writes as well.
		if err == nil && e.Class == adapter.Transient && e.RetryAfter > 0 {
			err = &stopped{wait: e.RetryAfter}
		}
		return again, err
	}
}

// unwritable records that a readable system refuses writes, and returns the delay until the next
// try.
func (d *Reconciler) unwritable(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
	cause error,
) (time.Duration, error) {
	e := adapter.AsError(cause)
	switch e.Class {
	// Find out whether the credentials are refused for the whole account.
	case adapter.AuthRevoked:
		if refused(ctx, a) {
			return d.failed(ctx, lease, a, system, cause)
		}
	case adapter.GatewayDown:
		if wait := d.graceLeft(unreachable{system.ID, true}); wait > 0 {
			return max(min(wait, time.Second), e.RetryAfter), nil
		}
	}
	d.problems.Warn(
		d.opt.Log.With("acs_system_id", system.ID, "connected_account_id", system.AccountID, "error", cause),
		systemKey(system.ID)+"/writes",
		"an access system refuses writes; the server keeps retrying",
	)
	pause := max(jittered(d.opt.SystemInterval/10), e.RetryAfter)
	return pause, d.acs.RecordUnreachable(ctx, lease, system.ID, e.Message, true)
}

// refused reports whether the vendor refuses the credentials for the whole account.
func refused(ctx context.Context, a adapter.AccessSystems) bool {
	_, err := a.Systems(ctx)
	return adapter.ClassOf(err) == adapter.AuthRevoked
}

// failed records that a system could not be read, and returns the delay until the next try.
func (d *Reconciler) failed(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
	err error,
) (time.Duration, error) {
	e := adapter.AsError(err)
	if errors.Is(err, adapter.ErrSaturated) && ctx.Err() == nil {
		return jittered(overloadPause), nil
	}
	if e == nil || ctx.Err() != nil {
		return 0, err
	}
	switch e.Class {
	case adapter.AuthRevoked:
		// The credentials are valid for the account but not for this system.
		if !refused(ctx, a) {
			break
		}
		if err := d.access.Accounts.RecordAccountRefused(ctx, lease, system.AccountID, e.Message); err != nil {
			return 0, err
		}
	case adapter.NotFound:
		listed, again, err := d.acs.RecordAbsent(ctx, lease, system.ID)
		if err != nil || !listed {
			return again, err
		}
		// Check whether the account's list still shows the system.
		if _, before := d.silent.Load(unreachable{system.ID, false}); !before {
			if err := d.access.Accounts.Hint(ctx, system.AccountID, ""); err != nil {
				return 0, err
			}
		}
		if wait := d.graceLeft(unreachable{system.ID, false}); wait > 0 {
			return min(wait, time.Second), nil
		}
	case adapter.Offline:
	default:
		if wait := d.graceLeft(unreachable{system.ID, false}); wait > 0 {
			return max(min(wait, time.Second), e.RetryAfter), nil
		}
	}
	d.problems.Warn(
		d.opt.Log.With("acs_system_id", system.ID, "connected_account_id", system.AccountID, "error", err),
		systemKey(system.ID),
		"an access system is unreachable; the server keeps retrying",
	)
	pause := max(jittered(d.opt.SystemInterval/10), e.RetryAfter)
	return pause, d.acs.RecordUnreachable(ctx, lease, system.ID, e.Message, false)
}

// describe converts an adapter's answer to the types of package acs.
func describe(c adapter.SystemContent) (users []acs.FoundUser, groups []acs.FoundGroup, entrances []acs.FoundEntrance) {
	for _, u := range c.Users {
		users = append(users, acs.FoundUser{Ref: string(u.Ref), Key: u.Key, Profile: acs.Profile{
			FullName:  u.FullName,
			Email:     u.Email,
			Phone:     u.Phone,
			StartsAt:  u.StartsAt,
			EndsAt:    u.EndsAt,
			Suspended: u.Suspended,
			Groups:    slices.Clone(u.Groups),
			Entrances: slices.Clone(u.Entrances),
		}})
	}
	for _, g := range c.Groups {
		groups = append(groups, acs.FoundGroup{Ref: g.Ref, Name: g.Name, Entrances: g.Entrances})
	}
	for _, e := range c.Entrances {
		entrances = append(entrances, acs.FoundEntrance{Ref: e.Ref, Name: e.Name})
	}
	return users, groups, entrances
}
