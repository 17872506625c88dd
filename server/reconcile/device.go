package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// pass is one reconciliation of one device by the holder of its lease.
type pass struct {
	*Reconciler
	lease   *worker.Lease
	adapter adapter.Adapter
	account account.Account
	device  device.Device
	ref     adapter.DeviceRef
	// seq is the last wake-up that the pass covered when it began.
	seq int64
	// readSeq is the last wake-up that the next read covers.
	readSeq int64
	// work is the last plan.
	work device.Work
	// handled are the codes of which the pass has sent an operation.
	handled map[uuid.UUID]bool
	// served is true if the pass has just sent a command to the device itself.
	served bool
	// gap is the minimum time between two writes.
	gap time.Duration
	// written is when the last write ended.
	written time.Time
	// paused is true if the next operation waits for the gap.
	paused bool
	// unread is true if the codes could not be read.
	unread bool
}

// drainDevice reconciles a device as far as possible now and returns when to look again.
func (r *Reconciler) drainDevice(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	w, _, err := r.access.Devices.Advance(
		ctx,
		lease,
		id,
		device.Report{NeedsAccount: true},
		func(w device.Work) device.Next {
			return device.Next{End: w.Device.Removed || idle(w), Due: w.Due, Seq: w.Seq}
		},
	)
	if err != nil || w.Device.Removed || idle(w) {
		return r.until(w), err
	}
	account, err := r.access.Devices.AccountOf(w)
	if err != nil {
		return 0, err
	}
	a, err := r.adapters.Of(ctx, account)
	// The account was disconnected after the device was read. That also removed and woke the
	// device.
	if errors.Is(err, errDisconnected) {
		w.Due = new(r.access.Devices.Now().Add(time.Second))
		return r.schedule(ctx, w)
	}
	if err != nil {
		return 0, err
	}
	p := &pass{
		Reconciler: r,
		lease:      lease,
		adapter:    a,
		account:    account,
		device:     w.Device,
		ref:        adapter.DeviceRef(w.Device.Ref),
		seq:        w.Seq,
		readSeq:    w.Seq,
		work:       w,
		handled:    map[uuid.UUID]bool{},
		gap:        w.Device.Capabilities.MinWriteGap,
	}
	if last, ok := r.written.Load(id); ok {
		p.written = last.(time.Time)
	}
	if isManagedThermostat(p.device) {
		return p.runThermostat(ctx)
	}
	run := p.run
	if isNoiseSensor(w.Device) {
		run = p.runNoiseSensor
	}
	if err := run(ctx); err != nil {
		return p.park(ctx, p.work, err)
	}
	p.endProblem()
	return r.until(p.work), nil
}

// run does the work of a pass.
func (p *pass) run(ctx context.Context) error {
	p.served = commandWaits(p.work)
	// A person may be waiting at the door, so codes come after commands.
	if hasUrgentWork(p.work) || p.work.Command != nil || p.work.AutoLock != nil {
		if err := p.runUrgent(ctx, p.work); err != nil {
			return err
		}
		if _, err := p.advance(ctx, device.Report{}, p.endIfQuiet); err != nil || quiet(p.work) {
			return err
		}
	}
	// Write only after a successful read, because the observed state decides the writes.
	op, err := p.readAndPlan(ctx)
	for err == nil && (op != nil || p.paused) {
		if op == nil {
			if err = p.waitForGap(ctx); err == nil {
				op, err = p.advance(ctx, device.Report{}, p.next)
			}
			continue
		}
		var report device.Report
		if report, err = p.send(ctx, *op); err == nil {
			op, err = p.recordAndPlan(ctx, report)
		}
	}
	return err
}

// readAndPlan reads the device, and records what it found and the first operation.
func (p *pass) readAndPlan(ctx context.Context) (*device.CodeOperation, error) {
	// Hold the memory of the answer until the codes are recorded.
	held, release := adapter.WithMemoryPermit(adapter.WithPriority(ctx, p.readPriority()))
	defer release()
	report, err := p.read(held)
	if err != nil {
		p.unread = true
		return nil, err
	}
	return p.advance(ctx, report, p.next)
}

