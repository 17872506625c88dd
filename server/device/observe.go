package device

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Found is one observed code of a device.
type Found struct {
	// Ref is the vendor's identifier.
	Ref string
	// Key is the identifier of the access code that it was created for, if the vendor keeps that.
	Key string
	// KeyGuessed is true if the vendor does not keep Key, so that the slot may have been refilled since the write.
	KeyGuessed bool
	// PIN is empty if hidden.
	PIN              string
	Name             string
	StartsAt, EndsAt *time.Time
	// Confirmed is true if the code is on the device, false if it is on its way.
	Confirmed bool
	// Removing is true if the code is being removed.
	Removing bool
	// ChangedAt is when the device reported a change of a hidden PIN; zero means never.
	ChangedAt time.Time
	// Disabled is true if the device keeps the code but does not open for it.
	Disabled bool
	// Failure is why the vendor gave up setting the code on the device.
	Failure *Failure
}

// RecordRead records the observed codes of a device, which must be all its codes. seq is that of the work that the read
// was for. It matches codes to rows, completes confirmed operations, detects drift, and adopts unknown codes as
// unmanaged ones. It does nothing for a device that was erased with its workspace.
func (s *Service) RecordRead(ctx context.Context, h domain.Fence, device uuid.UUID, seq int64, found []Found) error {
	// Codes without a valid reference can be neither changed nor removed.
	found = slices.DeleteFunc(slices.Clone(found), func(f Found) bool { return !domain.ValidRef(f.Ref) })
	err := s.onDevice(ctx, h, device, "record a read", func(t *deviceTx) error {
		if t.d.RemovedAt != nil { // removed during the read
			return nil
		}
		read := newReading(t, found)
		if !t.d.IsManaged {
			return read.recordPool(ctx, seq, found)
		}
		for _, f := range found {
			if err := read.match(ctx, f); err != nil {
				return err
			}
		}
		doubted := read.emptySince(found)
		if doubted == nil { // removals first, because they make room
			if err := read.removeUnmanaged(ctx); err != nil {
				return err
			}
		}
		if err := read.insertUnmanaged(ctx); err != nil {
			return err
		}
		if doubted == nil {
			for _, c := range slices.Clone(t.codes) {
				if !read.seen[c.AccessCodeID] && !offline(*c) {
					if err := read.onMissing(ctx, c); err != nil {
						return err
					}
				}
			}
		}
		read.scheduleReread()
		if read.deviceChanged {
			t.unblock()
		}
		if err := read.convert(ctx); err != nil {
			return err
		}
		if !t.d.Online { // it has just answered
			if _, err := t.setOnline(ctx, true); err != nil {
				return err
			}
		}
		return t.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{
			DeviceID:   device,
			WakeSeq:    seq,
			RereadAt:   read.again,
			EmptySince: doubted,
		})
	})
	if store.IsNoRows(err) {
		return nil
	}
	return err
}

// reading is the state of one RecordRead.
type reading struct {
	*deviceTx
	found []Found
	seen  map[uuid.UUID]bool
	// byRef has the last code of each reference.
	byRef   map[string]*dbsqlc.AccessCode
	managed []*dbsqlc.AccessCode
	// others are new unmanaged codes, which insertUnmanaged inserts.
	others []*dbsqlc.AccessCode
	// rest counts the changes of unmanaged codes beyond the account's inventory rate limit.
	rest int
	// left caches the codes of abandoned pools; nil before the query.
	left *[]dbsqlc.AccessCode
	// deleted caches the tombstones of observed codes; nil before the query.
	deleted map[uuid.UUID]bool
	// again is when to read once more before acting on the result.
	again *time.Time
	// deviceChanged is true if a code left the device or changed, so that refused codes may fit now.
	deviceChanged bool
}

func newReading(t *deviceTx, found []Found) *reading {
	r := &reading{
		deviceTx: t,
		found:    found,
		seen:     map[uuid.UUID]bool{},
		byRef:    map[string]*dbsqlc.AccessCode{},
	}
	for _, c := range t.codes {
		r.byRef[domain.Value(c.VendorRef)] = c
		if c.IsManaged {
			r.managed = append(r.managed, c)
		}
	}
	return r
}

