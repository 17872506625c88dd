package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// CodeChange is a change of a code. nil and zero fields stay.
type CodeChange struct {
	ID                          string
	DeviceID                    string // if set, the code must be on this device
	Name                        *string
	PIN                         string
	Type                        string // "ongoing" removes the time frame, "time_bound" requires one
	StartsAt, EndsAt            string
	Managed                     *bool // false makes the code unmanaged
	ExternalModificationAllowed *bool
	EvenIfOffline               bool

	retry bool // see RetryCode
}

// hasFields reports whether a change names a field that the device stores, even with its current value.
func (ch CodeChange) hasFields() bool {
	return ch.retry || ch.Name != nil || ch.PIN != "" || ch.Type != "" || ch.StartsAt != "" || ch.EndsAt != ""
}

// onCode runs f on a code in a transaction with its device locked, and returns the attempt that f requests. It fails
// with NotFound for an unknown code or one of the other kind.
func (s *Service) onCode(
	ctx context.Context,
	p domain.Principal,
	id string,
	managed bool,
	f func(*deviceTx, *lockstate.Code) (lockstate.Requested, error),
) (Attempt, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Attempt{}, codeNotFound(id)
	}
	var t *deviceTx
	var requested lockstate.Requested
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		at, err := tx.FindAccessCode(ctx, dbsqlc.FindAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: parsed})
		if store.IsNoRows(err) {
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		l, err := tx.LockWorkspaceDeviceWithCodes(
			ctx,
			dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: at.DeviceID, Scope: p.Scope},
		)
		if store.IsNoRows(err) { // or erased since, with its codes
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		if !l.Device.IsManaged && l.Device.RemovedAt == nil {
			return deviceUnmanaged()
		}
		if t, err = s.load(tx, l); err != nil {
			return err
		}
		c := t.lock.Code(parsed)
		if c == nil || c.InPool || c.Managed != managed {
			return codeNotFound(id)
		}
		if requested, err = f(t, c); err != nil {
			return err
		}
		return t.write(ctx, tx.BatchLast)
	})
	switch _, ok := domain.AsError(err); {
	case err != nil && !ok:
		return Attempt{}, fmt.Errorf("change access code %s: %w", id, err)
	case err != nil:
		return Attempt{}, err
	}
	return toAttempt(t.attempt(requested)), nil
}

// UpdateCode changes a managed code. It returns the attempt to program the change, which has already succeeded
// where the device is not affected. A repeated request returns another attempt with the same result, and
// retries what the device has rejected.
//
// It fails with NotFound, with Invalid where the device does not accept the PIN or time frame, and with
// TooMany where twenty changes of it wait. It fails with Conflict where another code has the PIN in the same time
// (duplicate_access_code) or the code is being deleted.
func (s *Service) UpdateCode(ctx context.Context, p domain.Principal, ch CodeChange) (Attempt, error) {
	return s.onCode(ctx, p, ch.ID, true, func(t *deviceTx, c *lockstate.Code) (r lockstate.Requested, err error) {
		switch {
		case ch.DeviceID != "" && !domain.IsID(ch.DeviceID, t.d.DeviceID):
			return r, codeNotFound(ch.ID)
		case c.RemovingSince != nil:
			return r, &domain.Error{
				Kind: domain.Conflict,
				Type: "access_code_being_deleted",
				Message: "The access code is being removed from its device and cannot be changed. Create " +
					"a new one.",
			}
		case c.Offline != "":
			return r, offlineUnchangeable(ch)
		case ch.Managed != nil && !*ch.Managed:
			return t.lock.Unmanage(c)
		}
		return t.update(c, ch)
	})
}

// RetryCode requests what a managed code already has, so that the server retries what the device has rejected. It
// returns the attempt, and fails like UpdateCode.
func (s *Service) RetryCode(ctx context.Context, p domain.Principal, id string) (Attempt, error) {
	return s.UpdateCode(ctx, p, CodeChange{ID: id, EvenIfOffline: true, retry: true})
}

// update changes a managed code on its locked device.
func (t *deviceTx) update(c *lockstate.Code, ch CodeChange) (lockstate.Requested, error) {
	if !t.d.Online && !ch.EvenIfOffline {
		return lockstate.Requested{}, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_offline",
			Message: "The device is offline. Leave attempt_for_offline_device out to apply the change when it returns.",
		}
	}
	change, err := t.checkChange(c, ch)
	if err != nil {
		return lockstate.Requested{}, err
	}
	return t.lock.Update(c, change)
}