// readPriority returns the priority of a read that precedes all operations.
func (p *pass) readPriority() adapter.Priority {
	switch {
	case p.nextOperation(p.work) != nil:
		return adapter.PriorityWrite
	case len(p.work.Operations) > 0: // sent before, and not confirmed
		return adapter.PriorityConfirm
	default:
		return adapter.PriorityDrift
	}
}

// recordAndPlan records the outcome of an operation and the next operation. After the last operation it reads the
// device first, because many vendors show a write at once.
func (p *pass) recordAndPlan(ctx context.Context, report device.Report) (*device.CodeOperation, error) {
	if !p.showsAtOnce(report) || p.nextOperation(p.work) != nil {
		return p.advance(ctx, report, p.next)
	}
	held, release := adapter.WithMemoryPermit(adapter.WithPriority(ctx, adapter.PriorityConfirm))
	defer release()
	read, err := p.read(held)
	if err != nil {
		p.unread = true
		_, recorded := p.advance(ctx, report, func(device.Work) device.Next { return device.Next{} })
		return nil, cmp.Or(recorded, err)
	}
	read.Operation, read.Outcome = report.Operation, report.Outcome
	op, err := p.advance(ctx, read, p.next)
	if err == nil && slices.ContainsFunc(p.work.Operations, func(o lockstate.Operation) bool {
		return o.Code == report.Operation.Code && o.Action == lockstate.Await
	}) {
		p.slow.Store(p.device.ID, time.Now())
	}
	return op, err
}

// slowMemory is how long a device that did not show a write at once is not read right after a write.
const slowMemory = time.Hour

// showsAtOnce reports whether a read right after an operation may show its result.
func (p *pass) showsAtOnce(report device.Report) bool {
	if at, ok := p.slow.Load(p.device.ID); ok {
		if time.Since(at.(time.Time)) < slowMemory {
			return false
		}
		p.slow.Delete(p.device.ID)
	}
	return report.Operation != nil && report.Outcome.Failure == nil && !report.Outcome.Confirmed &&
		p.device.Capabilities.ListCodes
}

// advance records a report and what the pass does next.
func (p *pass) advance(
	ctx context.Context, r device.Report, decide func(device.Work) device.Next,
) (*device.CodeOperation, error) {
	w, op, err := p.access.Devices.Advance(ctx, p.lease, p.device.ID, r, decide)
	if err != nil {
		return nil, err
	}
	p.readSeq = w.Seq
	// Another instance may have requested a new read meanwhile and relies on this pass.
	if p.work = w; w.ReadNeeded {
		p.work.Seq = p.seq
	}
	return op, nil
}

// endIfQuiet ends the pass if the codes need no work.
func (p *pass) endIfQuiet(w device.Work) device.Next {
	if !quiet(w) {
		return device.Next{}
	}
	w.Seq = p.seq
	return p.end(w)
}

// next starts the next operation, deletions first. A new code waits while another code is leaving, because it may need
// that code's slot or PIN. The pass sends one operation of each code, and ends when the vendor asks for a pause, and
// when a lock command arrives. If a command was served just before, one operation runs regardless, so that a stream of
// commands cannot block deletions forever.
func (p *pass) next(w device.Work) device.Next {
	// Another instance may have requested a new read meanwhile and relies on this one.
	if w.ReadNeeded {
		w.Seq = p.seq
	}
	_, busy := p.blockedUntil(p.device.ID)
	op := p.nextOperation(w)
	p.paused = false
	switch {
	case op == nil || busy || commandWaits(w) && !p.served:
		return p.end(w)
	case p.gapLeft() > 0:
		p.paused = true
		return device.Next{}
	}
	return device.Next{Start: op}
}

// nextOperation returns the operation to send next, nil if there is none.
func (p *pass) nextOperation(w device.Work) *lockstate.Operation {
	leaving := anyLeaving(w)
	for _, action := range []lockstate.Action{lockstate.Delete, lockstate.Find, lockstate.Put} {
		for _, op := range w.Operations {
			if op.Action == action && !p.handled[op.Code] && (action != lockstate.Put || !leaving || !op.New) {
				return &op
			}
		}
	}
	return nil
}

