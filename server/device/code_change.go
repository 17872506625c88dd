package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
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
}

// onCode runs f on a code in a transaction with its device locked. It fails with NotFound for an unknown code
// or one of the other kind.
func (s *Service) onCode(
	ctx context.Context,
	p domain.Principal,
	id string,
	managed bool,
	f func(store.Tx, dbsqlc.Device, dbsqlc.AccessCode) (dbsqlc.ActionAttempt, error),
) (Attempt, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Attempt{}, codeNotFound(id)
	}
	var a dbsqlc.ActionAttempt
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		c, err := tx.FindAccessCode(ctx, dbsqlc.FindAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: parsed})
		if store.IsNoRows(err) {
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		d, err := tx.LockWorkspaceDevice(
			ctx,
			dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: c.DeviceID, Scope: p.Scope},
		)
		if store.IsNoRows(err) { // or erased since, with its codes
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		if !d.IsManaged && d.RemovedAt == nil {
			return deviceUnmanaged()
		}
		c, err = tx.FindAccessCode(
			ctx,
			dbsqlc.FindAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: parsed},
		) // the current row
		if store.IsNoRows(err) || (err == nil && c.IsManaged != managed) {
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		a, err = f(tx, d, c)
		return err
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("change access code %s: %w", id, err)
	}
	return toAttempt(a), err
}

// saveCode writes a row.
func saveCode(ctx context.Context, tx store.Tx, c dbsqlc.AccessCode) error {
	return tx.UpdateAccessCode(ctx, dbsqlc.UpdateAccessCodeParams{
		AccessCodeID:                c.AccessCodeID,
		IsManaged:                   c.IsManaged,
		Name:                        c.Name,
		VendorName:                  c.VendorName,
		PinSealed:                   c.PinSealed,
		PinMac:                      c.PinMac,
		StartsAt:                    c.StartsAt,
		EndsAt:                      c.EndsAt,
		Status:                      c.Status,
		ExternalModificationAllowed: c.ExternalModificationAllowed,
		VendorRef:                   c.VendorRef,
		DesiredGen:                  c.DesiredGen,
		AppliedGen:                  c.AppliedGen,
		AppliedAt:                   c.AppliedAt,
		BlockedGen:                  c.BlockedGen,
		WriteGen:                    c.WriteGen,
		WriteRef:                    c.WriteRef,
		WritePinMac:                 c.WritePinMac,
		WriteAt:                     c.WriteAt,
		WriteAccepted:               c.WriteAccepted,
		Attempts:                    c.Attempts,
		NextAttemptAt:               c.NextAttemptAt,
		RemovingSince:               c.RemovingSince,
		ErrorCode:                   c.ErrorCode,
		ErrorMessage:                c.ErrorMessage,
		ErrorAt:                     c.ErrorAt,
		ErrorCodeID:                 c.ErrorCodeID,
		WarningCode:                 c.WarningCode,
		WarningMessage:              c.WarningMessage,
		WarningAt:                   c.WarningAt,
		DriftCount:                  c.DriftCount,
		DriftedAt:                   c.DriftedAt,
		ExternalChange:              c.ExternalChange,
		DesiredAt:                   c.DesiredAt,
		AppliedSealed:               c.AppliedSealed,
		CommonCodeKey:               c.CommonCodeKey,
		IsBackup:                    c.IsBackup,
		InPool:                      c.InPool,
		PulledBackupCodeID:          c.PulledBackupCodeID,
	})
}

// UpdateCode changes a managed code. It returns the attempt to program the change, which has already succeeded
// where the device is not affected. A repeated request returns another attempt with the same result, and
// retries what the device has rejected.
//
// It fails with NotFound, with Invalid where the device does not accept the PIN or time frame, and with
// TooMany where twenty changes of it wait. It fails with Conflict where another code has the PIN in the same time
// (duplicate_access_code) or the code is being deleted.
func (s *Service) UpdateCode(ctx context.Context, p domain.Principal, ch CodeChange) (Attempt, error) {
	return s.onCode(
		ctx,
		p,
		ch.ID,
		true,
		func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (a dbsqlc.ActionAttempt, err error) {
			if ch.DeviceID != "" && !domain.IsID(ch.DeviceID, c.DeviceID) {
				return a, codeNotFound(ch.ID)
			}
			if c.RemovingSince != nil {
				return a, &domain.Error{
					Kind: domain.Conflict,
					Type: "access_code_being_deleted",
					Message: "The access code is being removed from its device and cannot be changed. Create " +
						"a new one.",
				}
			}
			if offline(c) {
				return a, offlineUnchangeable(ch)
			}
			if ch.Managed != nil && !*ch.Managed {
				return s.unmanage(ctx, tx, d, c)
			}
			return s.update(ctx, tx, d, c, ch)
		},
	)
}

