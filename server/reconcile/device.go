package reconcile

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// pass is one look at one device by the holder of its lease.
type pass struct {
	*Reconciler
	lease   *worker.Lease
	adapter adapter.Adapter
	device  access.Device
	ref     adapter.DeviceRef
	gap     time.Duration // the least time between two writes
	written time.Time     // when the last one ended
	unread  bool          // the read has failed
}

// drainDevice brings a device as far as it can be brought now, and says when to look again.
func (r *Reconciler) drainDevice(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	w, err := r.access.LookAtDevice(ctx, lease, id)
	if err != nil {
		return 0, err
	}
	if w.Device.Removed {
		return r.again(ctx, w)
	}
	if idle(w) && w.Bolt == nil && w.AutoLock == nil && !w.Doubted && len(w.Issues) == 0 {
		return r.again(ctx, w)
	}
	a, err := r.adapters.Get(ctx, w.Device.AccountID)
	if errors.Is(err, errDisconnected) { // since the device was looked at: it was removed with it, which has woken it
		soon := r.access.Now().Add(time.Second)
		w.Due = &soon
		return r.again(ctx, w)
	}
	if err != nil {
		return 0, err
	}
	p := &pass{Reconciler: r, lease: lease, adapter: a, device: w.Device, ref: adapter.DeviceRef(w.Device.Ref),
		gap: w.Device.Capabilities.WriteGap}
	if last, ok := r.written.Load(id); ok {
		p.written = last.(time.Time)
	}
	served := (w.Bolt != nil && !w.Bolt.Started) || (w.AutoLock != nil && !w.AutoLock.Started)
	if w.Bolt != nil || w.AutoLock != nil || w.Doubted || len(w.Issues) > 0 { // somebody stands before the door: codes can wait
		if err := p.first(ctx, w); err != nil {
			return p.unreachable(ctx, w, err)
		}
		seq := w.Seq
		if w, err = r.access.LookAtDevice(ctx, lease, id); err != nil {
			return 0, err
		}
		if w.Seq = seq; idle(w) {
			return r.left(ctx, w)
		}
	}
	// No write before a good read: what is on the device decides what is to be written.
	if err := p.read(ctx, w); err != nil {
		p.unread = true
		return p.unreachable(ctx, w, err)
	}
	seq := w.Seq
	if w, err = r.access.LookAtDevice(ctx, lease, id); err != nil {
		return 0, err
	}
	if w.ReadNeeded { // whoever asked for that while it was read may be another instance, which leaves it to this one
		w.Seq = seq
	}
	begun, err := p.write(ctx, w, served)
	if err != nil {
		return p.unreachable(ctx, w, err)
	}
	if !begun { // all is as it was looked at a moment ago
		return r.left(ctx, w)
	}
	left, err := r.access.LookAtDevice(ctx, lease, id) // what the writes have left to wait for
	if err != nil {
		return 0, err
	}
	left.Seq = w.Seq // what has been asked for since the writes were decided is still to be done
	return r.left(ctx, left)
}

// first does what comes before the codes.
func (p *pass) first(ctx context.Context, w access.DeviceWork) error {
	if w.Bolt != nil {
		if err := p.bolt(ctx, *w.Bolt); err != nil {
			return err
		}
	}
	if w.AutoLock != nil {
		if err := p.autoLock(ctx, *w.AutoLock); err != nil {
			return err
		}
	}
	for _, c := range w.Issues {
		if err := p.issue(ctx, c); err != nil {
			return err
		}
	}
	if w.Doubted && w.Bolt == nil {
		return p.status(ctx)
	}
	return nil
}

