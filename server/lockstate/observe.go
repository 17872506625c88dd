package lockstate

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Found is one observed code of a device.
type Found struct {
	// Ref is the vendor's identifier.
	Ref string
	// Key is the access code that it was created for, if the vendor keeps that; zero: unknown.
	Key uuid.UUID
	// HasKey is true if the vendor shows any key, even one of another system.
	HasKey bool
	// KeyGuessed is true if the vendor does not keep Key, so that the slot may have been refilled since the write.
	KeyGuessed bool
	// PIN is empty if hidden.
	PIN              PIN
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
	// Unconverted is true if the vendor must take the code over before it can become managed.
	Unconverted bool
	// Unconvertible is why the vendor does not take the code over; empty: it may.
	Unconvertible string
	// Failure is why the vendor gave up setting the code on the device.
	Failure *Failure
}

// Observation is the complete list of the codes of a device.
type Observation struct {
	Found []Found
	// Tombstones are the keys among the found codes that belong to deleted codes.
	Tombstones map[uuid.UUID]bool
	// Abandoned are codes of backup pools of deleted devices that may be among the found codes.
	Abandoned []Code
}

// Observe records the observed codes of a device, which must be all its codes. It matches codes to rows, completes
// confirmed operations, detects drift, and adopts unknown codes as unmanaged ones. deferred is the number of changes of
// unmanaged codes that Sources.Admit did not allow; the device must be read again for them. A device that was removed
// during the read does not change.
func (l *Lock) Observe(seen Observation) (deferred int) {
	if l.Device.Removed {
		return 0
	}
	r := newReading(l, seen)
	if !l.Device.Managed {
		r.observePool()
		return 0
	}
	for _, f := range seen.Found {
		r.match(f)
	}
	emptySince := r.emptySince()
	if emptySince == nil { // removals first, because they make room
		r.removeUnmanaged()
	}
	r.insertUnmanaged()
	if emptySince == nil {
		for _, c := range l.Codes {
			if !r.seen[c.ID] && c.Offline == "" {
				r.onMissing(c)
			}
		}
	}
	if r.deviceChanged {
		l.unblock()
	}
	r.convert()
	r.finish(emptySince)
	return r.deferred
}

// finish records the read itself.
func (r *reading) finish(emptySince *time.Time) {
	r.Device.ReadNeeded = false
	r.Device.RereadAt, r.Device.EmptySince = r.again, emptySince
	r.changes.Read = &Read{RereadAt: r.again, EmptySince: emptySince}
}

// reading is the state of one Observe.
type reading struct {
	*Lock
	Observation

	seen map[uuid.UUID]bool
	// pending are the unmanaged codes that are on their way to the device, or that the vendor takes over.
	pending []*Code
	// unconvertible says why the vendor does not take unmanaged codes over.
	unconvertible map[uuid.UUID]string
	// byRef has the last code of each reference.
	byRef   map[string]*Code
	managed []*Code
	// others are new unmanaged codes, which insertUnmanaged adds.
	others []*Code
	// deferred counts the changes of unmanaged codes beyond the account's inventory rate limit.
	deferred int
	// again is when to read once more before acting on the result.
	again *time.Time
	// deviceChanged is true if a code left the device or changed, so that refused codes may fit now.
	deviceChanged bool
}

func newReading(l *Lock, seen Observation) *reading {
	r := &reading{Lock: l, Observation: seen, seen: map[uuid.UUID]bool{}, byRef: map[string]*Code{}}
	r.unconvertible = map[uuid.UUID]string{}
	for _, c := range l.Codes {
		r.byRef[c.Ref] = c
		if c.Managed {
			r.managed = append(r.managed, c)
		}
	}
	return r
}

// match finds the row of an observed code and records the differences.
func (r *reading) match(f Found) {
	f.Name = domain.CleanName(f.Name)
	f.StartsAt, f.EndsAt = domain.OnCalendar(f.StartsAt), domain.OnCalendar(f.EndsAt)
	c := r.owner(f)
	switch {
	case c == nil && (f.Removing || f.Failure != nil && !f.Confirmed):
		return
	case c == nil:
		r.adoptUnmanaged(f)
		return
	case c.Offline != "": // lists do not affect offline codes
		r.seen[c.ID] = true
		return
	}
	r.noteMove(c, f)
	if f.Failure != nil && !f.Confirmed && (!c.Managed || c.AppliedGen == 0) {
		r.failedCreate(c, f)
		return
	}
	r.seen[c.ID] = true
	shown := r.noteRef(c, f)
	if f.Failure != nil && f.Confirmed && r.hasPIN(c, *f.Failure) {
		f.Failure = nil
	}
	switch {
	case !c.Managed:
		if !f.Confirmed || f.Unconverted {
			r.pending = append(r.pending, c)
		}
		if f.Unconvertible != "" {
			r.unconvertible[c.ID] = f.Unconvertible
		}
		r.refresh(c, f)
		r.setDisabled(c, f.Disabled)
	case r.leaving(c):
		// The write that was pending when the code was deleted or postponed has arrived, so the code can be removed.
		if c.WriteGen > 0 {
			c.clearWrite()
		}
	default:
		r.compare(c, f, shown)
		r.notePIN(c, f)
	}
}

