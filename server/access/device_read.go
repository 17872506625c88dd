package access

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Found is one code as it was read from a device.
type Found struct {
	Ref              string // the vendor's identifier of it
	Key              string // the identifier of the code it was created for, where the vendor keeps that
	KeyGuessed       bool   // it does not: somebody else may have filled the place since that code was put there
	PIN              string // empty where hidden
	Name             string
	StartsAt, EndsAt *time.Time
	Confirmed        bool      // it is on the device; otherwise on its way
	Removing         bool      // it is on its way off
	ChangedAt        time.Time // PIN hidden: when the device told that it was changed; zero: never
	Disabled         bool      // it is kept, but opens nothing
	Failure          *Failure  // the vendor gave up putting it on the device
}

// RecordRead takes in what was read from a device; seq is that of the work it was read for. The list must be
// complete. It finds out which codes are whose, finishes what has shown, notices what was changed at the
// device, and keeps the codes of others as unmanaged. Of a device that was erased with its workspace meanwhile there is
// nothing to record.
func (s *Service) RecordRead(ctx context.Context, h Holder, device uuid.UUID, seq int64, found []Found) error {
	found = slices.DeleteFunc(slices.Clone(found), func(f Found) bool { return !keepable(f.Ref) }) // such can be neither changed nor removed
	err := s.onDevice(ctx, h, device, "record a read", func(t *deviceTx) error {
		if t.d.RemovedAt != nil { // since the read began
			return nil
		}
		read := newReading(t, found)
		if !t.d.IsManaged {
			return read.poolOnly(ctx, seq, found)
		}
		for _, f := range found {
			if err := read.take(ctx, f); err != nil {
				return err
			}
		}
		doubted := read.doubted(found)
		if doubted == nil { // what has left makes room for what has come
			if err := read.othersLeft(ctx); err != nil {
				return err
			}
		}
		if err := read.keepOthers(ctx); err != nil {
			return err
		}
		if doubted == nil {
			for _, c := range slices.Clone(t.codes) {
				if !read.seen[c.AccessCodeID] && !offline(*c) {
					if err := read.missing(ctx, c); err != nil {
						return err
					}
				}
			}
		}
		read.restLater()
		if read.changed {
			t.unblock()
		}
		if err := read.convert(ctx); err != nil {
			return err
		}
		if !t.d.Online { // it has just answered
			if _, err := t.online(ctx, true); err != nil {
				return err
			}
		}
		return t.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{DeviceID: device, WakeSeq: seq, RereadAt: read.again, EmptySince: doubted})
	})
	if store.IsNoRows(err) {
		return nil
	}
	return err
}

// reading is the state of one RecordRead.
type reading struct {
	*deviceTx
	found   []Found
	seen    map[uuid.UUID]bool
	byRef   map[string]*dbsqlc.AccessCode // who had that reference last
	managed []*dbsqlc.AccessCode
	others  []*dbsqlc.AccessCode // of somebody else, and new: keepOthers writes them down
	rest    int                  // of others that have come or left: there has been too much to tell of the account
	left    *[]dbsqlc.AccessCode // what leftInPool looks among; nil: not read yet
	deleted map[uuid.UUID]bool   // what ofDeleted looks among; nil: not read yet
	again   *time.Time           // when to read once more before believing it
	changed bool                 // something left the device or became another: what was refused may fit now
}

func newReading(t *deviceTx, found []Found) *reading {
	r := &reading{deviceTx: t, found: found, seen: map[uuid.UUID]bool{}, byRef: map[string]*dbsqlc.AccessCode{}}
	for _, c := range t.codes {
		r.byRef[text(c.VendorRef)] = c
		if c.IsManaged {
			r.managed = append(r.managed, c)
		}
	}
	return r
}

// doubted is since when the list has been empty although nothing of ours was to leave; nil where that is to be
// believed. Upstream lists are empty for a moment after a restart, and believing them loses every code.
func (r *reading) doubted(found []Found) *time.Time {
	if len(found) > 0 || !slices.ContainsFunc(r.codes, r.expected) {
		return nil
	}
	since := r.s.DoubtedSince(r.d.EmptySince, r.now)
	until := since.Add(r.s.opt.EmptyDoubt)
	if !until.After(r.now) {
		return nil
	}
	r.again = earlier(r.again, until)
	return since
}

// expected says whether a code is on the device by all that is known.
func (r *reading) expected(c *dbsqlc.AccessCode) bool {
	return c.VendorRef != nil && !offline(*c) && (!r.leaving(c) || !sent(c)) && (!c.IsManaged || c.AppliedGen > 0)
}

// sent says whether the removal of a code that is to leave has been sent, or may have been.
func sent(c *dbsqlc.AccessCode) bool { return c.WriteGen == 0 && c.WriteAt != nil }