// issue has the vendor make an offline code, which it does whether the device can be reached or not. After a crash the
// same code is asked for again, and is the same.
func (p *pass) issue(ctx context.Context, c access.IssueWork) error {
	issuer, ok := p.adapter.(adapter.OfflineIssuer)
	if !ok {
		return p.access.RecordIssued(ctx, p.lease, p.device.ID, c, access.PutOutcome{Failure: &access.Failure{Class: access.FailedUnsupported, Message: "The way to this device has no offline codes."}})
	}
	made, err := issuer.IssueCode(ctx, p.ref, adapter.OfflineSpec{Key: c.ID.String(), Kind: adapter.OfflineKind(c.Kind), StartsAt: c.StartsAt, EndsAt: c.EndsAt})
	switch {
	case err == nil:
		return p.access.RecordIssued(ctx, p.lease, p.device.ID, c, access.PutOutcome{Ref: string(made.Ref), PIN: made.PIN})
	case unreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	return p.access.RecordIssued(ctx, p.lease, p.device.ID, c, access.PutOutcome{Failure: fail(err)})
}

// left says when to look again at a device of which this is left to do.
func (r *Reconciler) left(ctx context.Context, w access.DeviceWork) (time.Duration, error) {
	if ready(w) { // its time has come while others were written
		due := r.access.Now()
		if until, busy := r.isBusy(w.Device.ID); busy && !urgent(w) {
			due = until
			if w.Due != nil && w.Due.After(r.access.Now()) && w.Due.Before(due) { // what was begun is looked at meanwhile
				due = *w.Due
			}
			if w.Deadline != nil && w.Deadline.Before(due) { // somebody waits to be told
				due = *w.Deadline
			}
		}
		w.Due = &due
	}
	return r.again(ctx, w)
}

// idle says whether there is nothing to do about the device's codes.
func idle(w access.DeviceWork) bool { return !w.ReadNeeded && len(w.Codes) == 0 }

// ready says whether there is something to do that waits for nothing.
func ready(w access.DeviceWork) bool {
	leaving := slices.ContainsFunc(w.Codes, func(c access.CodeWork) bool { return c.Leaving })
	return urgent(w) || slices.ContainsFunc(w.Codes, func(c access.CodeWork) bool {
		return c.Action == access.Delete || c.Action == access.Find || (c.Action == access.Put && (!leaving || !c.New))
	})
}

// urgent says whether there is something to do that comes before the codes.
func urgent(w access.DeviceWork) bool {
	return w.Doubted || (w.Bolt != nil && !w.Bolt.Started) || (w.AutoLock != nil && !w.AutoLock.Started) || len(w.Issues) > 0
}

func (r *Reconciler) again(ctx context.Context, w access.DeviceWork) (time.Duration, error) {
	if err := r.access.ScheduleDevice(ctx, w.Device.ID, w.Seq, w.Due); err != nil {
		return 0, err
	}
	if w.Due == nil {
		return 0, nil
	}
	return max(w.Due.Sub(r.access.Now()), time.Millisecond), nil
}

// read takes in what is on the device. One that is not managed is left alone, unless a code of its pool is still to leave it:
// its vendor says whether it is there.
func (p *pass) read(ctx context.Context, w access.DeviceWork) error {
	if !p.device.Managed && len(w.Codes) == 0 {
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return err
		}
		return p.access.RecordThere(ctx, p.lease, p.device.ID, w.Seq)
	}
	if !p.device.Capabilities.ListCodes {
		if _, err := p.adapter.Device(ctx, p.ref); err != nil || w.Failures == 0 {
			return err
		}
		return p.access.RecordAnswered(ctx, p.lease, p.device.ID)
	}
	held, release := adapter.Hold(ctx) // until they are written down
	defer release()
	codes, err := p.adapter.Codes(held, p.ref, true)
	if err != nil {
		return err
	}
	if codes.Stale {
		return adapter.Errorf(adapter.Transient, "the vendor's copy of the device's codes is out of date")
	}
	if access.OtherSerial(p.device.SerialNumber, codes.SerialNumber) {
		return &adapter.Error{Class: adapter.NotFound, Message: "another device answers in its place", Gone: true}
	}
	found := make([]access.Found, len(codes.Codes))
	for i, c := range codes.Codes {
		found[i] = access.Found{Ref: string(c.Ref), Key: c.Key, KeyGuessed: c.KeyGuessed, PIN: c.PIN, Name: c.Name, StartsAt: c.StartsAt, EndsAt: c.EndsAt,
			Confirmed: c.State == adapter.Confirmed, Removing: c.Removing, ChangedAt: c.ChangedAt, Disabled: c.Disabled}
		if c.Failed != nil {
			found[i].Failure = fail(c.Failed)
		}
	}
	return p.access.RecordRead(ctx, p.lease, p.device.ID, w.Seq, found)
}

