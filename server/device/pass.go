package device

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// A pass over a device is a series of transactions: each records what happened at the device since the last one, plans
// what the device needs now, and records the operation that is sent next, or the end of the pass.

// Work is a device and what it needs.
type Work struct {
	lockstate.Plan

	Device Device
	// Seq is the sequence number of the wake-ups that this work covers.
	Seq int64
	// Failures is the number of consecutive failed reads.
	Failures int
	// PositionUnknown is true if the lock must be read, because the reason for its observed position is unknown.
	PositionUnknown bool
	// account is the account of the device, if Report.NeedsAccount asked for it.
	account dbsqlc.ConnectedAccount
}

// AccountOf returns the account of the device, for work that was planned with Report.NeedsAccount.
func (s *Service) AccountOf(w Work) (account.Account, error) { return s.accounts.ToAccount(w.account) }

// CodeOperation is an operation that was recorded, and that the caller must send.
type CodeOperation struct {
	lockstate.Operation

	// PIN has the digits to set; empty if the vendor chooses them.
	PIN string
	// desired has the digits of the desired state.
	desired string
}

// Found is one observed code of a device.
type Found struct {
	lockstate.Found

	// Key is the identifier that the vendor keeps for the code, such as ours; empty: none.
	Key string
	// PIN has the digits; empty if hidden.
	PIN string
}

// Outcome is the outcome of an operation.
type Outcome struct {
	lockstate.Outcome

	// PIN has the digits that the vendor chose; empty otherwise.
	PIN string
}

// Report is what happened at a device since the last transaction of a pass.
type Report struct {
	// Seq is that of the work that the read was for.
	Seq int64
	// Read is true if Found is the complete list of the codes on the device.
	Read  bool
	Found []Found
	// Operation has ended with Outcome; nil: none.
	Operation *CodeOperation
	Outcome   Outcome
	// NeedsAccount asks for the account of the device.
	NeedsAccount bool
	// Answered is true if the vendor answered for a device that lists no codes.
	Answered bool
}

// Next is what a pass does next.
type Next struct {
	// Start is the operation to send; nil: none.
	Start *lockstate.Operation
	// End ends the pass. The device is due again at Due; nil: when it is woken. A wake-up after Seq makes it due
	// immediately.
	End bool
	Due *time.Time
	Seq int64
}

// Advance records a report, plans, and records what decide answers to the plan, in one transaction. It returns the plan
// and the operation to send, nil if there is none. The end of a pass releases its lease. A device that was erased with
// its workspace counts as removed. decide may be called several times.
func (s *Service) Advance(
	ctx context.Context, h store.Fence, id uuid.UUID, r Report, decide func(Work) Next,
) (w Work, start *CodeOperation, err error) {
	var row dbsqlc.ConnectedAccount
	var further []func(store.Tx) error
	if r.NeedsAccount {
		further = append(further, func(tx store.Tx) (err error) {
			row, err = tx.GetAccountOfDevice(ctx, id)
			return err
		})
	}
	erased := false
	err = s.onLockedDevice(ctx, id, "reconcile the codes", func(tx store.Tx) (store.LockedDevice, error) {
		l, err := lockHeld(ctx, tx, h, id, further...)
		erased = store.IsNoRows(err)
		return l, err
	}, func(t *deviceTx) error {
		start, t.inPass = nil, true
		if err := t.record(ctx, r); err != nil {
			return err
		}
		if w, err = t.plan(ctx); err != nil {
			return err
		}
		w.account = row
		next := decide(w)
		if next.Start != nil && t.lock.Start(*next.Start) {
			if start, err = t.operation(*next.Start); err != nil {
				return err
			}
		}
		if next.End {
			t.schedule(ctx, next)
			t.releaseLease(ctx, h)
		}
		return nil
	})
	if erased {
		return Work{Device: Device{ID: id, Removed: true}}, nil, nil
	}
	return w, start, err
}

// record applies a report to the lock.
func (t *deviceTx) record(ctx context.Context, r Report) error {
	if r.Operation != nil {
		t.recordOutcome(*r.Operation, r.Outcome)
	}
	if r.Answered {
		t.last = append(t.last, func(tx store.Tx) error { return tx.SetDeviceAnswered(ctx, t.d.DeviceID) })
	}
	if !r.Read {
		return nil
	}
	err := t.observe(ctx, r.Seq, r.Found)
	// The read has shown what the outcome asked to look at.
	t.changes.Wake, t.changes.WakeToRead = false, false
	return err
}

