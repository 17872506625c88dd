package reconcile

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// pass is one reconciliation of one device by the holder of its lease.
type pass struct {
	*Reconciler
	lease   *worker.Lease
	adapter adapter.Adapter
	device  device.Device
	ref     adapter.DeviceRef
	// gap is the minimum time between two writes.
	gap time.Duration
	// written is when the last write ended.
	written time.Time
	// unread is set until the device's codes have been read.
	unread bool
}

// drainDevice reconciles a device as far as possible now and returns when to look again.
func (r *Reconciler) drainDevice(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	w, err := r.access.Devices.PlanDevice(ctx, lease, id)
	if err != nil {
		return 0, err
	}
	if w.Device.Removed {
		return r.schedule(ctx, w)
	}
	if idle(w) && w.LockCommand == nil && w.AutoLock == nil && !w.PositionUnknown && len(w.Issues) == 0 {
		return r.schedule(ctx, w)
	}
	a, err := r.adapters.Get(ctx, w.Device.AccountID)
	// The account was disconnected after the device was read. That also removed and woke the
	// device.
	if errors.Is(err, errDisconnected) {
		soon := r.access.Devices.Now().Add(time.Second)
		w.Due = &soon
		return r.schedule(ctx, w)
	}
	if err != nil {
		return 0, err
	}
	p := &pass{
		Reconciler: r,
		lease:      lease,
		adapter:    a,
		device:     w.Device,
		ref:        adapter.DeviceRef(w.Device.Ref),
		gap:        w.Device.Capabilities.MinWriteGap,
	}
	if last, ok := r.written.Load(id); ok {
		p.written = last.(time.Time)
	}
	served := (w.LockCommand != nil && !w.LockCommand.Started) || (w.AutoLock != nil && !w.AutoLock.Started)
	// A person may be waiting at the door, so codes come after commands.
	if w.LockCommand != nil || w.AutoLock != nil || w.PositionUnknown || len(w.Issues) > 0 {
		if err := p.runUrgent(ctx, w); err != nil {
			return p.park(ctx, w, err)
		}
		seq := w.Seq
		if w, err = r.access.Devices.PlanDevice(ctx, lease, id); err != nil {
			return 0, err
		}
		if w.Seq = seq; idle(w) {
			return r.scheduleRemaining(ctx, w)
		}
	}
	// Write only after a successful read, because the observed state decides the writes.
	if err := p.read(ctx, w); err != nil {
		p.unread = true
		return p.park(ctx, w, err)
	}
	seq := w.Seq
	if w, err = r.access.Devices.PlanDevice(ctx, lease, id); err != nil {
		return 0, err
	}
	// Another instance may have requested a new read meanwhile and relies on this one.
	if w.ReadNeeded {
		w.Seq = seq
	}
	begun, err := p.write(ctx, w, served)
	if err != nil {
		return p.park(ctx, w, err)
	}
	// Nothing has changed since the last look.
	if !begun {
		return r.scheduleRemaining(ctx, w)
	}
	// Read the deadlines that the writes have left.
	left, err := r.access.Devices.PlanDevice(ctx, lease, id)
	if err != nil {
		return 0, err
	}
	// Requests since the writes were planned remain due.
	left.Seq = w.Seq
	return r.scheduleRemaining(ctx, left)
}

// runUrgent does the work that precedes codes: lock commands, auto-lock, offline codes, and the
// status.
func (p *pass) runUrgent(ctx context.Context, w device.Work) error {
	if w.LockCommand != nil {
		if err := p.runLockCommand(ctx, *w.LockCommand); err != nil {
			return err
		}
	}
	if w.AutoLock != nil {
		if err := p.configureAutoLock(ctx, *w.AutoLock); err != nil {
			return err
		}
	}
	for _, c := range w.Issues {
		if err := p.issue(ctx, c); err != nil {
			return err
		}
	}
	if w.PositionUnknown && w.LockCommand == nil {
		return p.readStatus(ctx)
	}
	return nil
}

