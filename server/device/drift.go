package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// disabled sets or clears the error of an unmanaged code that is disabled at the device.
func (r *reading) disabled(c *dbsqlc.AccessCode, is bool) {
	switch {
	case is && c.ErrorCode == nil:
		r.setError(c, domain.ErrInactive, "The code is disabled at the device and does not open.", uuid.Nil)
	case !is && domain.Value(c.ErrorCode) == domain.ErrInactive:
		clearError(c)
	}
}

const disabledAllowed = "The code was disabled at the device, which is allowed. " +
	"It does not open until you enable it there or change it here."

// allow sets whether changes of a code at its device are kept. If a kept change loses its permission, the device is
// read. undo reports that the server must set the code again, because it was deleted or disabled there.
func (s *Service) allow(ctx context.Context, tx store.Tx, c *dbsqlc.AccessCode, allowed *bool) (undo bool, err error) {
	if allowed == nil {
		return false, nil
	}
	forbidden := c.ExternalModificationAllowed && !*allowed
	c.ExternalModificationAllowed = *allowed
	if !forbidden || domain.Value(c.WarningCode) != domain.WarnExternal {
		return false, nil
	}
	undo = staysOff(*c) || domain.Value(c.WarningMessage) == disabledAllowed
	clearWarning(c)
	return undo, s.accounts.WakeDevice(ctx, tx, c.DeviceID, true)
}

// onExternalChange handles the drift of a managed code that was changed at the device: it restores the desired state,
// or keeps an allowed change.
func (r *reading) onExternalChange(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	if (pinChangedAtDevice(*c, f) || f.Disabled && domain.Value(c.WarningMessage) == disabledAllowed) &&
		c.ExternalModificationAllowed && domain.Value(c.WarningCode) == domain.WarnExternal {
		return nil // kept, and already reported
	}
	r.deviceChanged = true
	c.ExternalChange = new(domain.ChangeModified)
	stands := r.vendorsPIN(*c, f)
	if c.ExternalModificationAllowed || stands {
		if f.PIN != "" {
			r.s.setPIN(c, f.PIN)
		}
		if nativeSchedule(*c, r.caps) {
			c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
		}
		what := "The code was changed at the device, which is allowed: the change is kept."
		if f.Disabled {
			what = disabledAllowed
		}
		if stands {
			what = "The PIN was changed at the device, whose vendor chooses the PINs: the change is kept."
		}
		r.warn(c, domain.WarnExternal, what)
		if err := r.recordConfirmed(ctx, c, changedExternally); err != nil {
			return err
		}
	} else {
		c.AppliedGen, c.DesiredAt = 0, r.now
		c.Status = string(StatusSetting)
		r.recordDrift(c, "The code was changed at the device.")
	}
	if err := r.emitProblem(ctx, "access_code.modified_external_to_seam", c); err != nil || c.AppliedGen == 0 ||
		f.Disabled {
		return err
	}
	return r.setStatusByTimeFrame(ctx, c)
}

// setStatusByTimeFrame sets the status of a code by its time frame, after a kept change at the device. It emits an event if
// the code starts to open.
func (t *deviceTx) setStatusByTimeFrame(ctx context.Context, c *dbsqlc.AccessCode) error {
	was := c.Status
	if c.Status = string(statusOn(*c, t.now)); c.Status == was || c.Status != string(StatusSet) {
		return nil
	}
	return t.emitWithPIN(ctx, "access_code.set_on_device", c)
}

// vendorsPIN reports whether a code differs only in its PIN and its vendor chooses the PINs.
func (r *reading) vendorsPIN(c dbsqlc.AccessCode, f Found) bool {
	c.PinMac = r.mac(f.PIN)
	return r.caps.ProviderPIN && f.PIN != "" && r.same(&c, f)
}

// forgetPIN clears the vendor-chosen PIN of a code that is not on its device: the vendor chooses a new one.
func (t *deviceTx) forgetPIN(c *dbsqlc.AccessCode) {
	if t.caps.ProviderPIN {
		t.s.setPIN(c, "")
	}
}

// recordDrift schedules the restoration of a code whose observed state drifted. The first ones are immediate. After
// repeated drift the intervals grow, because another system manages the code or the device loses confirmed state.
func (t *deviceTx) recordDrift(c *dbsqlc.AccessCode, what string) {
	if c.DriftedAt == nil || c.DriftedAt.Add(driftWindow).Before(t.now) {
		c.DriftCount = 0
	}
	c.DriftCount, c.DriftedAt = c.DriftCount+1, &t.now
	if int(c.DriftCount) < failureThreshold {
		t.setError(c, domain.ErrExternal, what+" The server is restoring it.", uuid.Nil)
		return
	}
	next := t.now.Add(backoff(int(c.DriftCount)))
	c.NextAttemptAt = &next
	t.setError(c, domain.ErrExternal, what+" This keeps happening: does another system manage this device? "+
		"The server restores the code at growing intervals. "+
		"Stop the other system, or allow external modification.", uuid.Nil)
}