// emptySince returns since when the list has been unexpectedly empty, nil if the list is credible. Vendors return empty
// lists for a moment after a restart, and acting on them would lose every code.
func (r *reading) emptySince(found []Found) *time.Time {
	if len(found) > 0 || !slices.ContainsFunc(r.codes, r.expected) {
		return nil
	}
	since := r.s.GracePeriodStart(r.d.EmptySince, r.now)
	until := since.Add(r.s.opt.EmptyListGrace)
	if !until.After(r.now) {
		return nil
	}
	r.again = earlier(r.again, until)
	return since
}

// expected reports whether a code is on the device according to the records.
func (r *reading) expected(c *dbsqlc.AccessCode) bool {
	return c.VendorRef != nil && !offline(*c) && (!r.leaving(c) || !sent(c)) && (!c.IsManaged || c.AppliedGen > 0)
}

// sent reports whether the removal of a leaving code was, or may have been, sent.
func sent(c *dbsqlc.AccessCode) bool { return c.WriteGen == 0 && c.WriteAt != nil }

// match finds the row of an observed code and records the differences.
func (r *reading) match(ctx context.Context, f Found) error {
	f.Name = domain.CleanName(f.Name)
	f.StartsAt, f.EndsAt = domain.OnCalendar(f.StartsAt), domain.OnCalendar(f.EndsAt)
	c := r.owner(f)
	if c == nil {
		if f.Removing || f.Failure != nil {
			return nil
		}
		return r.adoptUnmanaged(ctx, f)
	}
	if offline(*c) { // lists do not affect offline codes
		r.seen[c.AccessCodeID] = true
		return nil
	}
	// A code that moved to another reference (movedTo) has unknown content.
	if c.IsManaged && c.VendorRef != nil && domain.Value(c.VendorRef) != f.Ref {
		c.AppliedGen = 0
		if c.RemovingSince == nil && c.BlockedGen < c.DesiredGen {
			c.Status = string(StatusSetting)
		}
	}
	if c.IsManaged && c.AppliedGen == 0 && f.Failure != nil && !f.Confirmed {
		return r.failedCreate(ctx, c, f)
	}
	r.seen[c.AccessCodeID] = true
	// A recreated code does not change in place.
	recreated := r.caps.RecreateToChange() && c.PinMac != nil && c.WriteGen >= c.DesiredGen &&
		domain.Value(c.VendorRef) == f.Ref
	unsure := c.WriteGen >= c.DesiredGen && r.anotherPIN(c)
	// shown is true if the device has what was written.
	shown := f.PIN != "" || r.caps.ProviderPIN || c.WriteAccepted || c.VendorRef == nil && !unsure || recreated
	if unsure && f.PIN == "" {
		c.WriteGen = c.DesiredGen - 1
	}
	if domain.Value(c.VendorRef) != f.Ref {
		c.VendorRef, r.byRef[f.Ref] = &f.Ref, c
	}
	c.WriteRef = nil // its slot was not vacated
	if f.Failure != nil && f.Confirmed && r.hasPIN(c, *f.Failure) {
		f.Failure = nil
	}
	if !c.IsManaged {
		r.refresh(c, f)
		r.disabled(c, f.Disabled)
		return nil
	}
	if r.leaving(c) {
		// The write that was pending when the code was deleted or postponed has arrived, so the code can be removed.
		if c.WriteGen > 0 {
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		}
		return nil
	}
	defer r.saw(c, f)
	r.sawName(c, f)
	// Clients cannot choose a PIN on such a device.
	if r.caps.ProviderPIN && f.PIN != "" && (c.PinMac == nil || c.AppliedGen < c.DesiredGen) {
		r.s.setPIN(c, f.PIN)
	}
	if was, err := r.restoreApplied(c, f); err != nil || was {
		return err
	}
	renamed, err := r.renamed(c, f)
	if err != nil {
		return err
	}
	// After a repeated write, the old name counts as the device's choice.
	renamed = renamed || c.WriteAccepted && c.Attempts > 0
	switch same := r.same(c, f); {
	case !f.Confirmed || f.Removing:
		return nil
	case f.Failure != nil && c.WriteGen > 0:
		return r.recordRefusal(ctx, c, f)
	case c.AppliedGen < c.DesiredGen && !shown: // unknown PIN in its slot: written again
		return nil
	case c.WriteGen > 0 && same && !renamed: // the new name is pending, or will be written again
		return nil
	case c.WriteGen > 0 && same:
		return r.recordApplied(ctx, c, c.WriteGen)
	case r.caps.RecreateToChange() && c.WriteGen >= c.DesiredGen && shown: // differs from the write, permanently
		mismatch := &Failure{Class: FailedForNow, Message: "The device shows the code differently from what was set."}
		return r.recordRefusal(ctx, c, Found{Failure: mismatch})
	case c.AppliedGen >= c.DesiredGen && !same && !r.staleRead(c):
		return r.onExternalChange(ctx, c, f)
	case c.AppliedGen == 0 && c.WriteGen == 0 && same: // claimed after a crash, or restored at the device
		return r.recordApplied(ctx, c, c.DesiredGen)
	case same && domain.Value(c.WarningCode) == domain.WarnExternal && domain.Value(c.WarningMessage) == disabledAllowed: // enabled again
		clearWarning(c)
		if c.AppliedGen >= c.DesiredGen {
			return r.setStatusByTimeFrame(ctx, c)
		}
	}
	return nil
}