// update changes a managed code on its locked device.
func (s *Service) update(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	c dbsqlc.AccessCode,
	ch CodeChange,
) (a dbsqlc.ActionAttempt, err error) {
	if !d.Online && !ch.EvenIfOffline {
		return a, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_offline",
			Message: "The device is offline. Leave attempt_for_offline_device out to apply the change when it returns.",
		}
	}
	undo, err := s.allow(ctx, tx, &c, ch.ExternalModificationAllowed)
	if err != nil {
		return a, err
	}
	changes, err := s.applyChange(ctx, tx, d, &c, ch)
	if err != nil {
		return a, err
	}
	if again := undo || ch.hasFields() && isBlocked(c); len(changes) == 0 && !again {
		return s.answerUnchanged(ctx, tx, d, c, ch)
	}
	s.requestWrite(&c)
	if c.AppliedGen == 0 { // not on the device yet: the new time frame determines its status
		c.Status = string(StatusSetting)
		if when := programAt(c, capabilities(d)); when != nil && when.After(s.opt.Now()) {
			c.Status = string(StatusUnset)
			clearError(&c)
		}
	}
	if err := saveCode(ctx, tx, c); err != nil {
		return a, err
	}
	if len(changes) > 0 { // otherwise the change was already announced
		if err := s.emitRequested(ctx, tx, event.AboutCode(d, c), changes); err != nil {
			return a, err
		}
	}
	if err := s.alignBackup(ctx, tx, d, c); err != nil {
		return a, err
	}
	if a, err = s.newAttempt(ctx, tx, c, domain.UpdateAccessCode, attemptOptions{}); err != nil {
		return a, err
	}
	return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
}