func (t *deviceTx) warn(c *dbsqlc.AccessCode, code, message string) {
	c.WarningCode, c.WarningMessage, c.WarningAt = &code, &message, &t.now
}

func clearWarning(c *dbsqlc.AccessCode) {
	c.WarningCode, c.WarningMessage, c.WarningAt = nil, nil, nil
}

// onExternalDelete handles the drift of a managed code that was deleted at the device: it restores the code, or keeps
// an allowed deletion.
func (t *deviceTx) onExternalDelete(ctx context.Context, c *dbsqlc.AccessCode) error {
	had := c.AppliedGen
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted = nil, 0, 0, nil, false
	t.forgetPIN(c)
	if had == 0 {
		// The code was lost with its device while its refused change left the confirmed state in place.
		if c.BlockedGen >= c.DesiredGen && c.AppliedSealed != nil && !c.ExternalModificationAllowed {
			c.BlockedGen, c.Status = 0, string(StatusSetting)
		}
		return nil
	}
	c.ExternalChange = new(domain.ChangeRemoved)
	switch {
	case c.ExternalModificationAllowed && had >= c.DesiredGen:
		c.BlockedGen, c.Status = c.DesiredGen, string(StatusUnset)
		t.warn(c, domain.WarnExternal, "The code was deleted at the device, which is allowed: it stays deleted.")
	case c.ExternalModificationAllowed: // the current change was requested later, or was refused
		c.Status = string(StatusSetting)
		if c.BlockedGen >= c.DesiredGen {
			c.Status = string(StatusUnset)
		}
	default:
		// The refused change was of a code that is gone.
		if c.BlockedGen >= c.DesiredGen {
			c.BlockedGen = 0
		}
		c.Status, c.DesiredAt = string(StatusSetting), t.now
		t.recordDrift(c, "The code was deleted at the device.")
	}
	return t.emitProblem(ctx, "access_code.deleted_external_to_seam", c)
}

// enable schedules the restoration of a disabled code that was just converted, unless external modification is allowed.
func (r *reading) enable(c *dbsqlc.AccessCode) {
	if domain.Value(c.ErrorCode) != domain.ErrInactive {
		return
	}
	clearError(c)
	if c.ExternalModificationAllowed {
		r.warn(c, domain.WarnExternal, disabledAllowed)
		c.ExternalChange = new(domain.ChangeModified)
		return
	}
	c.AppliedGen, c.DesiredAt, c.Status = 0, r.now, string(StatusSetting)
}

// A device may lose its codes while it is out of its account, so its removal resets their confirmed state
// (onDeviceRemoved).

// restoreApplied restores the confirmed state of a code on a returned device if the observed state still equals it and
// differs from the desired state. It reports whether it did.
func (r *reading) restoreApplied(c *dbsqlc.AccessCode, f Found) (bool, error) {
	mayBeOff := f.Disabled && c.ExternalModificationAllowed && domain.Value(c.WarningMessage) == disabledAllowed
	blocked := c.BlockedGen >= c.DesiredGen
	if c.AppliedGen > 0 || c.WriteGen > 0 || !f.Confirmed || f.Removing || f.Failure != nil ||
		f.PIN == "" && !blocked && !mayBeOff {
		return false, nil
	}
	has, err := r.s.appliedOf(*c)
	if err != nil || has == nil {
		return false, err
	}
	wanted, err := r.s.stateOf(*c)
	if err != nil {
		return false, err
	}
	was, gen := *c, c.DesiredGen
	was.PinMac, was.StartsAt, was.EndsAt = r.mac(domain.Value(has.PIN)), has.StartsAt, has.EndsAt
	if mayBeOff {
		f.Disabled = false
	}
	if len(has.changes(wanted)) > 0 {
		gen--
	} else if !mayBeOff { // equal to the desired state, or disabled
		return false, nil
	}
	if gen == 0 || !r.same(&was, f) {
		return false, nil
	}
	c.AppliedGen, c.AppliedAt = gen, &r.now
	if blocked || gen == c.DesiredGen {
		return true, r.setFallbackStatus(c)
	}
	return true, nil
}