// send sends an operation to the device, and returns its outcome.
func (p *pass) send(ctx context.Context, op device.CodeOperation) (device.Report, error) {
	p.handled[op.Code], p.served = true, false
	ctx = adapter.WithPriority(ctx, adapter.PriorityWrite)
	var outcome *device.Outcome
	var err error
	switch op.Action {
	case lockstate.Delete:
		outcome, err = p.delete(ctx, op)
	case lockstate.Find:
		outcome, err = p.find(ctx, op)
	default:
		outcome, err = p.put(ctx, op)
	}
	if outcome == nil {
		return device.Report{}, err
	}
	report := device.Report{Operation: &op, Outcome: *outcome}
	if err == nil {
		return report, nil
	}
	// The outcome is known although the device cannot be reached.
	_, recorded := p.advance(ctx, report, func(device.Work) device.Next { return device.Next{} })
	return device.Report{}, cmp.Or(recorded, err)
}

// runUrgent does the work that precedes codes: lock commands, auto-lock, offline codes, and the
// status.
func (p *pass) runUrgent(ctx context.Context, w device.Work) error {
	command := adapter.WithPriority(ctx, adapter.PriorityCommand)
	if w.Command != nil {
		if err := p.runLockCommand(command, *w.Command); err != nil {
			return err
		}
	}
	if w.AutoLock != nil {
		if err := p.configureAutoLock(command, *w.AutoLock); err != nil {
			return err
		}
	}
	for _, op := range w.Issues {
		issue := device.CodeOperation{Operation: op}
		if err := p.issue(adapter.WithPriority(ctx, adapter.PriorityWrite), issue); err != nil {
			return err
		}
	}
	if w.PositionUnknown && w.Command == nil {
		return p.readStatus(adapter.WithPriority(ctx, adapter.PriorityConfirm))
	}
	return nil
}

// issue requests an offline code from the vendor. The vendor issues it even if the device is
// offline. A repeated request after a crash returns the same code.
func (p *pass) issue(ctx context.Context, op device.CodeOperation) error {
	var outcome device.Outcome
	issuer, ok := p.adapter.(adapter.OfflineIssuer)
	if ok {
		made, err := issuer.IssueCode(ctx, p.ref, adapter.OfflineSpec{
			Key:      op.Code.String(),
			Kind:     adapter.OfflineKind(op.Offline),
			StartsAt: *op.StartsAt,
			EndsAt:   *op.EndsAt,
		})
		switch {
		case err == nil:
			outcome.Ref, outcome.PIN = string(made.Ref), made.PIN
		case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
			return err
		default:
			outcome.Failure = fail(err)
		}
	} else {
		outcome.Failure = &lockstate.Failure{
			Class:   lockstate.FailedUnsupported,
			Message: "The adapter of this device cannot issue offline codes.",
		}
	}
	_, err := p.advance(ctx, device.Report{Operation: &op, Outcome: outcome},
		func(device.Work) device.Next { return device.Next{} })
	return err
}

// end ends the pass. The device is due again when its work is.
func (r *Reconciler) end(w device.Work) device.Next {
	return device.Next{End: true, Due: r.due(w), Seq: w.Seq}
}

// due returns when to look again at a device with the remaining work w.
func (r *Reconciler) due(w device.Work) *time.Time {
	// Work became due during the writes.
	if !hasReadyWork(w) {
		return w.Due
	}
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
	return &due
}

// idle reports whether the device needs no work. Thermostats and noise sensors are read each time.
func idle(w device.Work) bool {
	return !isManagedThermostat(w.Device) && !isNoiseSensor(w.Device) &&
		quiet(w) && w.Command == nil && w.AutoLock == nil && !w.PositionUnknown && len(w.Issues) == 0
}

// quiet reports whether the device's codes need no work.
func quiet(w device.Work) bool { return !w.ReadNeeded && len(w.Operations) == 0 }

// anyLeaving reports whether one of the codes must leave the device.
func anyLeaving(w device.Work) bool {
	return slices.ContainsFunc(w.Operations, func(op lockstate.Operation) bool { return op.Leaving })
}

// hasReadyWork reports whether some work can run now.
func hasReadyWork(w device.Work) bool {
	leaving := anyLeaving(w)
	return hasUrgentWork(w) || slices.ContainsFunc(w.Operations, func(op lockstate.Operation) bool {
		return op.Action == lockstate.Delete || op.Action == lockstate.Find ||
			(op.Action == lockstate.Put && (!leaving || !op.New))
	})
}

// hasUrgentWork reports whether some work precedes the codes.
func hasUrgentWork(w device.Work) bool {
	return w.PositionUnknown || commandWaits(w) || len(w.Issues) > 0
}