// issue requests an offline code from the vendor. The vendor issues it even if the device is
// offline. A repeated request after a crash returns the same code.
func (p *pass) issue(ctx context.Context, c device.IssueWork) error {
	issuer, ok := p.adapter.(adapter.OfflineIssuer)
	if !ok {
		return p.access.Devices.RecordIssued(
			ctx,
			p.lease,
			p.device.ID,
			c,
			device.PutOutcome{
				Failure: &device.Failure{
					Class:   device.FailedUnsupported,
					Message: "The adapter of this device cannot issue offline codes.",
				},
			},
		)
	}
	made, err := issuer.IssueCode(ctx, p.ref, adapter.OfflineSpec{
		Key:      c.ID.String(),
		Kind:     adapter.OfflineKind(c.Kind),
		StartsAt: c.StartsAt,
		EndsAt:   c.EndsAt,
	})
	switch {
	case err == nil:
		return p.access.Devices.RecordIssued(ctx, p.lease, p.device.ID, c,
			device.PutOutcome{Ref: string(made.Ref), PIN: made.PIN})
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	return p.access.Devices.RecordIssued(ctx, p.lease, p.device.ID, c, device.PutOutcome{Failure: fail(err)})
}

// scheduleRemaining returns when to look again at a device with the remaining work w.
func (r *Reconciler) scheduleRemaining(ctx context.Context, w device.Work) (time.Duration, error) {
	// Work became due during the writes.
	if hasReadyWork(w) {
		due := r.access.Devices.Now()
		if until, busy := r.blockedUntil(w.Device.ID); busy && !hasUrgentWork(w) {
			due = until
			// Writes in progress still need a look.
			if w.Due != nil && w.Due.After(r.access.Devices.Now()) && w.Due.Before(due) {
				due = *w.Due
			}
			// A client waits for this deadline.
			if w.Deadline != nil && w.Deadline.Before(due) {
				due = *w.Deadline
			}
		}
		w.Due = &due
	}
	return r.schedule(ctx, w)
}

// idle reports whether the device's codes need no work.
func idle(w device.Work) bool { return !w.ReadNeeded && len(w.Codes) == 0 }

// hasReadyWork reports whether some work can run now.
func hasReadyWork(w device.Work) bool {
	leaving := slices.ContainsFunc(w.Codes, func(c device.CodeWork) bool { return c.Leaving })
	return hasUrgentWork(w) || slices.ContainsFunc(w.Codes, func(c device.CodeWork) bool {
		return c.Action == device.Delete || c.Action == device.Find || (c.Action == device.Put && (!leaving || !c.New))
	})
}

// hasUrgentWork reports whether some work precedes the codes.
func hasUrgentWork(w device.Work) bool {
	return w.PositionUnknown || (w.LockCommand != nil && !w.LockCommand.Started) ||
		(w.AutoLock != nil && !w.AutoLock.Started) ||
		len(w.Issues) > 0
}

func (r *Reconciler) schedule(ctx context.Context, w device.Work) (time.Duration, error) {
	if err := r.access.Devices.ScheduleDevice(ctx, w.Device.ID, w.Seq, w.Due); err != nil {
		return 0, err
	}
	if w.Due == nil {
		return 0, nil
	}
	return max(w.Due.Sub(r.access.Devices.Now()), time.Millisecond), nil
}

// read records the codes on the device. For an unmanaged device without code operations, it only
// checks that the vendor still lists the device.
func (p *pass) read(ctx context.Context, w device.Work) error {
	if !p.device.Managed && len(w.Codes) == 0 {
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return err
		}
		return p.access.Devices.RecordPresent(ctx, p.lease, p.device.ID, w.Seq)
	}
	if !p.device.Capabilities.ListCodes {
		if _, err := p.adapter.Device(ctx, p.ref); err != nil || w.Failures == 0 {
			return err
		}
		return p.access.Devices.RecordAnswered(ctx, p.lease, p.device.ID)
	}
	// Hold the memory of the answer until the codes are recorded.
	held, release := adapter.WithMemoryPermit(ctx)
	defer release()
	codes, err := p.adapter.Codes(held, p.ref, true)
	if err != nil {
		return err
	}
	if codes.Stale {
		return adapter.Errorf(adapter.Transient, "the vendor's copy of the device's codes is out of date")
	}
	if device.OtherSerial(p.device.SerialNumber, codes.SerialNumber) {
		return &adapter.Error{Class: adapter.NotFound, Message: "another device answers in its place", Gone: true}
	}
	found := make([]device.Found, len(codes.Codes))
	for i, c := range codes.Codes {
		found[i] = device.Found{
			Ref:        string(c.Ref),
			Key:        c.Key,
			KeyGuessed: c.KeyGuessed,
			PIN:        c.PIN,
			Name:       c.Name,
			StartsAt:   c.StartsAt,
			EndsAt:     c.EndsAt,
			Confirmed:  c.State == adapter.Confirmed,
			Removing:   c.Removing,
			ChangedAt:  c.ChangedAt,
			Disabled:   c.Disabled,
		}
		if c.Failed != nil {
			found[i].Failure = fail(c.Failed)
		}
	}
	return p.access.Devices.RecordRead(ctx, p.lease, p.device.ID, w.Seq, found)
}

