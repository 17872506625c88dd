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

// soon is when a system is looked at again that has to be read before anything can be decided.
const soon = 100 * time.Millisecond

// crowded is how long what could not be read for lack of room is put off.
const crowded = 3 * time.Second

// mostOwing is how long a system waits at most of whose account there has been too much to tell.
const mostOwing = 6 * time.Hour

// A system's writes go on for leastWriting, or as long as it took to find what to write, before anything else that was asked for since is
// looked at: each look reads the whole system. After mostWriting it is looked at again in any case.
const (
	leastWriting = time.Second
	mostWriting  = 20 * time.Second
)

// userSize is about what a user takes in memory, in bytes, while a system is compared with what is known of it.
const userSize = 2000

// drainSystem reads what is on a system and does what is missing.
func (d *Driver) drainSystem(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	system, err := d.acs.DrivenSystem(ctx, id)
	if err != nil || system.Removed {
		return 0, err
	}
	account, err := d.access.GetAccount(ctx, system.AccountID)
	if err != nil || account.Deleted {
		return 0, err
	}
	a, err := d.get(ctx, account)
	if err != nil {
		return 0, err
	}
	pause, err := d.lookAndDo(ctx, lease, a, system)
	if err != nil {
		return 0, err
	}
	return pause, d.acs.ScheduleSystem(ctx, id, system.Seq, pause)
}

// lookAndDo says after how long to look again.
func (d *Driver) lookAndDo(ctx context.Context, lease *worker.Lease, a adapter.AccessSystems, system acs.Driven) (time.Duration, error) {
	began := time.Now()
	held, release := adapter.Hold(ctx)
	defer release()
	content, err := a.Look(held, adapter.SystemRef(system.Ref))
	if err != nil {
		return d.failed(ctx, lease, a, system, err)
	}
	d.silent.Delete(silence{system.ID, false})
	known, err := d.acs.UsersOnSystem(ctx, system.ID)
	if err != nil {
		return 0, err
	}
	leave, err := adapter.Room(held, known*userSize) // an answer may be short where there are many that are compared with it
	if err != nil {
		return 0, err
	}
	leave() // it is kept with that of the answer
	users, groups, entrances := describe(content)
	todo, later, err := d.acs.RecordContent(ctx, lease, system.ID, users, groups, entrances)
	if err != nil {
		return 0, err
	}
	release() // it is written down
	pause := max(jittered(d.opt.SystemEvery), min(d.access.Owing(system.AccountID), mostOwing))
	if later > 0 {
		pause = min(pause, later)
	}
	return d.write(ctx, lease, a, system, todo, pause, time.Since(began))
}