// commandWaits reports whether a command to the device itself waits that was not sent.
func commandWaits(w device.Work) bool {
	return w.Command != nil && !w.Command.Started || w.AutoLock != nil && !w.AutoLock.Started
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

// until returns the time until the device is due; 0: when it is woken.
func (r *Reconciler) until(w device.Work) time.Duration {
	due := r.due(w)
	if w.Device.Removed {
		due = w.Due
	}
	if due == nil {
		return 0
	}
	return max(due.Sub(r.access.Devices.Now()), time.Millisecond)
}

// read returns the codes on the device. For an unmanaged device without code operations, it only
// checks that the vendor still lists the device.
func (p *pass) read(ctx context.Context) (report device.Report, err error) {
	if !p.device.Managed && len(p.work.Operations) == 0 {
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return report, err
		}
		return report, p.access.Devices.RecordPresent(ctx, p.lease, p.device.ID, p.readSeq)
	}
	if !p.device.Capabilities.ListCodes {
		_, err := p.adapter.Device(ctx, p.ref)
		return device.Report{Answered: p.work.Failures > 0}, err
	}
	codes, err := p.adapter.Codes(ctx, p.ref, true)
	if err != nil {
		return report, err
	}
	if codes.Stale {
		return report, adapter.Errorf(adapter.Transient, "the vendor's copy of the device's codes is out of date")
	}
	if device.OtherSerial(p.device.SerialNumber, codes.SerialNumber) {
		return report, &adapter.Error{
			Class:   adapter.NotFound,
			Message: "another device answers in its place",
			Gone:    true,
		}
	}
	report = device.Report{Seq: p.readSeq, Read: true, Found: make([]device.Found, len(codes.Codes))}
	for i, c := range codes.Codes {
		report.Found[i] = toFound(c)
		if c.Unconverted && slices.Contains(p.work.Conversions, string(c.Ref)) {
			if err := p.convert(ctx, &report.Found[i]); err != nil {
				return device.Report{}, err
			}
		}
	}
	return report, nil
}

// convert asks the vendor to take over an unmanaged code that must become managed here. It returns an error if the
// device cannot be reached.
func (p *pass) convert(ctx context.Context, found *device.Found) error {
	converter, ok := p.adapter.(adapter.Converter)
	if !ok {
		found.Unconvertible = "The adapter of this device cannot convert codes."
		return nil
	}
	state, err := converter.ConvertCode(ctx, p.ref, adapter.CodeRef(found.Ref))
	switch e := adapter.AsError(err); {
	case err == nil:
		found.Unconverted = state != adapter.Confirmed
	case e == nil || isUnreachable(err) || ctx.Err() != nil:
		return err
	case e.Class == adapter.NotSupported:
		found.Unconvertible = e.Message
	}
	return nil
}

// toFound returns an observed code in the terms of package device.
func toFound(c adapter.Code) device.Found {
	found := device.Found{
		Key: c.Key,
		PIN: c.PIN,
		Found: lockstate.Found{
			Ref:        string(c.Ref),
			KeyGuessed: c.KeyGuessed,
			Name:       c.Name,
			StartsAt:   c.StartsAt,
			EndsAt:     c.EndsAt,
			Confirmed:  c.State == adapter.Confirmed,
			Removing:   c.Removing,
			ChangedAt:  c.ChangedAt,
			Disabled:   c.Disabled,

			Unconverted: c.Unconverted,
		},
	}
	if c.Failed != nil {
		found.Failure = fail(c.Failed)
	}
	return found
}

// delete removes a code from the device. The outcome is nil if it is unknown.
func (p *pass) delete(ctx context.Context, op device.CodeOperation) (*device.Outcome, error) {
	state, err := p.adapter.DeleteCode(ctx, p.ref, adapter.CodeRef(op.Ref))
	p.noteWrite()
	outcome := &device.Outcome{}
	switch {
	case err == nil:
		outcome.Confirmed = state == adapter.Confirmed
		return outcome, nil
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return nil, err
	}
	p.noteRetryAfter(err)
	outcome.Failure = fail(err)
	return outcome, nil
}