// saw records the observed PIN of a code without a confirmed state: another code may wait for that PIN.
func (r *reading) saw(c *dbsqlc.AccessCode, f Found) {
	if mac := r.mac(f.PIN); c.AppliedGen == 0 && f.Confirmed && mac != nil && !r.s.keys.Match(c.WritePinMac, mac) {
		c.WritePinMac = mac
	}
}

// sawName records the name that the device shows for a code without a pending write. Before the read lag has passed,
// it may be the previous one.
func (r *reading) sawName(c *dbsqlc.AccessCode, f Found) {
	if c.AppliedGen < c.DesiredGen || c.WriteGen > 0 {
		return
	}
	if stale := c.AppliedAt != nil && c.AppliedAt.Add(r.s.opt.ReadLag).After(r.now); f.Name == "" || !stale {
		c.VendorName = domain.NonEmpty(f.Name)
	}
}

// recordRefusal records that the vendor gave up a write. A write fails only once, however often the vendor reports it.
func (r *reading) recordRefusal(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	gen := c.WriteGen
	c.WriteGen, c.WriteAt = 0, nil
	return r.recordFailure(ctx, c, gen, *f.Failure)
}

// failedCreate handles a listed code whose creation failed on the device. Some vendors can neither change nor delete
// such a code, so its reference is useless.
func (r *reading) failedCreate(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	if domain.Value(c.VendorRef) == f.Ref {
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
	return r.recordRefusal(ctx, c, f)
}

// staleRead reports whether a read may be older than the last confirmed write, and then schedules another read.
func (r *reading) staleRead(c *dbsqlc.AccessCode) bool {
	if c.AppliedAt == nil || c.AppliedGen == 0 {
		return false
	}
	until := c.AppliedAt.Add(r.s.opt.ReadLag)
	if !until.After(r.now) {
		return false
	}
	r.again = earlier(r.again, until)
	return true
}

// refresh copies the observed state of an unmanaged code into its row.
func (r *reading) refresh(c *dbsqlc.AccessCode, f Found) {
	if c.RemovingSince == nil {
		c.Status = string(StatusSet)
	}
	if !r.s.keys.Match(c.PinMac, r.mac(f.PIN)) && (c.PinMac != nil || f.PIN != "") {
		r.s.setPIN(c, f.PIN)
		r.deviceChanged = true
	}
	if domain.Value(c.Name) != f.Name {
		c.Name = domain.NonEmpty(f.Name)
	}
	if !sameTime(c.StartsAt, f.StartsAt) || !sameTime(c.EndsAt, f.EndsAt) {
		c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
	}
}

// onMissing handles a code that the device did not show.
func (r *reading) onMissing(ctx context.Context, c *dbsqlc.AccessCode) error {
	onItsWay := r.onItsWay(c)
	if !onItsWay && c.VendorRef == nil { // a code found in its slot later is a different one
		c.WriteRef = nil
		if c.BlockedGen >= c.DesiredGen { // and no write follows
			c.WriteGen, c.WriteAt = 0, nil
		}
	}
	switch {
	case c.RemovingSince != nil && c.VendorRef == nil && onItsWay:
		return nil // the write may still show
	case r.leaving(c) && c.VendorRef != nil && r.mayReappear(c):
		return nil // not removed yet, only not shown
	case c.RemovingSince != nil, !c.IsManaged:
		r.deviceChanged = true
		return r.deleteCode(ctx, c)
	case putOff(*c, r.caps, r.now) && !onItsWay, r.yieldsPIN(c):
		r.deviceChanged = true
		return r.markRemoved(ctx, c)
	case c.VendorRef == nil || (c.AppliedGen == 0 && onItsWay), r.staleRead(c):
		return nil // not there yet
	case r.vacated(c):
		r.deviceChanged = true
		return r.recreateVacated(ctx, c)
	}
	r.deviceChanged = true
	return r.onExternalDelete(ctx, c)
}

// markRemoved records that a postponed or temporarily removed code has left its device.
func (t *deviceTx) markRemoved(ctx context.Context, c *dbsqlc.AccessCode) error {
	wasOn, status := c.AppliedGen > 0, StatusSetting
	if putOff(*c, t.caps, t.now) {
		status = StatusUnset
	}
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted = nil, 0, 0, nil, false
	t.forgetPIN(c)
	c.NextAttemptAt, c.Status = nil, string(status)
	// Earlier failures to set the code do not matter then.
	over := wasOn || status == StatusUnset
	if over {
		c.Attempts = 0
	}
	if over || domain.Value(c.ErrorCode) == domain.ErrFailedToRemove {
		clearError(c)
	}
	if !wasOn {
		return nil
	}
	return t.s.events.Emit(ctx, t.tx, "access_code.removed_from_device", event.AboutCode(t.d, *c))
}

// unblock retries the codes that the device refused because of its other codes.
func (t *deviceTx) unblock() {
	for _, c := range t.codes {
		if code := domain.Value(c.ErrorCode); c.RemovingSince == nil && c.BlockedGen == c.DesiredGen &&
			(code == domain.ErrDuplicate || code == domain.ErrNoSpace) {
			c.BlockedGen = 0
			c.Status = string(StatusSetting)
		}
	}
}

// convert converts the requested unmanaged codes that are still on the device to managed ones. If the vendor allows no
// conversion, applyDue fails the requests.
func (r *reading) convert(ctx context.Context) error {
	if !r.caps.Convertible() {
		return nil
	}
	for _, a := range r.pending {
		c := r.code(domain.Value(a.AccessCodeID))
		if a.ActionType != domain.ConvertAccessCode || c == nil || c.RemovingSince != nil || !r.seen[c.AccessCodeID] {
			continue
		}
		if !c.IsManaged {
			c.IsManaged, c.VendorName = true, c.Name
			c.AppliedGen, c.AppliedAt = c.DesiredGen, &r.now
			if err := r.recordConfirmed(ctx, c, changedExternally); err != nil {
				return err
			}
			c.Status = string(statusOn(*c, r.now))
			if allowed := options(a).ExternalModificationAllowed; allowed != nil {
				c.ExternalModificationAllowed = *allowed
			}
			r.enable(c)
			if err := r.s.events.Emit(
				ctx, r.tx, "access_code.unmanaged.converted_to_managed", event.AboutCode(r.d, *c),
			); err != nil {
				return err
			}
		}
		if err := r.end(ctx, is(a), Succeeded, "", ""); err != nil {
			return err
		}
	}
	return nil
}
