package access

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// RecordPutStarted notes, before a code is sent to its device, that this is about to happen: after a crash
// the next holder knows that the code may be there. It says whether the code still is to be put so.
func (s *Service) RecordPutStarted(ctx context.Context, h Holder, device uuid.UUID, w CodeWork) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		still = c != nil && c.RemovingSince == nil && c.IsManaged && c.DesiredGen == w.Gen && t.d.RemovedAt == nil && t.d.IsManaged
		if still {
			if !t.anotherPIN(c) { // of that one it is noted until it is known what has become of it
				c.WritePinMac = c.PinMac
			}
			if !t.emptied(c) { // the place is empty until it has the new PIN, however often that is tried
				c.WriteRef = nil
			}
			c.WriteGen, c.WriteAt, c.WriteAccepted = w.Gen, &t.now, false
			c.Status = string(StatusSetting)
		}
		return nil
	})
	return still, err
}

// anotherPIN says whether a creation in doubt was sent with another PIN than is wanted now, and nobody will see which one is on the device. A
// vendor that knows a creation again, by the identifier of the code, answers with what it was made as first. One that is given a place for
// each write does not.
func (t *deviceTx) anotherPIN(c *dbsqlc.AccessCode) bool {
	if t.caps.PINVisible || t.caps.ProviderPIN || c.VendorRef != nil || c.WriteGen == 0 || c.WriteRef != nil {
		return false
	}
	return len(c.WritePinMac) > 0 && !encryption.Equal(c.WritePinMac, c.PinMac)
}

// StartAt is the start that a device is sent at now. Where it takes none that is past that is now: the code opens at once all the
// same. A list of codes takes minutes to write, so that it is asked for before each.
func (w CodeWork) StartAt(now time.Time) *time.Time {
	if w.NoPastStart && w.StartsAt != nil && w.StartsAt.Before(now) {
		return &now
	}
	return w.StartsAt
}

// errNotWanted ends a write that is no longer to be done.
var errNotWanted = errors.New("the code is no longer to be written")

// RecordPlace notes, before a code is written, under which reference that will be, which was free just now or is to be emptied
// first. After a crash it is known again by that where the device hides its PIN. It fails where the code is no longer to be written.
func (s *Service) RecordPlace(ctx context.Context, h Holder, device uuid.UUID, w CodeWork, ref string) error {
	return s.onDevice(ctx, h, device, "record the place of a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || c.WriteGen != w.Gen || c.RemovingSince != nil || t.d.RemovedAt != nil || !t.d.IsManaged {
			return errNotWanted
		}
		for _, other := range t.codes { // the place was free just now: what it had been noted for is not there
			if text(other.WriteRef) == ref {
				if other != c && t.emptied(other) {
					if err := t.putBack(ctx, other); err != nil {
						return err
					}
				}
				other.WriteRef = nil
			}
			if (!other.IsManaged || other.RemovingSince != nil) && text(other.VendorRef) == ref { // it has left, and nobody has said so yet
				if err := t.gone(ctx, other); err != nil {
					return err
				}
			}
		}
		c.WriteRef, c.WriteAt = &ref, &t.now // what came before may have taken its time
		return nil
	})
}

// PutOutcome is what became of a write.
type PutOutcome struct {
	Ref       string // the code on the device; beside a Failure: where a creation is, which is there otherwise than it is to be
	PIN       string // invented by the vendor; empty otherwise
	Confirmed bool   // the device itself has said so
	Failure   *Failure
}

// check has a write fail that was answered with a reference under which nothing could be taken back.
func (o *PutOutcome) check() {
	if o.Failure != nil && !keepable(o.Ref) {
		o.Ref = ""
	}
	if o.Failure == nil && o.Ref != "" && !keepable(o.Ref) {
		*o = PutOutcome{Failure: &Failure{Class: FailedUnsupported, Message: "The vendor has answered with a reference that cannot be kept. Look whether the code is at the lock: only the vendor's app can remove it."}}
	}
}

// RecordPut notes what became of the write of a code.
func (s *Service) RecordPut(ctx context.Context, h Holder, device uuid.UUID, w CodeWork, o PutOutcome) error {
	return s.onDevice(ctx, h, device, "record a write", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil {
			return nil
		}
		o.check()
		other := o.Ref != "" && text(c.VendorRef) != o.Ref
		found := other && o.Failure != nil && c.VendorRef == nil // it is there, otherwise than it is to be
		if found || other && o.Failure == nil {
			if err := t.claim(ctx, o.Ref); err != nil {
				return err
			}
			c.VendorRef = &o.Ref
		}
		switch {
		case o.Failure != nil && t.hasPIN(c, *o.Failure):
			o = PutOutcome{Ref: text(c.VendorRef), Confirmed: !t.caps.ListCodes}
		case found:
			return t.otherwise(ctx, c, w.Gen, *o.Failure)
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
		if w.anotherPIN && c.WriteRef == nil { // what there is has one PIN or the other: it is written over, or put anew
			c.WriteGen, c.WriteAt, c.WriteAccepted = w.Gen-1, &t.now, false
			return nil
		}
		c.WriteAccepted = true
		if o.Confirmed {
			return t.appliedAs(ctx, c, w.Gen, &w.state)
		}
		return nil
	})
}