// put sets a code on the device. The outcome is nil if it is unknown: the code may be there, and the read of the next
// pass decides.
func (p *pass) put(ctx context.Context, op device.CodeOperation) (*device.Outcome, error) {
	spec := p.spec(op)
	spec.OnPlace = func(ctx context.Context, ref adapter.CodeRef) error {
		return p.access.Devices.RecordPlace(ctx, p.lease, p.device.ID, op, string(ref))
	}
	res, err := p.adapter.PutCode(ctx, p.ref, spec)
	p.noteWrite()
	listed := p.device.Capabilities.ListCodes
	outcome := &device.Outcome{PIN: res.PIN}
	outcome.Ref, outcome.Confirmed = string(res.Ref), res.State == adapter.Confirmed
	switch {
	case err == nil:
		return outcome, nil
	// The vendor stored the code, but differently from the specification.
	case op.Ref == "" && res.Ref != "":
		outcome = failed(err)
		outcome.Ref = string(res.Ref)
		if isUnreachable(err) {
			return outcome, err
		}
		return outcome, nil
	// Without a code list, no read can show that the code is absent.
	case isUnreachable(err) && ctx.Err() == nil && !listed:
		outcome = &device.Outcome{}
		outcome.Unsent = true
		return outcome, err
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return nil, err
	}
	p.noteRetryAfter(err)
	outcome = failed(err)
	// Without a code list, no read can show the absence.
	if op.Ref != "" && adapter.ClassOf(err) == adapter.NotFound && !listed {
		// The whole device may be missing.
		if _, err := p.adapter.Device(ctx, p.ref); err != nil {
			return nil, err
		}
		outcome.Failure.Absent = true
	}
	return outcome, nil
}

// failed returns the outcome of a failed operation.
func failed(err error) *device.Outcome {
	return &device.Outcome{Outcome: lockstate.Outcome{Failure: fail(err)}}
}

func (p *pass) spec(op device.CodeOperation) adapter.CodeSpec {
	return adapter.CodeSpec{
		Ref:      adapter.CodeRef(op.Ref),
		Key:      op.Code.String(),
		PIN:      op.PIN,
		Name:     op.Name,
		StartsAt: op.StartAt(p.access.Devices.Now()),
		EndsAt:   op.EndsAt,
	}
}

func (p *pass) noteWrite() {
	p.written = time.Now()
	// The next pass respects the gap, too.
	if p.gap > 0 {
		p.Reconciler.written.Store(p.device.ID, p.written)
	}
}

// gapLeft returns how long the device's minimum gap between writes still lasts.
func (p *pass) gapLeft() time.Duration {
	if p.gap == 0 || p.written.IsZero() {
		return 0
	}
	return time.Until(p.written.Add(p.gap))
}

// waitForGap waits until the device's minimum gap between writes has passed.
func (p *pass) waitForGap(ctx context.Context) error {
	select {
	case <-time.After(p.gapLeft()):
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

// log returns the log for lines about the device.
func (p *pass) log() *slog.Logger {
	return p.opt.Log.With("device_id", p.device.ID, "device", p.device.Name, "account", p.account.DisplayName,
		"vendor", p.account.Adapter)
}

func (p *pass) problemKey() string { return "device:" + p.device.ID.String() }

// warnUnreachable logs that the device could not be reached. A problem of the whole account is logged for the account,
// not for each of its devices.
func (p *pass) warnUnreachable(log *slog.Logger, e *adapter.Error) {
	const message = "the device could not be reached"
	switch e.Class {
	case adapter.AuthRevoked, adapter.GatewayDown:
		log.Debug(message)
	default:
		p.problems.Warn(log, p.problemKey(), message)
	}
}

// endProblem logs that the device can be reached, if the log says that it could not.
func (p *pass) endProblem() {
	p.problems.End(p.log(), p.problemKey(), "the device can be reached again")
}

// park schedules a device that could not be reached for a later retry. The codes' attempt counters
// do not change.
func (p *pass) park(ctx context.Context, w device.Work, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, err
	}
	log := p.log()
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
	p.warnUnreachable(log.With("class", e.Class, "message", adapter.SafeMessage(e.Message, ""), "pause", pause), e)
	due := p.access.Devices.Now().Add(pause)
	// A client waits for this deadline.
	if w.Deadline != nil && w.Deadline.Before(due) {
		due = *w.Deadline
	}
	w.Due = &due
	return p.schedule(ctx, w)
}