// checkChange checks the values of a change against the rules of the device. It fails with Invalid.
func (t *deviceTx) checkChange(c *lockstate.Code, ch CodeChange) (out lockstate.Change, err error) {
	caps := t.lock.Device.Capabilities
	out = lockstate.Change{
		PIN:                         t.pins.of(ch.PIN),
		ExternalModificationAllowed: ch.ExternalModificationAllowed,
		HasFields:                   ch.hasFields(),
	}
	if ch.Name != nil && *ch.Name != domain.Value(c.Name) {
		out.Name = ch.Name
	}
	if out.PIN == c.PIN {
		out.PIN = ""
	}
	out.StartsAt, out.EndsAt, err = changedTimeFrame(c, ch, t.s.opt.Now())
	violations := []error{err}
	if out.PIN != "" {
		violations = append(violations, checkChangedPIN(ch.PIN, caps))
	}
	if (out.Name != nil || out.PIN != "") && lockstate.NativeSchedule(c, caps) {
		violations = append(violations, checkWhole(out.StartsAt, out.EndsAt))
	}
	return out, domain.All(violations...)
}

// checkChangedPIN fails with Invalid where a device does not accept the PIN for an existing code.
func checkChangedPIN(pin string, caps capability.Set) error {
	if caps.ProviderPIN {
		return domain.Invalidf(
			"code",
			"The vendor of this device chooses the PINs (cannot_specify_pin_code). Delete this code and create another",
		)
	}
	return checkPIN(pin, caps)
}

// changedTimeFrame returns the time frame after a change. A single new bound is combined with the existing
// other one.
func changedTimeFrame(c *lockstate.Code, ch CodeChange, now time.Time) (*time.Time, *time.Time, error) {
	switch {
	case ch.Type == "ongoing" && (ch.StartsAt != "" || ch.EndsAt != ""):
		return nil, nil, domain.Invalidf("type", "An ongoing access code has neither starts_at nor ends_at")
	case ch.Type == "ongoing":
		return nil, nil, nil
	case ch.Type == "time_bound" && (ch.StartsAt == "" || ch.EndsAt == ""):
		return nil, nil, domain.Invalidf("type", "A time_bound access code needs both starts_at and ends_at")
	case ch.StartsAt == "" && ch.EndsAt == "":
		return c.StartsAt, c.EndsAt, nil
	case ch.StartsAt == "" && c.StartsAt == nil,
		ch.EndsAt == "" && c.EndsAt == nil,
		ch.StartsAt != "" && ch.EndsAt != "":
		return parseTimeFrame(ch.StartsAt, ch.EndsAt, now)
	case ch.StartsAt != "":
		starts, err := domain.ParseTime("starts_at", ch.StartsAt)
		if err != nil {
			return nil, nil, err
		}
		return checkTimeFrame(starts, *c.EndsAt, now)
	}
	ends, err := domain.ParseTime("ends_at", ch.EndsAt)
	if err != nil {
		return nil, nil, err
	}
	return checkTimeFrame(*c.StartsAt, ends, now)
}

// DeleteCode marks a managed code for removal. The row is deleted when the device confirms, or immediately if
// the code never reached the device. A repeated request returns another attempt of the same removal, of which
// there are at most twenty. It fails with NotFound.
func (s *Service) DeleteCode(ctx context.Context, p domain.Principal, id, deviceID string) (Attempt, error) {
	return s.onCode(ctx, p, id, true, func(t *deviceTx, c *lockstate.Code) (lockstate.Requested, error) {
		if deviceID != "" && !domain.IsID(deviceID, t.d.DeviceID) {
			return lockstate.Requested{}, codeNotFound(id)
		}
		if err := checkOfflineDeletion(t.d, c); err != nil {
			return lockstate.Requested{}, err
		}
		return t.lock.Remove(c)
	})
}

// DeleteUnmanagedCode marks an unmanaged code for removal from its device. It fails with NotFound. Where the
// vendor does not support the removal, the attempt fails.
func (s *Service) DeleteUnmanagedCode(ctx context.Context, p domain.Principal, id string) (Attempt, error) {
	return s.onCode(ctx, p, id, false, func(t *deviceTx, c *lockstate.Code) (lockstate.Requested, error) {
		return t.lock.RemoveUnmanaged(c)
	})
}

// ConvertCode requests to make an unmanaged code managed. That happens after the next read of the device, if
// the code is still on it. Where the vendor does not support it, the attempt fails. It fails with NotFound, and
// with TooMany where twenty conversions of it wait.
func (s *Service) ConvertCode(
	ctx context.Context,
	p domain.Principal,
	id string,
	externalModificationAllowed *bool,
) (Attempt, error) {
	return s.onCode(ctx, p, id, false, func(t *deviceTx, c *lockstate.Code) (lockstate.Requested, error) {
		return t.lock.Convert(c, externalModificationAllowed)
	})
}

// PullBackupCode takes a code out of the device's pool to replace another one (lockstate.Lock.PullBackup). It fails
// with NotFound, Invalid, and Conflict.
func (s *Service) PullBackupCode(ctx context.Context, p domain.Principal, id string) (Code, error) {
	var pulled uuid.UUID
	_, err := s.onCode(ctx, p, id, true, func(t *deviceTx, c *lockstate.Code) (r lockstate.Requested, err error) {
		pulled, err = t.lock.PullBackup(c)
		return r, err
	})
	if err != nil {
		return Code{}, err
	}
	return s.GetCode(ctx, p, true, pulled.String(), "", "")
}