// notPut records that a write has failed.
func (t *deviceTx) notPut(ctx context.Context, c *dbsqlc.AccessCode, w CodeWork, f Failure) error {
	f.Unsure = f.Unsure || w.InDoubt
	switch {
	case c.RemovingSince != nil && (f.Class == FailedForNow || w.InDoubt): // it may have arrived: reading will show
		c.WriteAccepted = false
		return nil
	case c.RemovingSince != nil: // nothing was put that would have to be taken back
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		if c.VendorRef == nil {
			return t.gone(ctx, c)
		}
		return nil
	case f.Absent && text(c.VendorRef) == w.Ref:
		return t.absent(ctx, c, w.Gen, f)
	}
	return t.failed(ctx, c, w.Gen, f)
}

// otherwise records that a creation has shown where the code is, which is not as it is to be: it is written over, put anew, or taken off.
func (t *deviceTx) otherwise(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	c.WriteGen, c.WriteAt, c.WriteAccepted = gen-1, &t.now, false
	if c.WriteGen == 0 || c.RemovingSince != nil {
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.RemovingSince != nil {
		return nil
	}
	return t.failed(ctx, c, gen, f)
}

// absent records that a code is not on its device any more, as its vendor has said when it was to become another: the next try makes it
// anew.
func (t *deviceTx) absent(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	was := c.AppliedGen > 0
	if err := t.vanished(ctx, c); err != nil || was {
		return err
	}
	return t.failed(ctx, c, gen, f) // a vendor that goes on giving references to nothing is asked ever later
}

// claim makes sure that no other row has the reference of the code that was just put. An unmanaged one turns
// out to be that code: a read between the write and its answer had not known whose it was. A managed one has
// vanished, and its place was given away.
func (t *deviceTx) claim(ctx context.Context, ref string) error {
	for _, c := range t.codes {
		switch {
		case text(c.VendorRef) != ref:
			continue
		case !c.IsManaged || c.RemovingSince != nil:
			return t.gone(ctx, c)
		}
		if err := t.vanished(ctx, c); err != nil {
			return err
		}
		t.before[c.AccessCodeID] = *c // at once: a reference stands once only, whatever the order of the rows
		return save(ctx, t.tx, *c)
	}
	return nil
}

// RecordDelete notes what became of the removal of a code. What a device can show is gone once it no longer
// shows it; a device that cannot is believed.
func (s *Service) RecordDelete(ctx context.Context, h Holder, device uuid.UUID, w CodeWork, confirmed bool, failure *Failure) error {
	return s.onDevice(ctx, h, device, "record a removal", func(t *deviceTx) error {
		c := t.code(w.ID)
		switch {
		case c == nil || !t.leaving(c):
			return nil
		case failure != nil:
			return t.failedToRemove(ctx, c, *failure)
		case confirmed && !t.caps.ListCodes:
			leave := t.gone
			if c.RemovingSince == nil {
				leave = t.off
			}
			if err := leave(ctx, c); err != nil {
				return err
			}
			t.unblock()
		default:
			c.WriteGen, c.WriteAccepted, c.WriteAt = 0, true, &t.now
		}
		return t.tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: device, ReadNeeded: true}) // others may have waited for that
	})
}

// failedToRemove records that a removal came to nothing. A code that cannot be removed is not given up,
// unless the vendor does not let codes of others be removed at all.
func (t *deviceTx) failedToRemove(ctx context.Context, c *dbsqlc.AccessCode, f Failure) error {
	if f.Unsure && t.aside(c) { // it may have left by us: that is to be seen by what was noted before
		c.WriteAccepted = false
	} else {
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
	}
	if f.Class == FailedUnsupported && !c.IsManaged {
		c.RemovingSince, c.Status = nil, string(StatusSet)
		return t.end(ctx, func(a dbsqlc.ActionAttempt) bool {
			return idOf(a.AccessCodeID) == c.AccessCodeID && a.ActionType == DeleteUnmanagedAccessCode
		}, Failed, "cannot_delete_unmanaged_access_code", f.Message)
	}
	c.Attempts++
	next := t.now.Add(max(backoff(int(c.Attempts)), f.RetryAfter))
	c.NextAttemptAt = &next
	event, failure := "access_code.failed_to_remove_from_device", errFailedToRem
	if c.IsManaged && c.RemovingSince != nil && c.EndsAt != nil && !c.EndsAt.After(*c.RemovingSince) {
		event, failure = "access_code.failed_to_expire", errFailedToExp
	}
	if c.Attempts < patience || text(c.ErrorCode) == failure {
		return nil
	}
	t.setError(c, failure, f.Message+" It is tried further: until then the code may still open.", uuid.Nil)
	if !c.IsManaged {
		return nil
	}
	return t.emitTrouble(ctx, event, c)
}