// write runs the planned operations, deletions first. A new code waits while another code is
// leaving, because it may need that code's slot or PIN. write stops at the first connection error,
// when the vendor asks for a pause, and when a lock command arrives. If a command was served just
// before, one operation runs regardless, so that a stream of commands cannot block deletions
// forever. begun reports whether there was anything to do.
func (p *pass) write(ctx context.Context, w device.Work, served bool) (begun bool, err error) {
	leaving := slices.ContainsFunc(w.Codes, func(c device.CodeWork) bool { return c.Leaving })
	for _, step := range []struct {
		action device.Action
		do     func(context.Context, device.CodeWork) error
	}{{device.Delete, p.delete}, {device.Find, p.find}, {device.Put, p.put}} {
		for _, c := range w.Codes {
			if c.Action != step.action || (c.Action == device.Put && leaving && c.New) {
				// Retry the put as soon as the deletions show.
				continue
			}
			if _, busy := p.blockedUntil(p.device.ID); busy {
				return begun, nil
			}
			begun = true
			if by, err := p.access.Devices.HasUrgentWork(
				ctx,
				p.device.ID,
			); err != nil || by.Removed ||
				(by.HasLockCommand && !served) {
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

func (p *pass) delete(ctx context.Context, c device.CodeWork) error {
	if err := p.waitForGap(ctx); err != nil {
		return err
	}
	if still, err := p.access.Devices.RecordDeleteStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	state, err := p.adapter.DeleteCode(ctx, p.ref, adapter.CodeRef(c.Ref))
	p.noteWrite()
	switch {
	case err == nil:
		return p.access.Devices.RecordDelete(ctx, p.lease, p.device.ID, c, state == adapter.Confirmed, nil)
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	p.noteRetryAfter(err)
	return p.access.Devices.RecordDelete(ctx, p.lease, p.device.ID, c, false, fail(err))
}

func (p *pass) put(ctx context.Context, c device.CodeWork) error {
	if err := p.waitForGap(ctx); err != nil {
		return err
	}
	if still, err := p.access.Devices.RecordPutStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	spec := p.spec(c)
	spec.OnPlace = func(ctx context.Context, ref adapter.CodeRef) error {
		return p.access.Devices.RecordPlace(ctx, p.lease, p.device.ID, c, string(ref))
	}
	res, err := p.adapter.PutCode(ctx, p.ref, spec)
	p.noteWrite()
	switch {
	case err == nil:
		return p.access.Devices.RecordPut(ctx, p.lease, p.device.ID, c,
			device.PutOutcome{Ref: string(res.Ref), PIN: res.PIN, Confirmed: res.State == adapter.Confirmed})
	// The vendor stored the code, but differently from the specification.
	case c.Ref == "" && res.Ref != "":
		outcome := device.PutOutcome{Ref: string(res.Ref), Failure: fail(err)}
		recorded := p.access.Devices.RecordPut(ctx, p.lease, p.device.ID, c, outcome)
		if recorded != nil || !isUnreachable(err) {
			return recorded
		}
		return err
	// Without a code list, no read can show that the code is absent.
	case isUnreachable(err) && ctx.Err() == nil && !p.device.Capabilities.ListCodes:
		return cmp.Or(p.access.Devices.RecordUnsent(ctx, p.lease, p.device.ID, c), err)
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		// The code may be there. The read of the next pass decides.
		return err
	}
	p.noteRetryAfter(err)
	failure := fail(err)
	// Without a code list, no read can show the absence.
	if c.Ref != "" && adapter.ClassOf(err) == adapter.NotFound && !p.device.Capabilities.ListCodes {
		// The whole device may be missing.
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return err
		}
		failure.Absent = true
	}
	return p.access.Devices.RecordPut(ctx, p.lease, p.device.ID, c, device.PutOutcome{Failure: failure})
}

func (p *pass) spec(c device.CodeWork) adapter.CodeSpec {
	return adapter.CodeSpec{
		Ref:      adapter.CodeRef(c.Ref),
		Key:      c.ID.String(),
		PIN:      c.PIN,
		Name:     c.Name,
		StartsAt: c.StartAt(p.access.Devices.Now()),
		EndsAt:   c.EndsAt,
	}
}

func (p *pass) noteWrite() {
	p.written = time.Now()
	// The next pass respects the gap, too.
	if p.gap > 0 {
		p.Reconciler.written.Store(p.device.ID, p.written)
	}
}

// waitForGap waits until the device's minimum gap between writes has passed.
func (p *pass) waitForGap(ctx context.Context) error {
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

// isUnreachable reports whether err concerns the connection to the device rather than a code.
func isUnreachable(err error) bool {
	switch adapter.ClassOf(err) {
	case adapter.Offline, adapter.GatewayDown, adapter.AuthRevoked:
		return true
	default:
		return false
	}
}

// overloadPause returns the pause before a retry when memory for an answer was short.
func overloadPause() time.Duration { return 2*time.Second + rand.N(2*time.Second) }

// park schedules a device that could not be reached for a later retry. The codes' attempt counters
// do not change.
func (p *pass) park(ctx context.Context, w device.Work, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, err
	}
	log := p.opt.Log.With("device_id", p.device.ID)
	e := adapter.AsError(err)
	if errors.Is(err, adapter.ErrSaturated) {
		due := p.access.Devices.Now().Add(overloadPause())
		w.Due = &due
		return p.schedule(ctx, w)
	}
	// The error comes from the database or the lease, not from the device.
	if e == nil {
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
			log.Info("the device was removed from its account", "permanent", absent.Gone)
			// RecordRemoved makes the device due again.
			err := p.access.Devices.RecordRemoved(ctx, p.lease, p.device.ID, absent.Gone)
			if err == nil && absent.Gone {
				// Another device may have its reference by now.
				err = p.access.Accounts.Hint(ctx, p.device.AccountID, "")
			}
			return 0, err
		}
	case adapter.AuthRevoked:
		if err := p.access.Accounts.RecordAccountRefused(ctx, p.lease, p.device.AccountID, e.Message); err != nil {
			return 0, err
		}
	}
	failures, tell, err := p.access.Devices.RecordUnreachable(ctx, p.lease, p.device.ID, offline, p.unread)
	if err != nil {
		return 0, err
	}
	if tell != nil && (w.Deadline == nil || tell.Before(*w.Deadline)) {
		w.Deadline = tell
	}
	pause := min(time.Second<<min(failures, 10), p.opt.OfflineRetryInterval)
	if offline || e.Class == adapter.AuthRevoked {
		pause = p.opt.OfflineRetryInterval
	}
	pause = max(pause/2+rand.N(pause), e.RetryAfter)
	log.Info("the device could not be reached", "class", e.Class, "message", e.Message, "failures", failures,
		"pause", pause)
	due := p.access.Devices.Now().Add(pause)
	// A client waits for this deadline.
	if w.Deadline != nil && w.Deadline.Before(due) {
		due = *w.Deadline
	}
	w.Due = &due
	return p.schedule(ctx, w)
}