// write does what there is to do, removals first. A code that needs the place or the PIN of one that is
// still leaving waits for that. It stops at the first error that says the device cannot be reached or is to be left alone for a while, and when
// somebody stands before the door: the rest is done after that. Where somebody at the door was served just before, one
// write is done whoever else is there: otherwise he who never stops could keep his code from being removed. Begun tells
// whether there was anything to do.
func (p *pass) write(ctx context.Context, w access.DeviceWork, served bool) (begun bool, err error) {
	leaving := slices.ContainsFunc(w.Codes, func(c access.CodeWork) bool { return c.Leaving })
	for _, step := range []struct {
		action access.Action
		do     func(context.Context, access.CodeWork) error
	}{{access.Delete, p.delete}, {access.Find, p.find}, {access.Put, p.put}} {
		for _, c := range w.Codes {
			if c.Action != step.action || (c.Action == access.Put && leaving && c.New) {
				continue // the latter is looked at again as soon as the removals show
			}
			if _, busy := p.isBusy(p.device.ID); busy {
				return begun, nil
			}
			begun = true
			if by, err := p.access.Interrupted(ctx, p.device.ID); err != nil || by.Gone || (by.AtDoor && !served) {
				return begun, err
			}
			served = false
			if err := step.do(ctx, c); err != nil {
				return begun, err
			}
		}
	}
	return begun, nil
}

func (p *pass) delete(ctx context.Context, c access.CodeWork) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	if still, err := p.access.RecordDeleteStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	state, err := p.adapter.DeleteCode(ctx, p.ref, adapter.CodeRef(c.Ref))
	p.wrote()
	switch {
	case err == nil:
		return p.access.RecordDelete(ctx, p.lease, p.device.ID, c, state == adapter.Confirmed, nil)
	case unreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	p.refused(err)
	return p.access.RecordDelete(ctx, p.lease, p.device.ID, c, false, fail(err))
}

func (p *pass) put(ctx context.Context, c access.CodeWork) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	if still, err := p.access.RecordPutStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	spec := p.spec(c)
	spec.Place = func(ctx context.Context, ref adapter.CodeRef) error {
		return p.access.RecordPlace(ctx, p.lease, p.device.ID, c, string(ref))
	}
	res, err := p.adapter.PutCode(ctx, p.ref, spec)
	p.wrote()
	switch {
	case err == nil:
		return p.access.RecordPut(ctx, p.lease, p.device.ID, c, access.PutOutcome{Ref: string(res.Ref), PIN: res.PIN, Confirmed: res.State == adapter.Confirmed})
	case c.Ref == "" && res.Ref != "": // it is there, otherwise than it is to be
		if recorded := p.access.RecordPut(ctx, p.lease, p.device.ID, c, access.PutOutcome{Ref: string(res.Ref), Failure: fail(err)}); recorded != nil || !unreachable(err) {
			return recorded
		}
		return err
	case unreachable(err) && ctx.Err() == nil && !p.device.Capabilities.ListCodes: // no reading would show that it is not there
		return cmp.Or(p.access.RecordUnsent(ctx, p.lease, p.device.ID, c), err)
	case unreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err // it may be there: the read that comes first next time will show
	}
	p.refused(err)
	failure := fail(err)
	if c.Ref != "" && adapter.ClassOf(err) == adapter.NotFound && !p.device.Capabilities.ListCodes { // no reading would show that
		if _, err := p.adapter.Device(ctx, p.ref); err != nil { // it may be the device that is gone
			return err
		}
		failure.Absent = true
	}
	return p.access.RecordPut(ctx, p.lease, p.device.ID, c, access.PutOutcome{Failure: failure})
}