// applyChange applies a CodeChange to a row. It returns the changes of what the device has.
func (s *Service) applyChange(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	c *dbsqlc.AccessCode,
	ch CodeChange,
) ([]codeChange, error) {
	caps := capabilities(d)
	was, err := s.stateOf(*c)
	if err != nil {
		return nil, err
	}
	named, coded := ch.Name != nil &&
		*ch.Name != domain.Value(c.Name), ch.PIN != "" &&
		ch.PIN != domain.Value(was.PIN)
	starts, ends, err := changedTimeFrame(*c, ch, s.opt.Now())
	violations := []error{err}
	if coded {
		violations = append(violations, checkChangedPIN(ch.PIN, caps))
	}
	if (named || coded) && nativeSchedule(*c, caps) {
		violations = append(violations, checkWhole(starts, ends))
	}
	if err := domain.All(violations...); err != nil {
		return nil, err
	}
	if named {
		c.Name = ch.Name
	}
	moved := !sameTime(starts, c.StartsAt) || !sameTime(ends, c.EndsAt)
	var taken []dbsqlc.ListOccupiedPINsRow
	if coded || moved {
		if taken, err = tx.ListOccupiedPINs(ctx, d.DeviceID); err != nil {
			return nil, err
		}
	}
	before, others := *c, taken
	c.StartsAt, c.EndsAt = starts, ends
	if coded {
		s.setPIN(c, ch.PIN)
	} else {
		others = inTurnWith(taken, before)
	}
	if err := s.checkFree(others, *c); err != nil {
		return nil, err
	}
	if moved {
		if err := checkMoreRoom(caps, taken, before, *c, s.opt.Now()); err != nil {
			return nil, err
		}
	}
	now, err := s.stateOf(*c)
	return was.changes(now), err
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
func changedTimeFrame(c dbsqlc.AccessCode, ch CodeChange, now time.Time) (*time.Time, *time.Time, error) {
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

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// unmanage leaves a code on its device and makes it unmanaged.
func (s *Service) unmanage(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	c dbsqlc.AccessCode,
) (a dbsqlc.ActionAttempt, err error) {
	if c.VendorRef == nil || c.AppliedGen != c.DesiredGen {
		return a, domain.Invalidf(
			"is_managed",
			"The device has not confirmed the code yet. Wait until its status is set, or delete it.",
		)
	}
	taken, err := tx.ListOccupiedPINs(ctx, d.DeviceID)
	if err != nil {
		return a, err
	}
	if err := s.checkNextStay(taken, c); err != nil {
		return a, err
	}
	if c.IsBackup {
		if err := tx.ClearPulledBackup(
			ctx,
			dbsqlc.ClearPulledBackupParams{DeviceID: c.DeviceID, AccessCodeID: c.AccessCodeID},
		); err != nil {
			return a, err
		}
	}
	c.Status = string(StatusSet) // also before it starts, as with all unmanaged codes
	c.IsManaged, c.IsBackup = false, false
	c.ErrorCode, c.WarningCode, c.CommonCodeKey, c.PulledBackupCodeID = nil, nil, nil, nil
	if err := saveCode(ctx, tx, c); err != nil {
		return a, err
	}
	if err := s.events.Emit(ctx, tx, "access_code.unmanaged.created", event.AboutCode(d, c)); err != nil {
		return a, err
	}
	return s.doneAttempt(ctx, tx, c, domain.UpdateAccessCode)
}

// DeleteCode marks a managed code for removal. The row is deleted when the device confirms, or immediately if
// the code never reached the device. A repeated request returns another attempt of the same removal, of which
// there are at most twenty. It fails with NotFound.
func (s *Service) DeleteCode(ctx context.Context, p domain.Principal, id, deviceID string) (Attempt, error) {
	return s.onCode(
		ctx,
		p,
		id,
		true,
		func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (dbsqlc.ActionAttempt, error) {
			if deviceID != "" && !domain.IsID(deviceID, c.DeviceID) {
				return dbsqlc.ActionAttempt{}, codeNotFound(id)
			}
			if err := s.checkOfflineDeletion(d, c); err != nil {
				return dbsqlc.ActionAttempt{}, err
			}
			return s.remove(ctx, tx, d, c, domain.DeleteAccessCode)
		},
	)
}

// DeleteUnmanagedCode marks an unmanaged code for removal from its device. It fails with NotFound. Where the
// vendor does not support the removal, the attempt fails.
func (s *Service) DeleteUnmanagedCode(ctx context.Context, p domain.Principal, id string) (Attempt, error) {
	return s.onCode(
		ctx,
		p,
		id,
		false,
		func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (dbsqlc.ActionAttempt, error) {
			if !capabilities(d).DeleteUnmanaged {
				a, err := s.newAttempt(ctx, tx, c, domain.DeleteUnmanagedAccessCode, attemptOptions{})
				if err != nil {
					return a, err
				}
				return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
			}
			return s.remove(ctx, tx, d, c, domain.DeleteUnmanagedAccessCode)
		},
	)
}

func (s *Service) remove(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	c dbsqlc.AccessCode,
	actionType string,
) (a dbsqlc.ActionAttempt, err error) {
	if err := s.removeBackup(ctx, tx, d, c); err != nil {
		return a, err
	}
	neverSent := c.VendorRef == nil && c.WriteGen == 0 || offline(c)
	if neverSent || d.RemovedAt != nil { // no code on the device, or no device
		if a, err = s.doneAttempt(ctx, tx, c, actionType); err != nil {
			return a, err
		}
		return a, s.deleteCode(ctx, tx, d, c)
	}
	if c.RemovingSince == nil {
		now := s.opt.Now().UTC()
		c.RemovingSince, c.Status = &now, string(StatusRemoving)
		c.ErrorCode, c.ErrorMessage, c.ErrorAt, c.ErrorCodeID = nil, nil, nil, nil
		c.Attempts, c.NextAttemptAt = 0, nil
		if c.VendorRef != nil { // a pending write is irrelevant; without a reference the code must be found first
			c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false
		}
		if err := saveCode(ctx, tx, c); err != nil {
			return a, err
		}
		if c.IsManaged {
			if err := s.emitMutation(ctx, tx, event.AboutCode(d, c), "deleting"); err != nil {
				return a, err
			}
		}
	}
	if a, err = s.newAttempt(ctx, tx, c, actionType, attemptOptions{}); err != nil {
		return a, err
	}
	return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
}

// deleteCode deletes a code that is off its device, emits the events, and ends the attempts that wait for the
// code.
func (s *Service) deleteCode(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	if err := tx.DeleteAccessCode(ctx, c.AccessCodeID); err != nil {
		return err
	}
	if err := s.addTombstone(ctx, tx, d, c); err != nil {
		return err
	}
	if c.IsBackup {
		if err := tx.ClearPulledBackup(
			ctx,
			dbsqlc.ClearPulledBackupParams{DeviceID: c.DeviceID, AccessCodeID: c.AccessCodeID},
		); err != nil {
			return err
		}
	}
	pending, err := tx.PendingAttemptsOfDevice(ctx, d.DeviceID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if domain.Value(a.AccessCodeID) != c.AccessCodeID {
			continue
		}
		switch a.ActionType {
		case domain.DeleteAccessCode, domain.DeleteUnmanagedAccessCode:
			_, err = s.finish(ctx, tx, a, Succeeded, "", "")
		case domain.ConvertAccessCode:
			err = s.failConversion(
				ctx,
				tx,
				d,
				c,
				a,
				"access_code_not_found",
				"The code was removed from its device before it could be converted.",
			)
		default:
			_, err = s.finish(
				ctx,
				tx,
				a,
				Failed,
				"access_code_deleted",
				"The access code was deleted before the device confirmed.",
			)
		}
		if err != nil {
			return err
		}
	}
	if !c.IsManaged {
		return s.events.Emit(ctx, tx, "access_code.unmanaged.removed", event.AboutCode(d, c))
	}
	if c.AppliedGen > 0 && !offline(c) &&
		d.RemovedAt == nil { // the code stays on a removed device and continues to open
		if err := s.events.Emit(ctx, tx, "access_code.removed_from_device", event.AboutCode(d, c)); err != nil {
			return err
		}
	}
	deleted, err := s.aboutWithPIN(d, c)
	if err != nil {
		return err
	}
	return s.events.Emit(ctx, tx, "access_code.deleted", deleted)
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
	return s.onCode(
		ctx,
		p,
		id,
		false,
		func(tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) (a dbsqlc.ActionAttempt, err error) {
			if c.RemovingSince != nil {
				return a, &domain.Error{
					Kind:    domain.Conflict,
					Type:    "access_code_being_deleted",
					Message: "The access code is being removed from its device and cannot be converted.",
				}
			}
			if a, err = s.newAttempt(
				ctx,
				tx,
				c,
				domain.ConvertAccessCode,
				attemptOptions{ExternalModificationAllowed: externalModificationAllowed},
			); err != nil {
				return a, err
			}
			return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, true)
		},
	)
}

func (s *Service) failConversion(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	c dbsqlc.AccessCode,
	a dbsqlc.ActionAttempt,
	errorType, message string,
) error {
	if _, err := s.finish(ctx, tx, a, Failed, errorType, message); err != nil {
		return err
	}
	why := []domain.Problem{{
		Code:    errorType,
		Message: message,
		Scope:   domain.OfCode,
		At:      s.opt.Now(),
	}}
	failed, err := s.withProblems(ctx, tx, event.AboutCode(d, c), d)
	if err != nil {
		return err
	}
	return s.events.Emit(
		ctx,
		tx,
		"access_code.unmanaged.failed_to_convert_to_managed",
		failed.With("access_code_errors", domain.ProblemFields("error_code", why)).
			With("access_code_warnings", []any{}),
	)
}

// hasFields reports whether a change names a field that the device stores, even with its current value.
func (ch CodeChange) hasFields() bool {
	return ch.Name != nil || ch.PIN != "" || ch.Type != "" || ch.StartsAt != "" || ch.EndsAt != ""
}

// isBlocked reports whether the device has refused the desired state of a code, so that the server does not retry.
func isBlocked(c dbsqlc.AccessCode) bool {
	return c.AppliedGen < c.DesiredGen && c.BlockedGen >= c.DesiredGen && !staysOff(c)
}

// staysOff reports whether a code was deleted at its device with permission and has not been changed since.
func staysOff(c dbsqlc.AccessCode) bool {
	return c.AppliedGen == 0 && c.BlockedGen >= c.DesiredGen && c.ErrorCode == nil &&
		domain.Value(c.WarningCode) == domain.WarnExternal
}

// answerUnchanged answers a change without differences. Its attempt ends when the device has confirmed the desired
// state, or immediately if no write is pending.
func (s *Service) answerUnchanged(
	ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode, ch CodeChange,
) (a dbsqlc.ActionAttempt, err error) {
	if err := saveCode(ctx, tx, c); err != nil {
		return a, err
	}
	if !ch.hasFields() || c.AppliedGen >= c.DesiredGen || staysOff(c) || s.waits(d, c) {
		return s.doneAttempt(ctx, tx, c, domain.UpdateAccessCode)
	}
	if a, err = s.newAttempt(ctx, tx, c, domain.UpdateAccessCode, attemptOptions{}); err != nil {
		return a, err
	}
	return a, s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
}

// waits reports whether the only thing left for a code is to wait for its programming time.
func (s *Service) waits(d dbsqlc.Device, c dbsqlc.AccessCode) bool {
	when := programAt(c, capabilities(d))
	return d.RemovedAt == nil && c.VendorRef == nil && c.WriteGen == 0 && when != nil && when.After(s.opt.Now())
}
