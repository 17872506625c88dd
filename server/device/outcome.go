package device

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// RecordPutStarted records that the server is about to send a code to its device, so that after a crash the next lease
// holder knows that the code may be there. It reports whether the code still needs this write.
func (s *Service) RecordPutStarted(
	ctx context.Context,
	h domain.Fence,
	device uuid.UUID,
	w CodeWork,
) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		still = c != nil && c.RemovingSince == nil && c.IsManaged && c.DesiredGen == w.Gen && t.d.RemovedAt == nil &&
			t.d.IsManaged
		if still {
			if !t.anotherPIN(c) { // an uncertain earlier PIN stays recorded
				c.WritePinMac = c.PinMac
			}
			if !t.vacated(c) { // the slot stays vacated until it has the new PIN
				c.WriteRef = nil
			}
			c.WriteGen, c.WriteAt, c.WriteAccepted = w.Gen, &t.now, false
			c.Status, c.VendorName = string(StatusSetting), &w.Name
		}
		return nil
	})
	return still, err
}

// anotherPIN reports whether an uncertain creation was sent with a PIN that differs from the desired one, on a device
// that hides PINs. A vendor that recognizes a repeated creation by its key answers with the first one's code. A vendor
// that receives a slot for each write does not.
func (t *deviceTx) anotherPIN(c *dbsqlc.AccessCode) bool {
	if t.caps.PINVisible || t.caps.ProviderPIN || c.VendorRef != nil || c.WriteGen == 0 || c.WriteRef != nil {
		return false
	}
	return len(c.WritePinMac) > 0 && !t.s.keys.Match(c.WritePinMac, c.PinMac)
}

// StartAt returns the start time to send to the device at now. For a device that accepts no past start, a past start
// becomes now. Writing many codes takes minutes, so call it before each write.
func (w CodeWork) StartAt(now time.Time) *time.Time {
	if w.NoPastStart && w.StartsAt != nil && w.StartsAt.Before(now) {
		return &now
	}
	return w.StartsAt
}

// errNotWanted ends a write that has become obsolete.
var errNotWanted = errors.New("the write of the code is obsolete")

// RecordPlace records the reference (slot) of the following write of a code, which is free or will be vacated first.
// After a crash, the reference identifies the code if the device hides its PIN. It fails if the write is obsolete.
func (s *Service) RecordPlace(ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork, ref string) error {
	return s.onDevice(ctx, h, device, "record the place of a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || c.WriteGen != w.Gen || c.RemovingSince != nil || t.d.RemovedAt != nil || !t.d.IsManaged {
			return errNotWanted
		}
		// The slot was just free, so the codes that it was recorded for are not there.
		for _, other := range t.codes {
			if domain.Value(other.WriteRef) == ref {
				if other != c && t.vacated(other) {
					if err := t.recreateVacated(ctx, other); err != nil {
						return err
					}
				}
				other.WriteRef = nil
			}
			// The previous code of the slot has left, although no read has shown it yet.
			if (!other.IsManaged || other.RemovingSince != nil) && domain.Value(other.VendorRef) == ref {
				if err := t.deleteCode(ctx, other); err != nil {
					return err
				}
			}
		}
		c.WriteRef, c.WriteAt = &ref, &t.now // the search for a slot may have taken long
		return nil
	})
}

// PutOutcome is the outcome of a write.
type PutOutcome struct {
	// Ref is the code on the device. Together with a Failure, it is a created code that differs from the desired state.
	Ref string
	// PIN is chosen by the vendor; empty otherwise.
	PIN string
	// Confirmed is true if the device itself confirmed the write.
	Confirmed bool
	Failure   *Failure
}

// check turns a write with an invalid reference, under which the server could not remove the code, into a failure.
func (o *PutOutcome) check() {
	if o.Failure != nil && !domain.ValidRef(o.Ref) {
		o.Ref = ""
	}
	if o.Failure == nil && o.Ref != "" && !domain.ValidRef(o.Ref) {
		*o = PutOutcome{Failure: &Failure{Class: FailedUnsupported, Message: "The vendor has answered with a " +
			"reference that cannot be stored. Check whether the code is on the lock: only the vendor's app can remove it."}}
	}
}