// write does what there is to do, until it is better to look at the system again, and says after how long that is: pause, where nothing
// else is due. The look before took that long.
func (d *Driver) write(ctx context.Context, lease *worker.Lease, a adapter.AccessSystems, system acs.Driven, todo []acs.Write, pause, looked time.Duration) (time.Duration, error) {
	began := time.Now()
	for i, w := range todo {
		if over, err := d.over(ctx, system, time.Since(began), looked); over || err != nil {
			return soon, err
		}
		again, err := d.do(ctx, lease, a, system, w)
		if stop, ok := errors.AsType[*stopped](err); ok {
			switch {
			case stop.wait > 0:
				return stop.wait, nil
			case stop.cause == nil && i+1 < len(todo):
				return soon, nil
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

// over says whether the writes that are left give way to a look: they have gone on for long, or, for a while, since somebody asked for
// something else. That may be that a user is kept out, which comes before others.
func (d *Driver) over(ctx context.Context, system acs.Driven, written, looked time.Duration) (bool, error) {
	switch {
	case written >= mostWriting:
		return true, nil
	case written < max(leastWriting, looked):
		return false, nil
	}
	now, err := d.acs.DrivenSystem(ctx, system.ID)
	return now.Seq != system.Seq || now.Removed, err
}

// stopped says that the rest of a system's writes is not to be tried now: they would fail as well, for that cause, or
// it is better to look first.
type stopped struct {
	cause error
	wait  time.Duration // how long the vendor wants to be left alone; 0: it says nothing
}

func (s *stopped) Error() string { return "the rest of the writes has to wait" }

// do makes one write, and says in how long to look again for it (0: no need).
func (d *Driver) do(ctx context.Context, lease *worker.Lease, a adapter.AccessSystems, system acs.Driven, w acs.Write) (time.Duration, error) {
	if still, err := d.acs.RecordWriteStarted(ctx, lease, system.ID, w); err != nil || !still {
		return 0, err
	}
	ref, err := adapter.UserRef(w.Ref), error(nil)
	if w.Delete {
		err = a.DeleteUser(ctx, adapter.SystemRef(system.Ref), ref)
	} else {
		ref, err = a.PutUser(ctx, adapter.SystemRef(system.Ref), adapter.AccessUser{Ref: ref, Key: w.UserID.String(), FullName: w.Profile.FullName, Email: w.Profile.Email,
			Phone: w.Profile.Phone, StartsAt: w.Profile.StartsAt, EndsAt: w.Profile.EndsAt, Suspended: w.Profile.Suspended, Groups: w.Profile.Groups})
	}
	e := adapter.AsError(err)
	switch {
	case err == nil:
		d.silent.Delete(silence{system.ID, true})
		look, err := d.acs.RecordWritten(ctx, lease, system.ID, w, string(ref))
		if look {
			return soon, err
		}
		return 0, err
	case e == nil || ctx.Err() != nil:
		return 0, err
	}
	d.opt.Log.Warn("an access system has not taken a write; it is seen to", "system", system.ID, "user", w.UserID, "class", e.Class, "reason", e.Message)
	failure := acs.Failure{Message: e.Message, RetryAfter: e.RetryAfter}
	switch e.Class {
	case adapter.Offline, adapter.AuthRevoked, adapter.GatewayDown:
		return 0, &stopped{cause: err}
	case adapter.Unconfirmed: // what is there now decides, and others may have to wait as long for no answer
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		if err != nil {
			return 0, err
		}
		if w.Late() { // nobody comes after it who could be written, and it is put off
			return max(again, soon), nil
		}
		return max(again, soon), &stopped{}
	case adapter.NotFound: // what is there now decides; a pause keeps that from going round and round
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		return max(again, soon), err
	default:
		failure.ForGood = e.Class == adapter.Invalid || e.Class == adapter.NotSupported
		failure.Answered = failure.ForGood || e.Class == adapter.Full
		again, err := d.acs.RecordFailure(ctx, lease, system.ID, w, failure)
		if failure.ForGood && !w.Delete {
			again = 0
		}
		if err == nil && e.Class == adapter.Transient && e.RetryAfter > 0 { // the others would be refused as well
			err = &stopped{wait: e.RetryAfter}
		}
		return again, err
	}
}

// unwritable records that a system which could be read just now takes no writes, and says when to try again.
func (d *Driver) unwritable(ctx context.Context, lease *worker.Lease, a adapter.AccessSystems, system acs.Driven, cause error) (time.Duration, error) {
	e := adapter.AsError(cause)
	switch e.Class {
	case adapter.AuthRevoked: // of the whole account, or are they good for reading?
		if refused(ctx, a) {
			return d.failed(ctx, lease, a, system, cause)
		}
	case adapter.GatewayDown:
		if wait := d.patience(silence{system.ID, true}); wait > 0 {
			return max(min(wait, time.Second), e.RetryAfter), nil
		}
	}
	d.opt.Log.Warn("an access system takes no writes; it is tried further", "system", system.ID, "error", cause)
	return max(jittered(d.opt.SystemEvery/10), e.RetryAfter), d.acs.RecordUnreachable(ctx, lease, system.ID, e.Message, true)
}

// refused says whether the vendor refuses the credentials of the account, and not only for one system.
func refused(ctx context.Context, a adapter.AccessSystems) bool {
	_, err := a.Systems(ctx)
	return adapter.ClassOf(err) == adapter.AuthRevoked
}

// failed records that a system could not be read at all, and says when to try again.
func (d *Driver) failed(ctx context.Context, lease *worker.Lease, a adapter.AccessSystems, system acs.Driven, err error) (time.Duration, error) {
	e := adapter.AsError(err)
	if errors.Is(err, adapter.ErrCrowded) && ctx.Err() == nil {
		return jittered(crowded), nil
	}
	if e == nil || ctx.Err() != nil {
		return 0, err
	}
	switch e.Class {
	case adapter.AuthRevoked:
		if !refused(ctx, a) { // the credentials are good for the account, and not for this system
			break
		}
		if err := d.access.RecordAccountRefused(ctx, lease, system.AccountID, e.Message); err != nil {
			return 0, err
		}
	case adapter.NotFound:
		listed, again, err := d.acs.RecordAbsent(ctx, lease, system.ID)
		if err != nil || !listed {
			return again, err
		}
		if _, before := d.silent.Load(silence{system.ID, false}); !before { // does the list of its account show it still?
			if err := d.access.Hint(ctx, system.AccountID, ""); err != nil {
				return 0, err
			}
		}
		if wait := d.patience(silence{system.ID, false}); wait > 0 {
			return min(wait, time.Second), nil
		}
	case adapter.Offline:
	default:
		if wait := d.patience(silence{system.ID, false}); wait > 0 {
			return max(min(wait, time.Second), e.RetryAfter), nil
		}
	}
	d.opt.Log.Warn("an access system does not answer; it is tried further", "system", system.ID, "error", err)
	return max(jittered(d.opt.SystemEvery/10), e.RetryAfter), d.acs.RecordUnreachable(ctx, lease, system.ID, e.Message, false)
}

// describe puts what an adapter has found into the words of package acs.
func describe(c adapter.SystemContent) (users []acs.FoundUser, groups []acs.FoundGroup, entrances []acs.FoundEntrance) {
	for _, u := range c.Users {
		users = append(users, acs.FoundUser{Ref: string(u.Ref), Key: u.Key, Profile: acs.Profile{FullName: u.FullName, Email: u.Email, Phone: u.Phone,
			StartsAt: u.StartsAt, EndsAt: u.EndsAt, Suspended: u.Suspended, Groups: slices.Clone(u.Groups)}})
	}
	for _, g := range c.Groups {
		groups = append(groups, acs.FoundGroup{Ref: g.Ref, Name: g.Name, Entrances: g.Entrances})
	}
	for _, e := range c.Entrances {
		entrances = append(entrances, acs.FoundEntrance{Ref: e.Ref, Name: e.Name})
	}
	return users, groups, entrances
}