// noteMove forgets the confirmed state of a code that moved to another reference (movedTo), whose content is unknown.
func (r *reading) noteMove(c *Code, f Found) {
	if !c.Managed || c.Ref == "" || c.Ref == f.Ref {
		return
	}
	c.AppliedGen = 0
	if c.RemovingSince == nil && c.BlockedGen < c.DesiredGen {
		c.Status = StatusSetting
	}
}

// noteRef records the reference of an observed code. shown is true if the device has what was written.
func (r *reading) noteRef(c *Code, f Found) (shown bool) {
	// A recreated code does not change in place.
	recreated := r.caps().RecreateToChange() && c.PIN != "" && c.WriteGen >= c.DesiredGen && c.Ref == f.Ref
	unsure := c.WriteGen >= c.DesiredGen && r.anotherPIN(c)
	// A code that shows after its write was given up has the PIN that was sent last.
	claimed := c.Ref == "" && !unsure && (c.WriteGen > 0 || c.WritePIN == "" || c.WritePIN == c.PIN)
	shown = f.PIN != "" || r.caps().ProviderPIN || c.WriteAccepted || claimed || recreated
	if unsure && f.PIN == "" {
		c.WriteGen, c.WritePIN = c.DesiredGen-1, ""
	}
	if c.Ref != f.Ref {
		c.Ref, r.byRef[f.Ref] = f.Ref, c
	}
	c.WriteRef = "" // its slot was not vacated
	return shown
}

// compare compares the observed state of a managed code that stays with its desired and its confirmed one.
func (r *reading) compare(c *Code, f Found, shown bool) {
	r.noteName(c, f)
	// Clients cannot choose a PIN on such a device.
	if r.caps().ProviderPIN && f.PIN != "" && (c.PIN == "" || c.AppliedGen < c.DesiredGen) {
		c.setPIN(f.PIN)
	}
	if r.restoreApplied(c, f) {
		return
	}
	// After a repeated write, the old name counts as the device's choice.
	renamed := r.renamed(c, f) || c.WriteAccepted && c.Attempts > 0
	switch same := r.same(c, f); {
	case !f.Confirmed || f.Removing:
	case f.Failure != nil && c.WriteGen > 0:
		r.recordRefusal(c, *f.Failure)
	case c.AppliedGen < c.DesiredGen && !shown: // unknown PIN in its slot: written again
	case c.WriteGen > 0 && same && !renamed: // the new name is pending, or will be written again
	case c.WriteGen > 0 && same:
		was := c.Applied
		r.recordApplied(c, c.WriteGen, nil)
		if c.Applied == nil {
			c.Applied = r.shownState(c, was, f)
		}
	case r.caps().RecreateToChange() && c.WriteGen >= c.DesiredGen && shown: // differs from the write, permanently
		r.recordRefusal(c, Failure{
			Class:   FailedForNow,
			Message: "The device shows the code differently from what was set.",
		})
	case c.AppliedGen >= c.DesiredGen && !same && !r.staleRead(c):
		r.onExternalChange(c, f)
	case c.AppliedGen == 0 && c.WriteGen == 0 && same: // claimed after a crash, or restored at the device
		r.recordApplied(c, c.DesiredGen, nil)
	case same && c.disabledWithPermission(): // enabled again
		c.Warning = nil
		if c.AppliedGen >= c.DesiredGen {
			r.setStatusByTimeFrame(c)
		}
	}
}

// notePIN records the observed PIN of a code that is not in its desired state: another code may wait for that PIN.
func (r *reading) notePIN(c *Code, f Found) {
	switch {
	case !f.Confirmed || f.PIN == "":
	case c.AppliedGen == 0:
		c.WritePIN = f.PIN
	case c.AppliedGen < c.DesiredGen && c.Applied != nil && c.Applied.PIN != f.PIN:
		has := *c.Applied
		has.PIN = f.PIN
		c.Applied = &has
	}
}

// shownState returns the state of a code whose desired state changed during the write that the device shows. was is the
// state before the write. The result is nil if the PIN is unknown.
func (r *reading) shownState(c *Code, was *State, f Found) *State {
	has := c.State()
	if was != nil {
		has.Name = was.Name
		if !NativeSchedule(c, r.caps()) {
			has.StartsAt, has.EndsAt = was.StartsAt, was.EndsAt
		}
	}
	if !r.caps().ProviderPIN {
		has.PIN = cmp.Or(f.PIN, c.WritePIN)
	}
	if has.PIN == "" {
		return nil
	}
	return &has
}

// noteName records the name that the device shows for a code without a pending write. Before the read lag has passed,
// it may be the previous one.
func (r *reading) noteName(c *Code, f Found) {
	if c.AppliedGen < c.DesiredGen || c.WriteGen > 0 {
		return
	}
	if stale := c.AppliedAt != nil && c.AppliedAt.Add(r.Timeouts.ReadLag).After(r.Now); f.Name == "" || !stale {
		c.VendorName = domain.NonEmpty(f.Name)
	}
}