// recordOutcome records the outcome of an operation.
func (t *deviceTx) recordOutcome(op CodeOperation, o Outcome) {
	// The row may have got another PIN since.
	if op.desired != "" {
		op.State.PIN = t.pins.of(op.desired)
	}
	o.Outcome.PIN = t.pins.of(o.PIN)
	t.lock.Record(op.Operation, o.Outcome)
}

// observe records the codes on the device. seq is that of the work that the read was for.
func (t *deviceTx) observe(ctx context.Context, seq int64, found []Found) error {
	seen, err := t.observation(ctx, found)
	if err != nil {
		return err
	}
	t.seq = seq
	deferred := t.lock.Observe(seen)
	if err := t.collect(ctx); err != nil {
		return err
	}
	read := t.changes.Read
	if read == nil {
		return nil
	}
	// Another read was requested since.
	t.lock.Device.ReadNeeded = t.d.ReadNeeded && t.d.WakeSeq != seq
	read.RereadAt = t.rereadForDeferred(read.RereadAt, deferred)
	t.lock.Device.RereadAt = read.RereadAt
	if t.d.IsManaged && !t.d.Online { // it has just answered
		_, err = t.setOnline(ctx, true)
	}
	return err
}

// observation returns the observed codes with what the database knows about unknown ones.
func (t *deviceTx) observation(ctx context.Context, found []Found) (seen lockstate.Observation, err error) {
	var keys []uuid.UUID
	var refs []string
	known := make(map[string]bool, len(t.rows))
	for _, c := range t.lock.Codes {
		known[c.Ref] = true
	}
	for _, f := range found {
		// Codes without a valid reference can be neither changed nor removed.
		if !domain.ValidRef(f.Ref) {
			continue
		}
		f.HasKey = f.Key != ""
		if key, err := uuid.Parse(f.Key); err == nil && key.String() == f.Key {
			f.Found.Key = key
		}
		f.Found.PIN = t.pins.of(f.PIN)
		seen.Found = append(seen.Found, f.Found)
		if _, ours := t.rows[f.Found.Key]; !known[f.Ref] && !ours {
			refs = append(refs, f.Ref)
			if f.Found.Key != uuid.Nil {
				keys = append(keys, f.Found.Key)
			}
		}
	}
	if refs == nil {
		return seen, nil
	}
	if seen.Abandoned, err = t.abandoned(ctx, keys, refs); err != nil || keys == nil {
		return seen, err
	}
	gone, err := t.tx.ListAccessCodeTombstones(ctx, dbsqlc.ListAccessCodeTombstonesParams{
		DeviceID: t.d.DeviceID,
		Ids:      keys,
		Since:    t.now.Add(-tombstoneTTL),
	})
	seen.Tombstones = map[uuid.UUID]bool{}
	for _, id := range gone {
		seen.Tombstones[id] = true
	}
	return seen, err
}

// abandoned returns the codes of pools of deleted devices with those keys or references.
func (t *deviceTx) abandoned(ctx context.Context, keys []uuid.UUID, refs []string) (out []lockstate.Code, err error) {
	rows, err := t.tx.ListOrphanedPoolCodes(ctx, dbsqlc.ListOrphanedPoolCodesParams{
		WorkspaceID: t.d.WorkspaceID,
		Keys:        slices.Clip(append([]uuid.UUID{}, keys...)),
		VendorRefs:  refs,
	})
	for _, r := range rows {
		c := toLockCode(r)
		digits, err := t.s.pinOf(r)
		if err != nil {
			return nil, err
		}
		c.PIN = t.pins.of(digits)
		out = append(out, c)
	}
	return out, err
}