// take finds out whose a code on the device is.
func (r *reading) take(ctx context.Context, f Found) error {
	f.Name = storable(f.Name)
	f.StartsAt, f.EndsAt = onCalendar(f.StartsAt), onCalendar(f.EndsAt)
	c := r.owner(f)
	if c == nil {
		if f.Removing || f.Failure != nil {
			return nil
		}
		return r.other(ctx, f)
	}
	if offline(*c) { // it opens as it was made, whatever a list says of it
		r.seen[c.AccessCodeID] = true
		return nil
	}
	if c.IsManaged && c.VendorRef != nil && text(c.VendorRef) != f.Ref { // movedTo: what was put there nobody knows
		c.AppliedGen = 0
		if c.RemovingSince == nil && c.BlockedGen < c.DesiredGen {
			c.Status = string(StatusSetting)
		}
	}
	if c.IsManaged && c.AppliedGen == 0 && f.Failure != nil && !f.Confirmed {
		return r.stillborn(ctx, c, f)
	}
	r.seen[c.AccessCodeID] = true
	anew := r.caps.PutAnew && c.PinMac != nil && c.WriteGen >= c.DesiredGen && text(c.VendorRef) == f.Ref // what that put has made becomes no other
	unsure := c.WriteGen >= c.DesiredGen && r.anotherPIN(c)
	shown := f.PIN != "" || r.caps.ProviderPIN || c.WriteAccepted || c.VendorRef == nil && !unsure || anew // it has what was written
	if unsure && f.PIN == "" {
		c.WriteGen = c.DesiredGen - 1
	}
	if text(c.VendorRef) != f.Ref {
		c.VendorRef, r.byRef[f.Ref] = &f.Ref, c
	}
	c.WriteRef = nil // its place was not emptied
	if f.Failure != nil && f.Confirmed && r.hasPIN(c, *f.Failure) {
		f.Failure = nil
	}
	if !c.IsManaged {
		r.refresh(c, f)
		r.disabled(c, f.Disabled)
		return nil
	}
	if r.leaving(c) {
		if c.WriteGen > 0 { // a put on its way when the code was deleted or put off: it has shown, now it can be taken back
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		}
		return nil
	}
	defer r.saw(c, f)
	if r.caps.ProviderPIN && f.PIN != "" && (c.PinMac == nil || c.AppliedGen < c.DesiredGen) { // nobody can ask for another
		r.s.setPIN(c, f.PIN)
	}
	if was, err := r.asItWas(c, f); err != nil || was {
		return err
	}
	renamed, err := r.renamed(c, f)
	if err != nil {
		return err
	}
	renamed = renamed || c.WriteAccepted && c.Attempts > 0 // once it was written again, it is believed
	switch same := r.same(c, f); {
	case !f.Confirmed || f.Removing:
		return nil
	case f.Failure != nil && c.WriteGen > 0:
		return r.refused(ctx, c, f)
	case c.AppliedGen < c.DesiredGen && !shown: // an unknown PIN in its place: it is written again
		return nil
	case c.WriteGen > 0 && same && !renamed: // the new name is on its way, or it is written again
		return nil
	case c.WriteGen > 0 && same:
		return r.applied(ctx, c, c.WriteGen)
	case r.caps.PutAnew && c.WriteGen >= c.DesiredGen && shown: // it is not what was put, and will not become that
		return r.refused(ctx, c, Found{Failure: &Failure{Class: FailedForNow, Message: "The device shows the code otherwise than it was put."}})
	case c.AppliedGen >= c.DesiredGen && !same && !r.lags(c):
		return r.modified(ctx, c, f)
	case c.AppliedGen == 0 && c.WriteGen == 0 && same: // claimed after a crash, or put back by somebody
		return r.applied(ctx, c, c.DesiredGen)
	case same && text(c.WarningCode) == warnExternal && text(c.WarningMessage) == disabledAllowed: // it was enabled again
		clearWarning(c)
		if c.AppliedGen >= c.DesiredGen {
			return r.follow(ctx, c)
		}
	}
	return nil
}

// saw notes the PIN that the device shows of a code that is not as it should be: others may wait for that one.
func (r *reading) saw(c *dbsqlc.AccessCode, f Found) {
	if mac := r.mac(f.PIN); c.AppliedGen == 0 && f.Confirmed && mac != nil && !encryption.Equal(c.WritePinMac, mac) {
		c.WritePinMac = mac
	}
}

// refused records that the vendor gave up a put. It may go on saying so: one write fails once.
func (r *reading) refused(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	gen := c.WriteGen
	c.WriteGen, c.WriteAt = 0, nil
	return r.failed(ctx, c, gen, *f.Failure)
}

// stillborn deals with a code that is listed but never came to be on the device. It can be neither changed
// nor, at some vendors, deleted, so its reference is of no use.
func (r *reading) stillborn(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	if text(c.VendorRef) == f.Ref {
		c.VendorRef = nil
	}
	r.forgetPIN(c)
	switch {
	case c.WriteGen == 0:
		return nil
	case c.RemovingSince != nil:
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		return nil
	}
	return r.refused(ctx, c, f)
}