func (p *pass) spec(c access.CodeWork) adapter.CodeSpec {
	return adapter.CodeSpec{Ref: adapter.CodeRef(c.Ref), Key: c.ID.String(), PIN: c.PIN, Name: c.Name, StartsAt: c.StartAt(p.access.Now()), EndsAt: c.EndsAt}
}

func (p *pass) wrote() {
	p.written = time.Now()
	if p.gap > 0 { // the next pass keeps it, too
		p.Reconciler.written.Store(p.device.ID, p.written)
	}
}

// wait keeps the pause that the device needs between writes.
func (p *pass) wait(ctx context.Context) error {
	if p.gap == 0 || p.written.IsZero() {
		return ctx.Err()
	}
	select {
	case <-time.After(time.Until(p.written.Add(p.gap))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unreachable says whether an error is about the way to the device rather than about a code.
func unreachable(err error) bool {
	switch adapter.ClassOf(err) {
	case adapter.Offline, adapter.GatewayDown, adapter.AuthRevoked:
		return true
	default:
		return false
	}
}

// crowded is how long what could not be read for lack of room is put off.
func crowded() time.Duration { return 2*time.Second + rand.N(2*time.Second) }

// unreachable parks a device that could not be reached, until it is woken or some time has passed. Nothing is
// held against its codes.
func (p *pass) unreachable(ctx context.Context, w access.DeviceWork, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, err
	}
	log := p.opt.Log.With("device", p.device.ID)
	e := adapter.AsError(err)
	if errors.Is(err, adapter.ErrCrowded) {
		due := p.access.Now().Add(crowded())
		w.Due = &due
		return p.again(ctx, w)
	}
	if e == nil { // the database or the lease, not the device
		return 0, err
	}
	offline := e.Class == adapter.Offline
	switch e.Class {
	case adapter.NotFound:
		absent := e
		if !e.Gone {
			_, err := p.adapter.Device(ctx, p.ref)
			absent = adapter.AsError(err)
		}
		if absent != nil && absent.Class == adapter.NotFound {
			log.Info("the device is no longer in its account", "for_good", absent.Gone)
			err := p.access.RecordRemoved(ctx, p.lease, p.device.ID, absent.Gone) // it is due again, as one that was removed
			if err == nil && absent.Gone {
				err = p.access.Hint(ctx, p.device.AccountID, "") // another may have its reference by now
			}
			return 0, err
		}
	case adapter.AuthRevoked:
		if err := p.access.RecordAccountRefused(ctx, p.lease, p.device.AccountID, e.Message); err != nil {
			return 0, err
		}
	}
	failures, tell, err := p.access.RecordUnreachable(ctx, p.lease, p.device.ID, offline, p.unread)
	if err != nil {
		return 0, err
	}
	if tell != nil && (w.Deadline == nil || tell.Before(*w.Deadline)) {
		w.Deadline = tell
	}
	pause := min(time.Second<<min(failures, 10), p.opt.OfflineEvery)
	if offline || e.Class == adapter.AuthRevoked {
		pause = p.opt.OfflineEvery
	}
	pause = max(pause/2+rand.N(pause), e.RetryAfter)
	log.Info("the device could not be reached", "reason", e.Class, "message", e.Message, "failures", failures, "pause", pause)
	due := p.access.Now().Add(pause)
	if w.Deadline != nil && w.Deadline.Before(due) { // somebody waits to be told
		due = *w.Deadline
	}
	w.Due = &due
	return p.again(ctx, w)
}
