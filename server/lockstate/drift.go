package lockstate

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// setDisabled sets or clears the error of an unmanaged code that is disabled at the device.
func (l *Lock) setDisabled(c *Code, is bool) {
	switch {
	case is && c.Error == nil:
		l.setError(c, domain.ErrInactive, "The code is disabled at the device and does not open.", uuid.Nil)
	case !is && c.hasError(domain.ErrInactive):
		c.Error = nil
	}
}

const disabledAllowed = "The code was disabled at the device, which is allowed. " +
	"It does not open until you enable it there or change it here."

// disabledWithPermission reports whether a code was disabled at its device, which is allowed.
func (c *Code) disabledWithPermission() bool {
	return c.hasWarning(domain.WarnExternal) && c.Warning.Message == disabledAllowed
}

// onExternalChange handles the drift of a managed code that was changed at the device: it restores the desired state,
// or keeps an allowed change.
func (r *reading) onExternalChange(c *Code, f Found) {
	if r.isReported(c, f) {
		return
	}
	r.deviceChanged = true
	c.ExternalChange = domain.ChangeModified
	vendors := r.vendorsPIN(c, f)
	if c.ExternalModificationAllowed || vendors {
		r.keepChange(c, f, vendors)
	} else {
		c.AppliedGen, c.DesiredAt = 0, r.Now
		c.Status = StatusSetting
		r.recordDrift(c, "The code was changed at the device.")
	}
	r.emitProblem("access_code.modified_external_to_seam", c)
	if c.AppliedGen > 0 && !f.Disabled {
		r.setStatusByTimeFrame(c)
	}
}

// isReported reports whether an allowed change at the device was kept already.
func (r *reading) isReported(c *Code, f Found) bool {
	disabled := f.Disabled
	f.Disabled = false
	return c.ExternalModificationAllowed && c.hasWarning(domain.WarnExternal) &&
		disabled == c.disabledWithPermission() &&
		(pinChangedAtDevice(c, f) || disabled && r.same(c, f))
}

// keepChange takes over an allowed change at the device. vendors is true if the vendor chose another PIN.
func (r *reading) keepChange(c *Code, f Found, vendors bool) {
	if f.PIN != "" {
		c.setPIN(f.PIN)
	}
	if NativeSchedule(c, r.caps()) {
		c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
	}
	what := "The code was changed at the device, which is allowed: the change is kept."
	if f.Disabled {
		what = disabledAllowed
	}
	if vendors {
		what = "The PIN was changed at the device, whose vendor chooses the PINs: the change is kept."
	}
	r.warn(c, domain.WarnExternal, what)
	r.recordConfirmed(c, changedExternally)
}

// setStatusByTimeFrame sets the status of a code by its time frame, after a kept change at the device. It emits an
// event if the code starts to open.
func (l *Lock) setStatusByTimeFrame(c *Code) {
	was := c.Status
	if c.Status = c.statusOn(l.Now); c.Status != was && c.Status == StatusSet {
		l.emitWithPIN("access_code.set_on_device", c, c.PIN)
	}
}

// vendorsPIN reports whether a code differs only in its PIN and its vendor chooses the PINs.
func (r *reading) vendorsPIN(c *Code, f Found) bool {
	s := c.State()
	s.PIN = f.PIN
	return r.caps().ProviderPIN && f.PIN != "" && r.sameAs(c, s, f)
}

// forgetPIN clears the vendor-chosen PIN of a code that is not on its device: the vendor chooses a new one.
func (l *Lock) forgetPIN(c *Code) {
	if l.caps().ProviderPIN {
		c.setPIN("")
	}
}