// lags says whether what was read may be older than what the device has confirmed; then it is read again.
func (r *reading) lags(c *dbsqlc.AccessCode) bool {
	if c.AppliedAt == nil || c.AppliedGen == 0 {
		return false
	}
	until := c.AppliedAt.Add(r.s.opt.ListLag)
	if !until.After(r.now) {
		return false
	}
	r.again = earlier(r.again, until)
	return true
}

// refresh takes over what an unmanaged code has become at the device.
func (r *reading) refresh(c *dbsqlc.AccessCode, f Found) {
	if c.RemovingSince == nil {
		c.Status = string(StatusSet)
	}
	if !encryption.Equal(c.PinMac, r.mac(f.PIN)) && (c.PinMac != nil || f.PIN != "") {
		r.s.setPIN(c, f.PIN)
		r.changed = true
	}
	if text(c.Name) != f.Name {
		c.Name = nonEmpty(f.Name)
	}
	if !sameTime(c.StartsAt, f.StartsAt) || !sameTime(c.EndsAt, f.EndsAt) {
		c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
	}
}

// missing deals with a code that the device did not show.
func (r *reading) missing(ctx context.Context, c *dbsqlc.AccessCode) error {
	onItsWay := r.onItsWay(c)
	if !onItsWay && c.VendorRef == nil { // who is found in its place later is somebody else
		c.WriteRef = nil
		if c.BlockedGen >= c.DesiredGen { // and nothing more is sent
			c.WriteGen, c.WriteAt = 0, nil
		}
	}
	switch {
	case c.RemovingSince != nil && c.VendorRef == nil && onItsWay:
		return nil // the put may still show
	case r.leaving(c) && c.VendorRef != nil && r.comes(c):
		return nil // it has not been taken away yet, only not shown
	case c.RemovingSince != nil, !c.IsManaged:
		r.changed = true
		return r.gone(ctx, c)
	case putOff(*c, r.caps, r.now) && !onItsWay, r.aside(c):
		r.changed = true
		return r.off(ctx, c)
	case c.VendorRef == nil || (c.AppliedGen == 0 && onItsWay), r.lags(c):
		return nil // not there yet
	case r.emptied(c):
		r.changed = true
		return r.putBack(ctx, c)
	}
	r.changed = true
	return r.vanished(ctx, c)
}

// off records that a code whose time has been moved ahead, or that has stepped aside, has left its device until then.
func (t *deviceTx) off(ctx context.Context, c *dbsqlc.AccessCode) error {
	wasOn, status := c.AppliedGen > 0, StatusSetting
	if putOff(*c, t.caps, t.now) {
		status = StatusUnset
	}
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted = nil, 0, 0, nil, false
	t.forgetPIN(c)
	c.NextAttemptAt, c.Status = nil, string(status)
	over := wasOn || status == StatusUnset // what went wrong with putting it there is no matter any more
	if over {
		c.Attempts = 0
	}
	if over || text(c.ErrorCode) == errFailedToRem {
		clearError(c)
	}
	if !wasOn {
		return nil
	}
	return t.s.emit(ctx, t.tx, "access_code.removed_from_device", aboutCode(t.d, *c))
}

// unblock lets codes be tried again that the device refused for what was on it.
func (t *deviceTx) unblock() {
	for _, c := range t.codes {
		if code := text(c.ErrorCode); c.RemovingSince == nil && c.BlockedGen == c.DesiredGen && (code == errDuplicate || code == errNoSpace) {
			c.BlockedGen = 0
			c.Status = string(StatusSetting)
		}
	}
}

// convert makes those unmanaged codes managed that are asked for and are still on the device. Where the vendor allows none, the
// next look refuses those that have been asked for since the last.
func (r *reading) convert(ctx context.Context) error {
	if !r.caps.Convertible {
		return nil
	}
	for _, a := range r.pending {
		c := r.code(idOf(a.AccessCodeID))
		if a.ActionType != ConvertAccessCode || c == nil || c.RemovingSince != nil || !r.seen[c.AccessCodeID] {
			continue
		}
		if !c.IsManaged {
			c.IsManaged = true
			c.AppliedGen, c.AppliedAt = c.DesiredGen, &r.now
			if err := r.confirmed(ctx, c, changedExternally); err != nil {
				return err
			}
			c.Status = string(statusOn(*c, r.now))
			if allowed := options(a).ExternalModificationAllowed; allowed != nil {
				c.ExternalModificationAllowed = *allowed
			}
			r.enable(c)
			if err := r.s.emit(ctx, r.tx, "access_code.unmanaged.converted_to_managed", aboutCode(r.d, *c)); err != nil {
				return err
			}
		}
		if err := r.end(ctx, is(a), Succeeded, "", ""); err != nil {
			return err
		}
	}
	return nil
}