// rereadForDeferred returns when to read next, if changes exceeded the inventory rate limit. Managed codes do not wait
// for it.
func (t *deviceTx) rereadForDeferred(again *time.Time, deferred int) *time.Time {
	if deferred == 0 {
		return again
	}
	now, account := t.s.opt.Now(), t.d.ConnectedAccountID
	// A read is already scheduled.
	if scheduled := t.d.RereadAt; scheduled != nil && scheduled.After(now) {
		return earlier(again, *scheduled)
	}
	return earlier(again, now.Add(t.s.inventoryLimit.rereadDelay(account, now, deferred, func() {
		t.s.opt.Log.Warn("the unmanaged codes of an account change faster than the inventory rate limit allows; "+
			"the server records the rest later", "connected_account_id", account)
	})))
}

// plan returns what the device needs. It emits the events of the device that are due.
func (t *deviceTx) plan(ctx context.Context) (w Work, err error) {
	w.Plan = t.lock.Plan()
	if err := t.collect(ctx); err != nil {
		return w, err
	}
	w.Device, w.Seq, w.Failures = toDevice(toAnnouncedDevice(t.d)), t.d.WakeSeq, int(t.d.Failures)
	if t.changes.Wake { // by this transaction
		w.Seq++
		w.ReadNeeded = w.ReadNeeded || t.changes.WakeToRead
	}
	due, err := t.s.emitDeviceEvents(ctx, t.tx, &t.d)
	if err != nil || t.d.RemovedAt != nil {
		return w, err
	}
	if due != nil {
		w.Due, w.Deadline = earlier(w.Due, *due), earlier(w.Deadline, *due)
	}
	if !t.d.IsManaged {
		w.Deadline = nil
		return w, nil
	}
	var again *time.Time
	if w.PositionUnknown, again = t.s.lockUnconfirmed(t.d); again != nil {
		w.Due = earlier(w.Due, *again)
	}
	return w, nil
}

// operation returns an operation with its digits.
func (t *deviceTx) operation(op lockstate.Operation) (*CodeOperation, error) {
	out := &CodeOperation{Operation: op}
	var err error
	if out.desired, err = t.pins.digits(op.State.PIN); err != nil {
		return nil, err
	}
	out.PIN, err = t.pins.digits(op.PIN)
	return out, err
}

// schedule sets when the device is due.
func (t *deviceTx) schedule(ctx context.Context, next Next) {
	arg := t.s.scheduleOf(t.d.DeviceID, next.Seq, next.Due)
	t.last = append(t.last, func(tx store.Tx) error { return tx.ScheduleDevice(ctx, arg) })
}

// releaseLease releases the lease of a pass that ends.
func (t *deviceTx) releaseLease(ctx context.Context, h store.Fence) {
	if lease, ok := h.(*worker.Lease); ok {
		t.last = append(t.last, lease.Release(ctx, t.tx, func(tx store.Tx) (bool, error) {
			return t.s.DeviceDueIn(ctx, tx, t.d.DeviceID)
		})...)
	}
}

func (t *deviceTx) wake(read bool) {
	t.changes.Wake, t.changes.WakeToRead = true, t.changes.WakeToRead || read
}

// earlier returns the earlier of two times, of which the first may be nil.
func earlier(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.Before(b) {
		return a
	}
	return &b
}

// errNotWanted ends a write that has become obsolete.
var errNotWanted = errors.New("the write of the code is obsolete")

// RecordPlace records the reference (slot) of the following write of a code, which is free or will be vacated first.
// After a crash, the reference identifies the code if the device hides its PIN. It fails if the write is obsolete.
func (s *Service) RecordPlace(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	op CodeOperation,
	ref string,
) error {
	return s.onDevice(ctx, h, device, "record the place of a write", func(t *deviceTx) error {
		if !t.lock.RecordPlace(op.Operation, ref) {
			return errNotWanted
		}
		return nil
	})
}

// RecordPresent records that an unmanaged device is still in its account. seq is that of the work that checked
// it.
func (s *Service) RecordPresent(ctx context.Context, h store.Fence, device uuid.UUID, seq int64) error {
	err := s.onDevice(ctx, h, device, "record that it is there", func(t *deviceTx) error {
		if t.d.IsManaged || t.d.RemovedAt != nil { // changed since
			return nil
		}
		return t.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{
			DeviceID:   device,
			WakeSeq:    seq,
			RereadAt:   t.d.RereadAt,
			EmptySince: t.d.EmptySince,
		})
	})
	if store.IsNoRows(err) { // erased with its workspace
		return nil
	}
	return err
}

