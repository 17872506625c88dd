package access

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// disabled shows whether an unmanaged code opens anything.
func (r *reading) disabled(c *dbsqlc.AccessCode, is bool) {
	switch {
	case is && c.ErrorCode == nil:
		r.setError(c, errInactive, "The code is disabled at the device: it opens nothing.", uuid.Nil)
	case !is && text(c.ErrorCode) == errInactive:
		clearError(c)
	}
}

const disabledAllowed = "The code was disabled at the device, which is allowed: it opens nothing until it is enabled there, or changed here."

// allow sets whether what is done to a code at its device stands. Where something stood and no longer does the device is
// read; undo says that it has to have the code put once more, because it was deleted or disabled there.
func (s *Service) allow(ctx context.Context, tx store.Tx, c *dbsqlc.AccessCode, allowed *bool) (undo bool, err error) {
	if allowed == nil {
		return false, nil
	}
	forbidden := c.ExternalModificationAllowed && !*allowed
	c.ExternalModificationAllowed = *allowed
	if !forbidden || text(c.WarningCode) != warnExternal {
		return false, nil
	}
	undo = staysOff(*c) || text(c.WarningMessage) == disabledAllowed
	clearWarning(c)
	return undo, s.wakeDevice(ctx, tx, c.DeviceID, true)
}

// modified deals with a managed code that was changed at the device: it is put right, or the change stands
// where that is allowed.
func (r *reading) modified(ctx context.Context, c *dbsqlc.AccessCode, f Found) error {
	if (changed(*c, f) || f.Disabled && text(c.WarningMessage) == disabledAllowed) && c.ExternalModificationAllowed && text(c.WarningCode) == warnExternal {
		return nil // it stands, and was told
	}
	r.changed = true
	c.ExternalChange = new(changeModified)
	stands := r.vendorsPIN(*c, f)
	if c.ExternalModificationAllowed || stands {
		if f.PIN != "" {
			r.s.setPIN(c, f.PIN)
		}
		if nativeSchedule(*c, r.caps) {
			c.StartsAt, c.EndsAt = f.StartsAt, f.EndsAt
		}
		what := "The code was changed at the device, which is allowed: the change stands."
		if f.Disabled {
			what = disabledAllowed
		}
		if stands {
			what = "The PIN was changed at the device, whose vendor chooses the PINs: the change stands."
		}
		r.warn(c, warnExternal, what)
		if err := r.confirmed(ctx, c, changedExternally); err != nil {
			return err
		}
	} else {
		c.AppliedGen, c.DesiredAt = 0, r.now
		c.Status = string(StatusSetting)
		r.dispute(c, "The code was changed at the device.")
	}
	if err := r.emitTrouble(ctx, "access_code.modified_external_to_seam", c); err != nil || c.AppliedGen == 0 || f.Disabled {
		return err
	}
	return r.follow(ctx, c)
}

// follow gives a code that stands as it was changed at the device, or was enabled there, the status that its time frame makes, and tells
// when it opens by that.
func (t *deviceTx) follow(ctx context.Context, c *dbsqlc.AccessCode) error {
	was := c.Status
	if c.Status = string(statusOn(*c, t.now)); c.Status == was || c.Status != string(StatusSet) {
		return nil
	}
	return t.emitWithPIN(ctx, "access_code.set_on_device", c)
}

// vendorsPIN says whether a code is as it should be but for a PIN that nobody can ask for.
func (r *reading) vendorsPIN(c dbsqlc.AccessCode, f Found) bool {
	c.PinMac = r.mac(f.PIN)
	return r.caps.ProviderPIN && f.PIN != "" && r.same(&c, f)
}

// forgetPIN forgets, of a code that is not on its device, a PIN that the vendor has chosen: it chooses another.
func (t *deviceTx) forgetPIN(c *dbsqlc.AccessCode) {
	if t.caps.ProviderPIN {
		t.s.setPIN(c, "")
	}
}

// dispute has a code put right that was found otherwise than it had been put: at once, unless that happens again
// and again. Then somebody else manages it too, or its device does not keep what it confirms, and pauses grow.
func (t *deviceTx) dispute(c *dbsqlc.AccessCode, what string) {
	if c.DriftedAt == nil || c.DriftedAt.Add(disputeMemory).Before(t.now) {
		c.DriftCount = 0
	}
	c.DriftCount, c.DriftedAt = c.DriftCount+1, &t.now
	if int(c.DriftCount) < patience {
		t.setError(c, errExternal, what+" It is being put right.", uuid.Nil)
		return
	}
	next := t.now.Add(backoff(int(c.DriftCount)))
	c.NextAttemptAt = &next
	t.setError(c, errExternal, what+" That keeps happening: does another system manage this device? It is put right again from time to time. Stop the other system, or allow external modification.", uuid.Nil)
}

func (t *deviceTx) warn(c *dbsqlc.AccessCode, code, message string) {
	c.WarningCode, c.WarningMessage, c.WarningAt = &code, &message, &t.now
}

func clearWarning(c *dbsqlc.AccessCode) {
	c.WarningCode, c.WarningMessage, c.WarningAt = nil, nil, nil
}

// vanished deals with a managed code that was taken off the device by somebody else: it is put back, or stays
// off where that is allowed.
func (t *deviceTx) vanished(ctx context.Context, c *dbsqlc.AccessCode) error {
	had := c.AppliedGen
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted = nil, 0, 0, nil, false
	t.forgetPIN(c)
	if had == 0 {
		if c.BlockedGen >= c.DesiredGen && c.AppliedSealed != nil && !c.ExternalModificationAllowed { // it was lost with its device, and stood as it was
			c.BlockedGen, c.Status = 0, string(StatusSetting)
		}
		return nil
	}
	c.ExternalChange = new(changeRemoved)
	switch {
	case c.ExternalModificationAllowed && had >= c.DesiredGen:
		c.BlockedGen, c.Status = c.DesiredGen, string(StatusUnset)
		t.warn(c, warnExternal, "The code was deleted at the device, which is allowed: it stays off.")
	case c.ExternalModificationAllowed: // what is wanted now has been asked for since, or was refused
		c.Status = string(StatusSetting)
		if c.BlockedGen >= c.DesiredGen {
			c.Status = string(StatusUnset)
		}
	default:
		if c.BlockedGen >= c.DesiredGen { // a change that was refused, of a code that is not there any more
			c.BlockedGen = 0
		}
		c.Status, c.DesiredAt = string(StatusSetting), t.now
		t.dispute(c, "The code was deleted at the device.")
	}
	return t.emitTrouble(ctx, "access_code.deleted_external_to_seam", c)
}

// enable has a code that was just converted open again, unless it may stay as somebody has left it.
func (r *reading) enable(c *dbsqlc.AccessCode) {
	if text(c.ErrorCode) != errInactive {
		return
	}
	clearError(c)
	if c.ExternalModificationAllowed {
		r.warn(c, warnExternal, disabledAllowed)
		c.ExternalChange = new(changeModified)
		return
	}
	c.AppliedGen, c.DesiredAt, c.Status = 0, r.now, string(StatusSetting)
}