// recordDrift schedules the restoration of a code whose observed state drifted. The first ones are immediate. After
// repeated drift the intervals grow, because another system manages the code or the device loses confirmed state.
func (l *Lock) recordDrift(c *Code, what string) {
	if c.DriftedAt == nil || c.DriftedAt.Add(driftWindow).Before(l.Now) {
		c.DriftCount = 0
	}
	c.DriftCount, c.DriftedAt = c.DriftCount+1, new(l.Now)
	if c.DriftCount < failureThreshold {
		l.setError(c, domain.ErrExternal, what+" The server is restoring it.", uuid.Nil)
		return
	}
	c.NextAttemptAt = new(l.Now.Add(l.backoff(c.DriftCount)))
	l.setError(c, domain.ErrExternal, what+" This keeps happening: does another system manage this device? "+
		"The server restores the code at growing intervals. "+
		"Stop the other system, or allow external modification.", uuid.Nil)
}

// onExternalDelete handles the drift of a managed code that was deleted at the device: it restores the code, or keeps
// an allowed deletion.
func (l *Lock) onExternalDelete(c *Code) {
	had := c.AppliedGen
	c.Ref, c.AppliedGen = "", 0
	c.clearWrite()
	l.forgetPIN(c)
	if had == 0 {
		// The code was lost with its device while its refused change left the confirmed state in place.
		if c.BlockedGen >= c.DesiredGen && c.Applied != nil && !c.ExternalModificationAllowed {
			c.BlockedGen, c.Status = 0, StatusSetting
		}
		return
	}
	c.ExternalChange = domain.ChangeRemoved
	switch {
	case c.ExternalModificationAllowed && had >= c.DesiredGen:
		c.BlockedGen, c.Status = c.DesiredGen, StatusUnset
		l.warn(c, domain.WarnExternal, "The code was deleted at the device, which is allowed: it stays deleted.")
	case c.ExternalModificationAllowed: // the current change was requested later, or was refused
		c.Status = StatusSetting
		if c.BlockedGen >= c.DesiredGen {
			c.Status = StatusUnset
		}
	default:
		// The refused change was of a code that is gone.
		if c.BlockedGen >= c.DesiredGen {
			c.BlockedGen = 0
		}
		c.Status, c.DesiredAt = StatusSetting, l.Now
		l.recordDrift(c, "The code was deleted at the device.")
	}
	l.emitProblem("access_code.deleted_external_to_seam", c)
}

// enable schedules the restoration of a disabled code that was just converted, unless external modification is allowed.
func (l *Lock) enable(c *Code) {
	if !c.hasError(domain.ErrInactive) {
		return
	}
	c.Error = nil
	if c.ExternalModificationAllowed {
		l.warn(c, domain.WarnExternal, disabledAllowed)
		c.ExternalChange = domain.ChangeModified
		return
	}
	c.AppliedGen, c.DesiredAt, c.Status = 0, l.Now, StatusSetting
}

// A device may lose its codes while it is out of its account, so its removal resets their confirmed state
// (onDeviceRemoved).

// restoreApplied restores the confirmed state of a code on a returned device if the observed state still equals it and
// differs from the desired state. It reports whether it did.
func (r *reading) restoreApplied(c *Code, f Found) bool {
	mayBeOff := f.Disabled && c.ExternalModificationAllowed && c.disabledWithPermission()
	blocked := c.BlockedGen >= c.DesiredGen
	if c.AppliedGen > 0 || c.WriteGen > 0 || !f.Confirmed || f.Removing || f.Failure != nil ||
		f.PIN == "" && !blocked && !mayBeOff || c.Applied == nil {
		return false
	}
	has, gen := *c.Applied, c.DesiredGen
	if mayBeOff {
		f.Disabled = false
	}
	if len(has.ChangesTo(c.State())) > 0 {
		gen--
	} else if !mayBeOff { // equal to the desired state, or disabled
		return false
	}
	if gen == 0 || !r.sameAs(c, has, f) {
		return false
	}
	c.AppliedGen, c.AppliedAt = gen, new(r.Now)
	if blocked || gen == c.DesiredGen {
		r.setFallbackStatus(c)
	}
	return true
}