// RecordUnreachable records that the device could not be read or written. offline says that the vendor reports the
// device as offline; unread says that the read failed. It does not count as a failed attempt of a code. It returns the
// number of consecutive failures, and when the offline event is due.
func (s *Service) RecordUnreachable(
	ctx context.Context, h store.Fence, device uuid.UUID, offline, unread bool,
) (failures int, eventDue *time.Time, err error) {
	err = s.onDevice(ctx, h, device, "record a failed read", func(t *deviceTx) error {
		n, err := t.tx.SetDeviceFailed(ctx, dbsqlc.SetDeviceFailedParams{DeviceID: device, Unread: unread})
		failures = int(n)
		if err != nil || !offline || !t.d.Online {
			return err
		}
		eventDue, err = t.setOnline(ctx, false)
		return err
	})
	return failures, eventDue, err
}

// setOnline records a connection change, and returns when its event is due.
func (t *deviceTx) setOnline(ctx context.Context, online bool) (eventDue *time.Time, err error) {
	if err := t.tx.SetDeviceOnline(ctx, dbsqlc.SetDeviceOnlineParams{
		DeviceID:        t.d.DeviceID,
		Online:          online,
		OnlineChangedAt: t.now,
	}); err != nil {
		return nil, err
	}
	t.d.Online, t.d.OnlineChangedAt, t.lock.Device.Online = online, t.now, online
	return t.s.emitDeviceEvents(ctx, t.tx, &t.d)
}

// ScheduleDevice sets when the device is next due unless it is woken earlier; nil means only when woken. A wake-up
// after seq makes it due immediately. In the work of a lane, it takes effect when the lease is released.
func (s *Service) ScheduleDevice(ctx context.Context, device uuid.UUID, seq int64, due *time.Time) error {
	arg := s.scheduleOf(device, seq, due)
	if worker.AtRelease(ctx, func(ctx context.Context, tx store.Tx) error { return tx.ScheduleDevice(ctx, arg) }) {
		return nil
	}
	return s.db.ScheduleDevice(ctx, arg)
}

// scheduleOf returns when the device is due, as a duration, because the database's clock may differ.
func (s *Service) scheduleOf(device uuid.UUID, seq int64, due *time.Time) dbsqlc.ScheduleDeviceParams {
	arg := dbsqlc.ScheduleDeviceParams{DeviceID: device, WakeSeq: seq, Never: due == nil}
	if due != nil {
		arg.After = due.Sub(s.opt.Now())
	}
	return arg
}

// DeviceDue reports whether the device is due.
func (s *Service) DeviceDue(ctx context.Context, device uuid.UUID) (bool, error) {
	return isDue(s.db.DeviceDue(ctx, device))
}

// DeviceDueIn is DeviceDue in a transaction, as a single query.
func (s *Service) DeviceDueIn(ctx context.Context, tx store.Tx, device uuid.UUID) (bool, error) {
	return isDue(tx.DeviceDue(ctx, device))
}

// isDue returns the answer of DeviceDue. A device that was erased with its workspace is not due.
func isDue(due bool, err error) (bool, error) {
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueDevices lists due devices without a lease holder.
func (s *Service) DueDevices(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return s.db.DueDevices(ctx, dbsqlc.DueDevicesParams{
		MaxRows:           limit,
		ExcludeAccounts:   but.Accounts,
		ExcludeWorkspaces: but.Workspaces,
		ExcludeCreators:   but.Creators,
	})
}

// DeviceOwners returns the accounts, workspaces, and workspace creators of devices.
func (s *Service) DeviceOwners(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.DeviceOwners(ctx, devices)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.DeviceID] = worker.Owners{
			Account:   r.ConnectedAccountID,
			Workspace: r.WorkspaceID,
			Creator:   r.CreatedBy,
		}
	}
	return owners, err
}

// HasBeenRead reports whether the codes of a device have been read at least once.
func (s *Service) HasBeenRead(ctx context.Context, device uuid.UUID) (bool, error) {
	d, err := s.db.GetDeviceByID(ctx, device)
	return err == nil && d.LastGoodReadAt != nil, err
}