// RecordPut records the outcome of the write of a code.
func (s *Service) RecordPut(ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork, o PutOutcome) error {
	return s.onDevice(ctx, h, device, "record a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil {
			return nil
		}
		o.check()
		other := o.Ref != "" && domain.Value(c.VendorRef) != o.Ref
		// found is true for a created code that differs from the desired state.
		found := other && o.Failure != nil && c.VendorRef == nil
		if found || other && o.Failure == nil {
			if err := t.claim(ctx, o.Ref); err != nil {
				return err
			}
			c.VendorRef = &o.Ref
		}
		switch {
		case o.Failure != nil && t.hasPIN(c, *o.Failure):
			o = PutOutcome{Ref: domain.Value(c.VendorRef), Confirmed: !t.caps.ListCodes}
		case found:
			return t.recordMismatch(ctx, c, w.Gen, *o.Failure)
		case o.Failure != nil:
			return t.notPut(ctx, c, w, *o.Failure)
		}
		if o.PIN != "" && (c.PinMac == nil || t.caps.ProviderPIN) {
			t.s.setPIN(c, o.PIN)
			w.state.PIN = &o.PIN
		}
		if c.RemovingSince != nil {
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
			return nil
		}
		// The code has one PIN or the other, so it is overwritten or recreated.
		if w.anotherPIN && c.WriteRef == nil {
			c.WriteGen, c.WriteAt, c.WriteAccepted = w.Gen-1, &t.now, false
			return nil
		}
		c.WriteAccepted = true
		if o.Confirmed {
			return t.recordAppliedAs(ctx, c, w.Gen, &w.state)
		}
		return nil
	})
}

// notPut records that a write has failed.
func (t *deviceTx) notPut(ctx context.Context, c *dbsqlc.AccessCode, w CodeWork, f Failure) error {
	f.Unsure = f.Unsure || w.WriteUncertain
	switch {
	case c.RemovingSince != nil && (f.Class == FailedForNow || w.WriteUncertain): // may have arrived: a read will show
		c.WriteAccepted = false
		return nil
	case c.RemovingSince != nil: // no code to remove
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		if c.VendorRef == nil {
			return t.deleteCode(ctx, c)
		}
		return nil
	case f.Absent && domain.Value(c.VendorRef) == w.Ref:
		return t.recordAbsent(ctx, c, w.Gen, f)
	}
	return t.recordFailure(ctx, c, w.Gen, f)
}

// recordMismatch records that a creation returned a code that differs from the desired state. The code is overwritten,
// recreated, or removed.
func (t *deviceTx) recordMismatch(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	c.WriteGen, c.WriteAt, c.WriteAccepted = gen-1, &t.now, false
	if c.WriteGen == 0 || c.RemovingSince != nil {
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.RemovingSince != nil {
		return nil
	}
	return t.recordFailure(ctx, c, gen, f)
}

// recordAbsent records that a change failed because the code is not on its device. The next attempt recreates it.
func (t *deviceTx) recordAbsent(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	was := c.AppliedGen > 0
	if err := t.onExternalDelete(ctx, c); err != nil || was {
		return err
	}
	// A vendor that keeps returning references to nothing is asked with growing backoff.
	return t.recordFailure(ctx, c, gen, f)
}

// claim ensures that no other row has the reference of the code that was just set. An unmanaged row is that same code,
// which a read between the write and its response could not match. A managed row has lost its slot.
func (t *deviceTx) claim(ctx context.Context, ref string) error {
	for _, c := range t.codes {
		switch {
		case domain.Value(c.VendorRef) != ref:
			continue
		case !c.IsManaged || c.RemovingSince != nil:
			return t.deleteCode(ctx, c)
		}
		if err := t.onExternalDelete(ctx, c); err != nil {
			return err
		}
		// Saved immediately, because references are unique and the order of the rows is arbitrary.
		t.before[c.AccessCodeID] = *c
		return saveCode(ctx, t.tx, *c)
	}
	return nil
}

// RecordDelete records the outcome of the removal of a code. On a device that lists codes, a read confirms the removal;
// otherwise the vendor's confirmation suffices.
func (s *Service) RecordDelete(
	ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork, confirmed bool, failure *Failure,
) error {
	return s.onDevice(ctx, h, device, "record a removal", func(t *deviceTx) error {
		c := t.code(w.ID)
		switch {
		case c == nil || !t.leaving(c):
			return nil
		case failure != nil:
			return t.failedToRemove(ctx, c, *failure)
		case confirmed && !t.caps.ListCodes:
			leave := t.deleteCode
			if c.RemovingSince == nil {
				leave = t.markRemoved
			}
			if err := leave(ctx, c); err != nil {
				return err
			}
			t.unblock()
		default:
			c.WriteGen, c.WriteAccepted, c.WriteAt = 0, true, &t.now
		}
		// Other codes may have waited for the removal.
		return t.tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: device, ReadNeeded: true})
	})
}