// recordRefusal records that the vendor gave up a write. A write fails only once, however often the vendor reports it.
func (r *reading) recordRefusal(c *Code, f Failure) {
	gen := c.WriteGen
	c.WriteGen, c.WriteAt = 0, nil
	r.recordFailure(c, gen, f)
}

// failedCreate handles a listed code whose creation failed on the device. Some vendors can neither change nor delete
// such a code, so its reference is useless.
func (r *reading) failedCreate(c *Code, f Found) {
	if !c.Managed { // it is missing like any other
		return
	}
	if c.Ref == f.Ref {
		c.Ref = ""
	}
	r.forgetPIN(c)
	switch {
	case c.WriteGen == 0:
	case c.RemovingSince != nil:
		c.clearWrite()
	default:
		r.recordRefusal(c, *f.Failure)
	}
}

// onMissing handles a code that the device did not show.
func (r *reading) onMissing(c *Code) {
	onItsWay := r.onItsWay(c)
	if !onItsWay && c.Ref == "" { // a code found in its slot later is a different one
		c.WriteRef = ""
		if c.BlockedGen >= c.DesiredGen { // and no write follows
			c.WriteGen, c.WriteAt = 0, nil
		}
	}
	switch {
	case c.RemovingSince != nil && c.Ref == "" && onItsWay:
		return // the write may still show
	case r.leaving(c) && c.Ref != "" && r.mayReappear(c):
		return // not removed yet, only not shown
	case c.RemovingSince != nil, !c.Managed:
		r.deviceChanged = true
		r.deleteCode(c)
		return
	case r.postponed(c) && !onItsWay, r.yieldsPIN(c):
		r.deviceChanged = true
		r.markRemoved(c)
		return
	case c.Ref == "" || (c.AppliedGen == 0 && onItsWay), r.staleRead(c):
		return // not there yet
	case r.vacated(c):
		r.deviceChanged = true
		r.recreateVacated(c)
		return
	}
	r.deviceChanged = true
	r.onExternalDelete(c)
}

// markRemoved records that a postponed or temporarily removed code has left its device.
func (l *Lock) markRemoved(c *Code) {
	wasOn, status := c.AppliedGen > 0, StatusSetting
	if l.postponed(c) {
		status = StatusUnset
	}
	c.Ref, c.AppliedGen = "", 0
	c.clearWrite()
	l.forgetPIN(c)
	c.NextAttemptAt, c.Status = nil, status
	// Earlier failures to set the code do not matter then.
	over := wasOn || status == StatusUnset
	if over {
		c.Attempts = 0
		if c.BlockedGen >= c.DesiredGen {
			c.BlockedGen = 0
		}
	}
	if over || c.hasError(domain.ErrFailedToRemove) {
		c.Error = nil
	}
	if wasOn {
		l.emit(Event{Type: "access_code.removed_from_device"}, c)
	}
}

// unblock retries the codes that the device refused because of its other codes.
func (l *Lock) unblock() {
	for _, c := range l.Codes {
		if c.RemovingSince == nil && c.BlockedGen == c.DesiredGen &&
			(c.hasError(domain.ErrDuplicate) || c.hasError(domain.ErrNoSpace)) {
			c.BlockedGen = 0
			c.Status = StatusSetting
		}
	}
}

// convert converts the requested unmanaged codes that are still on the device to managed ones. If the vendor allows no
// conversion, applyDue fails the requests.
func (r *reading) convert() {
	if !r.caps().Convertible() {
		return
	}
	for _, a := range r.Attempts {
		c := r.Code(a.CodeID)
		if a.Type != domain.ConvertAccessCode || c == nil || c.RemovingSince != nil || !r.seen[c.ID] {
			continue
		}
		if why, ok := r.unconvertible[c.ID]; ok {
			r.failConversion(c, a, "cannot_be_managed", why)
			continue
		}
		if slices.Contains(r.pending, c) {
			r.again = earlier(r.again, r.Now.Add(pollSoon))
			continue
		}
		if !c.Managed {
			c.Managed, c.VendorName = true, c.Name
			c.AppliedGen, c.AppliedAt = c.DesiredGen, new(r.Now)
			r.recordConfirmed(c, changedExternally)
			c.Status = c.statusOn(r.Now)
			if a.ExternalModificationAllowed != nil {
				c.ExternalModificationAllowed = *a.ExternalModificationAllowed
			}
			r.enable(c)
			r.emit(Event{Type: "access_code.unmanaged.converted_to_managed"}, c)
		}
		r.End(a.ID, Succeeded, "", "")
	}
}

// observePool is Observe for an unmanaged device: it finds out which codes of the pool are off the device.
func (r *reading) observePool() {
	if len(r.inPool()) == 0 {
		return
	}
	for _, f := range r.Found {
		if c := r.owner(f); c != nil && c.InPool {
			r.match(f)
		}
	}
	emptySince := r.emptySince()
	for _, c := range slices.Clone(r.inPool()) {
		if !r.seen[c.ID] && emptySince == nil {
			r.onMissing(c)
		}
	}
	r.finish(emptySince)
}