// RecordUnreachable notes that the device could not be read or written: offline, as its vendor says, or for
// a reason that says nothing about it; unread: it was not even read. No attempt of a code is burnt by that. It returns how often in a row
// it has happened, and when something is to be told of it.
func (s *Service) RecordUnreachable(ctx context.Context, h Holder, device uuid.UUID, offline, unread bool) (failures int, tell *time.Time, err error) {
	err = s.onDevice(ctx, h, device, "record a failed read", func(t *deviceTx) error {
		n, err := t.tx.SetDeviceFailed(ctx, dbsqlc.SetDeviceFailedParams{DeviceID: device, Unread: unread})
		failures = int(n)
		if err != nil || !offline || !t.d.Online {
			return err
		}
		tell, err = t.online(ctx, false)
		return err
	})
	return failures, tell, err
}

// RecordUnsent notes that a write was not sent to a device whose codes nobody can read, as its vendor has said: a code that was not in
// doubt before is not.
func (s *Service) RecordUnsent(ctx context.Context, h Holder, device uuid.UUID, w CodeWork) error {
	return s.onDevice(ctx, h, device, "record that nothing was sent", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || t.caps.ListCodes || w.InDoubt || c.VendorRef != nil || c.WriteRef != nil || c.WriteGen != w.Gen {
			return nil
		}
		c.WriteGen, c.WriteAt, c.WriteAccepted, c.WritePinMac = 0, nil, false, nil
		if c.RemovingSince != nil {
			return t.gone(ctx, c)
		}
		return nil
	})
}

// RecordAnswered notes that the vendor has answered for a device whose codes nobody can read: RecordRead does of others.
func (s *Service) RecordAnswered(ctx context.Context, h Holder, device uuid.UUID) error {
	return s.onDevice(ctx, h, device, "record an answer", func(t *deviceTx) error {
		return t.tx.SetDeviceAnswered(ctx, device)
	})
}

// online records a transition, and says when it is to be told.
func (t *deviceTx) online(ctx context.Context, online bool) (tell *time.Time, err error) {
	if err := t.tx.SetDeviceOnline(ctx, dbsqlc.SetDeviceOnlineParams{DeviceID: t.d.DeviceID, Online: online, OnlineChangedAt: t.now}); err != nil {
		return nil, err
	}
	t.d.Online, t.d.OnlineChangedAt = online, t.now
	return t.s.tell(ctx, t.tx, &t.d)
}

// ScheduleDevice says when the device is to be looked at again unless it is woken before; nil: not by itself.
// What has woken it since seq makes it due at once.
func (s *Service) ScheduleDevice(ctx context.Context, device uuid.UUID, seq int64, due *time.Time) error {
	arg := dbsqlc.ScheduleDeviceParams{DeviceID: device, WakeSeq: seq, Never: due == nil}
	if due != nil { // the database's clock may be another: what counts is how long it is until then
		arg.After = due.Sub(s.opt.Now())
	}
	return s.db.ScheduleDevice(ctx, arg)
}

// DeviceDue says whether there is something to do on the device now.
func (s *Service) DeviceDue(ctx context.Context, device uuid.UUID) (bool, error) {
	due, err := s.db.DeviceDue(ctx, device)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueDevices lists devices on which there is something to do and nobody is doing it.
func (s *Service) DueDevices(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	return s.db.DueDevices(ctx, dbsqlc.DueDevicesParams{MaxRows: limit, ExcludeAccounts: but.Narrow, ExcludeWorkspaces: but.Wide, ExcludeCreators: but.Makers})
}

// DeviceOwners are the accounts and the workspaces of devices, and who has made these.
func (s *Service) DeviceOwners(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.DeviceOwners(ctx, devices)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.DeviceID] = worker.Owners{Narrow: r.ConnectedAccountID, Wide: r.WorkspaceID, Maker: r.CreatedBy}
	}
	return owners, err
}

// HasBeenRead says whether the codes on a device have been read at least once.
func (s *Service) HasBeenRead(ctx context.Context, device uuid.UUID) (bool, error) {
	d, err := s.db.GetDeviceByID(ctx, device)
	return err == nil && d.LastGoodReadAt != nil, err
}