// failedToRemove records that a removal failed. The server retries it, unless the vendor does not support the removal
// of unmanaged codes.
func (t *deviceTx) failedToRemove(ctx context.Context, c *dbsqlc.AccessCode, f Failure) error {
	if f.Unsure && t.yieldsPIN(c) { // the recorded start shows that this removal may have succeeded
		c.WriteAccepted = false
	} else {
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
	}
	if f.Class == FailedUnsupported && !c.IsManaged {
		c.RemovingSince, c.Status = nil, string(StatusSet)
		return t.end(ctx, func(a dbsqlc.ActionAttempt) bool {
			return domain.Value(a.AccessCodeID) == c.AccessCodeID && a.ActionType == domain.DeleteUnmanagedAccessCode
		}, Failed, "cannot_delete_unmanaged_access_code", f.Message)
	}
	c.Attempts++
	next := t.now.Add(max(backoff(int(c.Attempts)), f.RetryAfter))
	c.NextAttemptAt = &next
	event, failure := "access_code.failed_to_remove_from_device", domain.ErrFailedToRemove
	if c.IsManaged && c.RemovingSince != nil && c.EndsAt != nil && !c.EndsAt.After(*c.RemovingSince) {
		event, failure = "access_code.failed_to_expire", domain.ErrFailedToExpire
	}
	if c.Attempts < failureThreshold || domain.Value(c.ErrorCode) == failure {
		return nil
	}
	t.setError(c, failure, f.Message+" The server keeps retrying: until then the code may still open.", uuid.Nil)
	if !c.IsManaged {
		return nil
	}
	return t.emitProblem(ctx, event, c)
}

// RecordUnreachable records that the device could not be read or written. offline says that the vendor reports the
// device as offline; unread says that the read failed. It does not count as a failed attempt of a code. It returns the
// number of consecutive failures, and when the offline event is due.
func (s *Service) RecordUnreachable(
	ctx context.Context, h domain.Fence, device uuid.UUID, offline, unread bool,
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

// RecordUnsent records that, according to the vendor, a write was not sent to a device that lists no codes. The write
// does not make its code uncertain.
func (s *Service) RecordUnsent(ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork) error {
	return s.onDevice(ctx, h, device, "record that nothing was sent", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || t.caps.ListCodes || w.WriteUncertain || c.VendorRef != nil || c.WriteRef != nil ||
			c.WriteGen != w.Gen {
			return nil
		}
		c.WriteGen, c.WriteAt, c.WriteAccepted, c.WritePinMac = 0, nil, false, nil
		if c.RemovingSince != nil {
			return t.deleteCode(ctx, c)
		}
		return nil
	})
}

// RecordAnswered records that the vendor answered for a device that lists no codes. RecordRead does so for others.
func (s *Service) RecordAnswered(ctx context.Context, h domain.Fence, device uuid.UUID) error {
	return s.onDevice(ctx, h, device, "record an answer", func(t *deviceTx) error {
		return t.tx.SetDeviceAnswered(ctx, device)
	})
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
	t.d.Online, t.d.OnlineChangedAt = online, t.now
	return t.s.emitDeviceEvents(ctx, t.tx, &t.d)
}

// ScheduleDevice sets when the device is next due unless it is woken earlier; nil means only when woken. A wake-up
// after seq makes it due immediately. In the work of a lane, it takes effect when the lease is released.
func (s *Service) ScheduleDevice(ctx context.Context, device uuid.UUID, seq int64, due *time.Time) error {
	arg := dbsqlc.ScheduleDeviceParams{DeviceID: device, WakeSeq: seq, Never: due == nil}
	if due != nil { // a duration, because the database's clock may differ
		arg.After = due.Sub(s.opt.Now())
	}
	if worker.AtRelease(ctx, func(ctx context.Context, tx store.Tx) error { return tx.ScheduleDevice(ctx, arg) }) {
		return nil
	}
	return s.db.ScheduleDevice(ctx, arg)
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
